"""Lets ``python -m pexeso`` do what the command ``pexeso`` does."""

from pexeso.cli.main import main

if __name__ == "__main__":
    main()
