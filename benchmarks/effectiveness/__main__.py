"""Start the command line: ``python -m benchmarks.effectiveness``."""

from benchmarks.effectiveness.command import main

if __name__ == "__main__":
    main()
