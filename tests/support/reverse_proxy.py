"""A reverse proxy that serves a gateway below a path: nginx with the sample of docs/deploy, or else a small one."""

import asyncio
import contextlib
import os
import re
import shutil
import socket
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
from aiohttp import web

from tests.support.processes import DEADLINE_S, ROOT, start

PREFIX = "/stepgate"
SAMPLE = ROOT / "docs" / "deploy" / "nginx.conf"
CARD = "/.well-known/agent-card.json"
_HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "te", "upgrade", "content-length"}


def find_nginx() -> str | None:
    """The program, if there is one on this machine."""
    return shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")


def find_free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def write_nginx_configuration(folder: Path, port: int, gateway: str) -> Path:
    """Writes the sample with other addresses and without TLS, in the frame that a distribution puts around it."""
    sample = re.sub(r"^ *ssl_.*\n", "", SAMPLE.read_text("utf-8"), flags=re.MULTILINE)
    sample = sample.replace("listen 443 ssl", f"listen 127.0.0.1:{port}").replace("127.0.0.1:8010", gateway)
    folders = "".join(
        f"{name}_temp_path {folder}/{name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    path = folder / "nginx.conf"
    path.write_text(
        f"daemon off; pid {folder}/pid; error_log stderr; events {{}} http {{ access_log off; {folders}\n{sample}}}"
    )
    return path


async def _wait_for_port(port: int) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while True:
            with contextlib.suppress(OSError):
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.close()
                return
            await asyncio.sleep(0.02)


@asynccontextmanager
async def running_nginx(program: str, port: int, gateway: str) -> AsyncIterator[None]:
    """nginx with the sample configuration."""
    with tempfile.TemporaryDirectory(prefix="stepgate-nginx-") as name:
        configuration = write_nginx_configuration(Path(name), port, gateway)
        process = start([program, "-p", name, "-c", str(configuration), "-e", "stderr"])
        try:
            await _wait_for_port(port)
            yield
        finally:
            process.kill()


@asynccontextmanager
async def running_small_proxy(port: int, gateway: str) -> AsyncIterator[None]:
    """A proxy that does what the sample configuration says."""
    async with aiohttp.ClientSession(auto_decompress=False) as session:

        async def forward(request: web.BaseRequest) -> web.StreamResponse:
            path = request.raw_path
            if path.partition("?")[0] != CARD:
                if not path.startswith(f"{PREFIX}/"):
                    return web.Response(status=404, text="the proxy serves nothing here")
                path = path.removeprefix(PREFIX)
            kept = {name: value for name, value in request.headers.items() if name.lower() not in _HOP_BY_HOP}
            async with session.request(
                request.method, f"http://{gateway}{path}", headers=kept, data=request.content, allow_redirects=False
            ) as found:
                headers = [(name, value) for name, value in found.headers.items() if name.lower() not in _HOP_BY_HOP]
                response = web.StreamResponse(status=found.status, headers=headers)
                await response.prepare(request)
                async for part in found.content.iter_any():
                    await response.write(part)
                return response

        runner = web.ServerRunner(web.Server(forward))
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port).start()
        try:
            yield
        finally:
            await runner.cleanup()


@asynccontextmanager
async def reverse_proxy(port: int, gateway: str) -> AsyncIterator[None]:
    """A proxy on a port of this machine that serves the gateway at `host:port` below `PREFIX`."""
    program = find_nginx()
    running = running_small_proxy(port, gateway) if program is None else running_nginx(program, port, gateway)
    async with running:
        yield
