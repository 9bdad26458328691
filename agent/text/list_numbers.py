"""Numbers of list items in letters and Roman figures."""

_ROMAN = (
    (1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl"), (10, "x"),
    (9, "ix"), (5, "v"), (4, "iv"), (1, "i"),
)  # fmt: skip
_MAX_ROMAN = 3999


def format_roman(number: int) -> str:
    """A number in small Roman figures; in digits where there are none for it."""
    if not 0 < number <= _MAX_ROMAN:
        return str(number)
    roman = ""
    for value, sign in _ROMAN:
        roman += sign * (number // value)
        number %= value
    return roman


def format_letters(number: int) -> str:
    """A number from 1 in small letters, as the columns of a sheet are counted: z is followed by aa, ab."""
    letters = ""
    while number > 0:
        number, rest = divmod(number - 1, 26)
        letters = chr(ord("a") + rest) + letters
    return letters
