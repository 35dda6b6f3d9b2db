"""`python -m bellmark` is the command line."""

from bellmark.cli import main

if __name__ == "__main__":
    main()
