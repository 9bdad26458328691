"""`python -m gateway.cli`, the same as `stepgate`."""

from gateway.entry import main

if __name__ == "__main__":
    main()
