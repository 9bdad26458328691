"""`ConnectionPool`: HTTP/1.1 with a server that is written out byte by byte."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from httptools import HttpParserError

from agent.core.errors import ModelUnreachableError
from agent.llm.connections import BrokenBodyError, ConnectionPool
from agent.llm.http import HttpModelClient
from agent.llm.port import ModelRequest

WHOLE = b"HTTP/1.1 200 OK\r\nX-Name: Value\r\nContent-Length: 2\r\n\r\nok"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-Trailer: t\r\n\r\n"
UNTIL_THE_END = b"HTTP/1.1 200 OK\r\n\r\nok"
REPLY = b'{"choices": [{"message": {"content": "Hello."}}]}'


class Server:
    """Answers the requests of each connection with `responses`, then closes the connection if `closes`."""

    def __init__(self, responses: Sequence[bytes], *, closes: bool) -> None:
        self.requests: list[bytes] = []
        self.connections = 0
        self._responses = responses
        self._closes = closes

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            for response in self._responses:
                head = await reader.readuntil(b"\r\n\r\n")
                length = [line.split(b": ")[1] for line in head.split(b"\r\n") if line.startswith(b"content-length")]
                self.requests.append(head + (await reader.readexactly(int(length[0])) if length else b""))
                writer.write(response)
            if not self._closes:
                await reader.read()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def serving(
    *responses: bytes, closes: bool = True, tls: ssl.SSLContext | None = None
) -> AsyncIterator[tuple[Server, str]]:
    server = Server(responses, closes=closes)
    async with asyncio.timeout(20), await asyncio.start_server(server.serve, "127.0.0.1", 0, ssl=tls) as listening:
        port = listening.sockets[0].getsockname()[1]
        yield server, f"{'https' if tls else 'http'}://127.0.0.1:{port}/v1"


async def ask(pool: ConnectionPool, *, timeout_s: float = 10.0) -> tuple[int, dict[str, str], bytes]:
    deadline = asyncio.get_running_loop().time() + timeout_s
    async with pool.request("POST", "/ask", {"x-own": "1"}, b"body", connect_s=5, deadline=deadline) as response:
        body = b""
        while piece := await response.read(deadline):
            body += piece
        return response.status, response.headers, body


@pytest.mark.parametrize(
    "response", [WHOLE, CHUNKED, UNTIL_THE_END, b"HTTP/1.1 100 Continue\r\n\r\n" + WHOLE], ids=range(4)
)
async def test_a_body_is_read_to_its_end(response: bytes) -> None:
    async with serving(response) as (server, url):
        pool = ConnectionPool(url, {"content-type": "application/json"})
        status, headers, body = await ask(pool)
        await pool.aclose()
    assert (status, body) == (200, b"ok")
    assert headers.get("x-name", "Value") == "Value"
    head, _, sent = server.requests[0].partition(b"\r\n\r\n")
    assert (head.split(b"\r\n")[0], sent) == (b"POST /v1/ask HTTP/1.1", b"body")
    assert f"host: {url.split('/')[2]}".encode() in head
    assert b"x-own: 1" in head
    assert b"content-type: application/json" in head


async def test_a_connection_is_used_again_after_a_whole_response_only() -> None:
    closing = WHOLE.replace(b"X-Name: Value", b"Connection: close")
    async with serving(WHOLE, CHUNKED, closing, WHOLE, closes=False) as (server, url):
        pool = ConnectionPool(url, {})
        for _ in range(4):
            assert (await ask(pool))[2] == b"ok"
        await pool.aclose()
    assert server.connections == 2


async def test_a_connection_that_the_server_closed_is_not_used_again() -> None:
    async with serving(WHOLE) as (server, url):
        pool = ConnectionPool(url, {})
        for _ in range(2):
            assert (await ask(pool))[2] == b"ok"
            await asyncio.sleep(0.05)
        await pool.aclose()
    assert server.connections == 2


async def test_a_response_that_nobody_asked_for_ends_the_connection() -> None:
    async with serving(WHOLE + WHOLE.replace(b"ok", b"no"), closes=False) as (server, url):
        pool = ConnectionPool(url, {})
        for _ in range(2):
            assert (await ask(pool))[2] == b"ok"
        await pool.aclose()
    assert server.connections == 2


@pytest.mark.parametrize(
    ("response", "error"),
    [
        (b"", ConnectionError),
        (b"HTTP/1.1 200 OK\r\nContent-Le", ConnectionError),
        (b"<html>", HttpParserError),
        (b"HTTP/1.1 200 OK\r\nX-Long: " + b"x" * 100_000, ConnectionError),
        (WHOLE[:-1], BrokenBodyError),
        (CHUNKED[:-5], BrokenBodyError),
    ],
    ids=range(6),
)
async def test_half_a_response_is_an_error(response: bytes, error: type[Exception]) -> None:
    async with serving(response) as (_, url):
        pool = ConnectionPool(url, {})
        with pytest.raises(error):
            await ask(pool)
        await pool.aclose()


@pytest.mark.parametrize("response", [b"", WHOLE[:-1]])
async def test_a_server_that_says_nothing_is_given_up_in_time(response: bytes) -> None:
    async with serving(response, closes=False) as (_, url):
        pool = ConnectionPool(url, {})
        with pytest.raises(TimeoutError):
            await ask(pool, timeout_s=0.2)
        await pool.aclose()


async def test_the_login_of_a_url_is_sent() -> None:
    async with serving(WHOLE) as (server, url):
        pool = ConnectionPool(url.replace("://", "://me:p%40ss@"), {})
        await ask(pool)
        await pool.aclose()
    assert b"authorization: Basic bWU6cEBzcw==" in server.requests[0]
    assert b"me:" not in server.requests[0]


async def test_a_header_with_a_line_break_is_refused() -> None:
    with pytest.raises(ValueError, match="line break"):
        ConnectionPool("http://127.0.0.1/v1", {"Authorization": "Bearer a\r\nx: y"})


async def test_tls_is_used_if_the_certificate_is_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate = make_certificate(tmp_path)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate)
    response = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(REPLY), REPLY)
    request = ModelRequest(model="m", messages=({"role": "user", "content": "x"},), purpose="completion")
    async with serving(response, tls=tls) as (_, url):
        wary = HttpModelClient(url)
        with pytest.raises(ModelUnreachableError, match="not trusted"):
            await wary.complete(request)
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        trusting = HttpModelClient(url)
        assert (await trusting.complete(request)).text == "Hello."
        await wary.aclose()
        await trusting.aclose()


def make_certificate(folder: Path) -> Path:
    """Returns a file with a certificate for 127.0.0.1 and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "models")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = folder / "models.pem"
    path.write_bytes(
        certificate.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return path
