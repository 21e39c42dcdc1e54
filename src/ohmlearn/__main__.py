"""Run the command line as ``python -m ohmlearn``."""

from ohmlearn.cli import main

if __name__ == "__main__":
    main(prog_name="ohmlearn")
