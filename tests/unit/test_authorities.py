"""Host and Origin headers, as clients, proxies and attackers write them."""

import pytest

from agent.core.authorities import Authority, format_origin, parse_host_header, parse_host_setting, parse_origin


@pytest.mark.parametrize(
    ("value", "host", "port"),
    [
        (b"localhost", "localhost", None),
        (b"LocalHost:8080", "localhost", 8080),
        (b"localhost.:8080", "localhost", 8080),
        (b"step_gate:80", "step_gate", 80),
        (b"gate.example.org \t", "gate.example.org", None),
        (b"xn--bcher-kva.example", "xn--bcher-kva.example", None),
        (b"127.0.0.1:65535", "127.0.0.1", 65535),
        (b"[::1]:8080", "::1", 8080),
        (b"[0:0:0:0:0:0:0:1]", "::1", None),
        (b"[FE80::A%25eth0]:1", "fe80::a", 1),
        (b"[::ffff:127.0.0.1]", "::ffff:127.0.0.1", None),
    ],
)
def test_a_host_is_parsed(value: bytes, host: str, port: int | None) -> None:
    parsed = parse_host_header(value)
    assert parsed is not None
    # Python writes mapped addresses in either way.
    assert parsed.host in (host, "::ffff:7f00:1")
    assert parsed.port == port
    assert parsed.is_address == (host[0] in ":1f")


@pytest.mark.parametrize(
    "value",
    [
        b"", b" ", b".", b"..", b"localhost..", b"a..b", b".localhost", b"-a.example", b"a-.example",
        b"localhost:", b"localhost:0", b"localhost:080", b"localhost:65536", b"localhost:99999999", b"localhost:a",
        b"localhost:80:80", b"localhost:-1", b"localhost:+80", b"localhost: 80", b":8080",
        b"user@localhost", b"user:pass@localhost:8080", b"localhost@evil.example",
        b"local host", b"localhost evil.example", b"localhost,evil.example", b"localhost, evil.example",
        b"localhost/", b"localhost/evil", b"localhost?", b"localhost#", b"localhost\\", b"http://localhost",
        b"localhost\x00", b"localhost\r\nx", b"localhost\x0b", b"localhost%00", b"%6cocalhost", b"*", b"*.example.org",
        "löcalhost".encode(), "localhost\uff0e".encode(), b"\xff", "\uff11\uff12\uff17.0.0.1".encode(),
        b"[::1", b"::1", b"::1]", b"[]", b"[localhost]", b"[127.0.0.1]", b"[::1]x", b"[::1]:", b"[[::1]]", b"[::g]",
        b"[::1%]", b"[v1.x]", b"a" * 64, b"a." * 200 + b"b", b"a" * 100_000,
    ],
)  # fmt: skip
def test_a_malformed_host_is_none(value: bytes) -> None:
    assert parse_host_header(value) is None


@pytest.mark.parametrize("value", [b"127.1", b"0x7f.0.0.1", b"2130706433", b"127.0.0.01", b"1.2.3.4.5"])
def test_an_address_in_another_notation_is_a_name(value: bytes) -> None:
    """Browsers never send it, and whatever resolves it need not agree about what it is."""
    parsed = parse_host_header(value)
    assert parsed is not None
    assert not parsed.is_address


@pytest.mark.parametrize(
    ("origin", "host", "is_same"),
    [
        ("http://localhost:8080", b"localhost:8080", True),
        ("https://localhost:8080", b"LOCALHOST.:8080", True),
        ("https://gate.example.org", b"gate.example.org", True),
        ("https://gate.example.org", b"gate.example.org:443", True),
        ("http://gate.example.org", b"gate.example.org:80", True),
        ("http://[::1]:8080", b"[0::1]:8080", True),
        ("http://gate.example.org", b"gate.example.org:443", False),
        ("http://localhost:3000", b"localhost:8080", False),
        ("http://localhost", b"localhost:8080", False),
        ("http://127.0.0.1:8080", b"localhost:8080", False),
        ("http://localhost.evil.example:8080", b"localhost:8080", False),
        ("capacitor://localhost", b"localhost", False),
    ],
)
def test_an_origin_is_that_of_a_host(origin: str, host: bytes, is_same: bool) -> None:
    parsed, at = parse_origin(origin), parse_host_header(host)
    assert parsed is not None
    assert at is not None
    assert parsed.is_at(at) == is_same


@pytest.mark.parametrize(
    "value",
    ["", "null", "localhost:8080", "//localhost", "http://", "http:localhost", "http://localhost/", "http://a@localhost",
     "http://localhost:8080 http://evil.example", "http://localhost, http://evil.example", "http://localhost\\@evil",
     "http://lo\u0663", "http://localhost:8080#", "x" * 100_000],
)  # fmt: skip
def test_a_malformed_origin_is_none(value: str) -> None:
    assert parse_origin(value) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("::1", Authority("::1", None, True)),
        ("bücher.example:81", Authority("xn--bcher-kva.example", 81, False)),
        ("https://gate.example.org", None),
        ("ü" * 80, None),
    ],
)
def test_a_setting_names_a_host(text: str, expected: Authority | None) -> None:
    assert parse_host_setting(text) == expected


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://Gate.Example.org/stepgate", "https://gate.example.org"),
        ("HTTP://gate.example.org:80?x#y", "http://gate.example.org"),
        ("http://[::1]:9000/", "http://[::1]:9000"),
        ("", None),
        ("gate.example.org", None),
        ("https:///path", None),
    ],
)
def test_a_url_has_an_origin(url: str, origin: str | None) -> None:
    assert format_origin(url) == origin
