"""`python -m gateway.cli`, the same as `stepgate`."""

from gateway.cli import main

if __name__ == "__main__":
    main()
