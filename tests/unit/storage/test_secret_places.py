"""Where a stored secret may go."""

from time import process_time

import pytest

from agent.storage.secret_places import is_below


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("https://api.example/", "https://api.example"),
        ("https://API.example:443/v1/a?b=c", "https://api.example/v1/"),
        ("http://127.0.0.1:8080/mcp", "http://127.0.0.1:8080/mcp"),
        ("https://api.example/v1/a%20b;c=1/100%25", "https://api.example/v1"),
    ],
)
def test_an_address_below_the_place(url: str, place: str) -> None:
    assert is_below(url, place)


@pytest.mark.parametrize(
    "url",
    [
        "https://api.example/v10",
        "https://api.example/",
        "http://api.example/v1",
        "https://api.example:8443/v1",
        "https://api.example.evil.example/v1",
        "https://api.example@evil.example/v1",
        "https://evil.example\\@api.example/v1",
        "https://api.example/v1/../other",
        "https://api.example/v1/%2e%2e/other",
        "https://api.example/v1/..%5cother",
        "https://api.example/v1/%252e%252e/other",
        "https://api.example/v1/..;/other",
        "https://api.example/v1/..%20/other",
        "https://api.example/v1/..%00/other",
        "https://api.example/v1/x%252f..%252f../other",
        "https://api.example:port/v1",
        "https://api.example\u3002evil.example/v1",
        "//api.example/v1",
        "",
    ],
)
def test_what_is_elsewhere_or_can_be_read_in_two_ways(url: str) -> None:
    assert not is_below(url, "https://api.example/v1")


def test_a_path_that_is_encoded_over_and_over_is_refused_at_once() -> None:
    began = process_time()
    assert not is_below(f"https://api.example/v1/%{'25' * 8000}2e", "https://api.example/v1")
    assert process_time() - began < 1
