"""Lets ``python -m pexeso`` do what the command ``pexeso`` does."""

from pexeso.faces.cli.process import run

if __name__ == "__main__":
    run()
