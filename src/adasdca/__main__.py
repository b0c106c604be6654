"""`python -m adasdca`: the command line."""

from adasdca.cli import main

if __name__ == "__main__":
    main()
