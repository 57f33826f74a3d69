"""`python -m tacita` is `tacita`."""

from tacita.cli import main

if __name__ == "__main__":
    main()
