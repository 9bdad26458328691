"""Addresses of model endpoints, as people write them."""

import base64

import pytest

from agent.llm.model_address import BASIC, list_roots, read_address, read_key, split_login


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (" http://127.0.0.1:11434/v1/ ", "http://127.0.0.1:11434/v1"),
        ("localhost:11434", "http://localhost:11434"),
        ("192.168.1.7:1234/v1", "http://192.168.1.7:1234/v1"),
        ("[::1]:8080/v1", "http://[::1]:8080/v1"),
        ("nas.local:8000", "http://nas.local:8000"),
        ("api.example.com/v1", "https://api.example.com/v1"),
        ("https://api.example.com/v1/chat/completions", "https://api.example.com/v1"),
        ("http://127.0.0.1:1234/v1/models", "http://127.0.0.1:1234/v1"),
        ("HTTP://127.0.0.1:1234/V1", "http://127.0.0.1:1234/v1"),
        ("http:/localhost:11434", "http://localhost:11434"),
        ("\u200bhttp://localhost:1\u200b", "http://localhost:1"),
        ("http://localhost:11434/api/chat", "http://localhost:11434/api"),
        ("100.101.102.103:11434", "http://100.101.102.103:11434"),
        ("box.tail1234.ts.net:11434", "http://box.tail1234.ts.net:11434"),
        ("http://127.0.0.1:1/v1#", "http://127.0.0.1:1/v1"),
        ("münchen.example/v1", "https://münchen.example/v1"),
        (
            "https://api.example.com/openai/deployments/models-of-ours",
            "https://api.example.com/openai/deployments/models-of-ours",
        ),
    ],
)
def test_an_address_is_completed(written: str, meant: str) -> None:
    assert read_address(written).base_url == meant


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("", "must begin"),
        ("ftp://127.0.0.1/v1", "must begin"),
        ("http://", "must begin"),
        ("file:///etc/passwd", "must begin"),
        ("http://[127.0.0.1:9/v1", "IPv6"),
        ("http://[::1/v1", "IPv6"),
        ("localhost:99999", "port"),
        ("http://localhost:abc/v1", "port"),
        ("http://localhost:0/v1", "port"),
        ("http://h h/v1", r"the character ' '"),
        ("localhost\uff1a11434", r"U\+FF1A"),
        ("http://good.example\\@evil.example", r"U\+005C"),
        ("http://h/v1?api-version=2024-10-21", "`\\?`"),
        ("http://h/v1#chat", "`#`"),
    ],
)
def test_what_is_no_address_is_refused_with_what_is_wrong(written: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        read_address(written)


@pytest.mark.parametrize(
    ("written", "login"),
    [("http://bob:s3cret@127.0.0.1:9/v1", "bob:s3cret"), ("https://anna%40home:p%2Fw@h.example", "anna@home:p/w")],
)
def test_a_login_is_taken_out_of_the_address(written: str, login: str) -> None:
    for address in (read_address(written), split_login(written)):
        assert "@" not in address.base_url
        assert address.login is not None
        assert base64.b64decode(address.login.removeprefix(BASIC)).decode() == login
    with pytest.raises(ValueError, match="port") as told:
        read_address("http://bob:s3cret@h:99999")
    assert "s3cret" not in str(told.value)


@pytest.mark.parametrize(
    ("written", "roots"),
    [
        ("http://h:11434", ("http://h:11434/v1", "http://h:11434")),
        ("http://h:11434/api", ("http://h:11434/api", "http://h:11434/api/v1", "http://h:11434/v1")),
        ("https://h/openai", ("https://h/openai", "https://h/openai/v1", "https://h/v1")),
        ("https://h/v1", ("https://h/v1",)),
        ("https://h/api/paas/v4", ("https://h/api/paas/v4",)),
    ],
)
def test_the_places_where_the_api_may_be(written: str, roots: tuple[str, ...]) -> None:
    assert list_roots(written) == roots


@pytest.mark.parametrize("written", ["sk-1", " sk-1\n", "Bearer sk-1", "bearer  sk-1"])
def test_a_key_is_read_alone(written: str) -> None:
    assert read_key(written) == "sk-1"


@pytest.mark.parametrize("written", ["", "a\nb", "export KEY=sk-1", "sk-\u2013"])
def test_a_key_that_no_header_can_hold_is_refused(written: str) -> None:
    with pytest.raises(ValueError, match=r"character|empty"):
        read_key(written)
