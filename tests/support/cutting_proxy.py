"""A proxy of bytes whose connections are cut when a test says so, in the middle of whatever they carry."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit


class CuttingProxy:
    """Leads connections to a gateway."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._writers: set[asyncio.StreamWriter] = set()
        self.url = ""

    def cut(self) -> None:
        """Resets all connections. New ones are taken at once."""
        for writer in list(self._writers):
            writer.transport.abort()

    async def lead(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Copies bytes both ways until either side ends."""
        there, back = await asyncio.open_connection("127.0.0.1", self._port)
        self._writers |= {writer, back}
        try:
            copies = [asyncio.ensure_future(_copy(*pair)) for pair in ((reader, back), (there, writer))]
            await asyncio.wait(copies, return_when=asyncio.FIRST_COMPLETED)
            for one in copies:
                one.cancel()
        finally:
            self._writers -= {writer, back}
            for one_writer in (writer, back):
                one_writer.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while part := await reader.read(65_536):
            writer.write(part)
            await writer.drain()


@asynccontextmanager
async def cutting_proxy(url: str) -> AsyncIterator[CuttingProxy]:
    """A proxy on a free port of this machine that leads to the gateway at `url`."""
    proxy = CuttingProxy(urlsplit(url).port or 80)
    server = await asyncio.start_server(proxy.lead, "127.0.0.1", 0)
    proxy.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield proxy
    finally:
        proxy.cut()
        server.close()
