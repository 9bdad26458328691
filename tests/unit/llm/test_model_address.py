"""Addresses of model endpoints, as people write them."""

import pytest

from agent.llm.model_address import list_roots, read_address


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
        (
            "https://api.example.com/openai/deployments/models-of-ours",
            "https://api.example.com/openai/deployments/models-of-ours",
        ),
    ],
)
def test_an_address_is_completed(written: str, meant: str) -> None:
    assert read_address(written) == meant


@pytest.mark.parametrize(
    "written", ["", "ftp://127.0.0.1/v1", "http://", "file:///etc/passwd", "http://[127.0.0.1:9/v1"]
)
def test_what_is_no_address_is_refused(written: str) -> None:
    with pytest.raises(ValueError, match=r"http|IPv6"):
        read_address(written)


def test_an_address_without_a_path_is_tried_below_v1_first() -> None:
    assert list_roots("http://127.0.0.1:11434") == ("http://127.0.0.1:11434/v1", "http://127.0.0.1:11434")
    assert list_roots("http://127.0.0.1:11434/api") == ("http://127.0.0.1:11434/api",)
