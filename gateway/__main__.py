"""`python -m gateway`, the same as `stepgate`."""

from gateway.entry import main

if __name__ == "__main__":
    main()
