"""Says whether a failed call of a tool lost its connection. `tool_gateway` repeats such a call if that is harmless."""

import sys


def is_broken_connection(error: BaseException) -> bool:
    """Whether a broken connection is in the error's chain of causes. A time-out does not count."""
    timeouts: tuple[type[Exception], ...] = (TimeoutError,)
    breaks: tuple[type[Exception], ...] = (ConnectionError,)
    if "httpx" in sys.modules:  # Nothing else raises its errors, and it is 5 MB
        import httpcore  # noqa: PLC0415
        import httpx  # noqa: PLC0415

        timeouts = (*timeouts, httpx.TimeoutException)
        breaks = (*breaks, httpx.NetworkError, httpx.RemoteProtocolError, httpcore.NetworkError)
    cause: BaseException | None = error
    seen: set[int] = set()
    while cause is not None and id(cause) not in seen:  # foreign code may make a cycle of causes
        if isinstance(cause, timeouts):
            return False
        if isinstance(cause, breaks):
            return True
        seen.add(id(cause))
        cause = cause.__cause__
    return False
