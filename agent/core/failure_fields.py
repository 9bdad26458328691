"""Fields of results such as `error` or `isError`: whether they report a failure. Servers set them on success too."""

_FALSE_TEXTS = ("", "false", "no", "0", "null", "none")
"""Texts which say that nothing failed."""
REMARK_FIELDS = ("errors", "warnings", "messages")
"""Names of lists that speak about a call, beside what it has found."""
SUCCESS_CODE = "0"
"""The code of an object that says everywhere that nothing failed."""


def is_failure_value(value: object) -> bool:
    """Whether the value of a field that is there for a failure says that there was one."""
    if isinstance(value, str):
        return value.strip().lower() not in _FALSE_TEXTS
    if isinstance(value, dict):
        return not is_blank(value) and str(value.get("code")) != SUCCESS_CODE
    return bool(value)


def is_blank(value: object) -> bool:
    """Whether a value says nothing: null, false, 0, blank text, and containers of nothing else."""
    waiting = [value]  # no recursion: foreign servers decide how deep their results are
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one
        elif one.strip() if isinstance(one, str) else one:
            return False
    return True
