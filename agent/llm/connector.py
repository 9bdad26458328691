"""`ModelConnector`: aiohttp's connections, without its work for each piece of a body that is read."""

from functools import partial

from aiohttp import TCPConnector
from aiohttp.client_proto import ResponseHandler


class ModelConnector(TCPConnector):
    """Connections to model endpoints."""

    def __init__(self, *, limit: int) -> None:
        super().__init__(limit=limit)
        connection: type[ResponseHandler] = _ModelConnection
        self._factory = partial(connection, loop=self._loop)


class _ModelConnection(ResponseHandler):
    def resume_reading(self, resume_parser: bool = True) -> None:
        """Resumes reading if it was paused.

        aiohttp calls this for every chunk of a body that is read, and each time runs its parser on nothing and resumes
        a socket that was never paused: six functions a chunk.
        """
        if self._reading_paused:
            super().resume_reading(resume_parser)
