"""Credentials leave nothing behind: known forms, and every configured value in any encoding."""

import base64
import json
import urllib.parse

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.guardrails import Secrets

# Put together here, so that no file of the repository holds anything a scanner takes for a credential.
KEYS = {
    "OPENAI_KEY": "sk-" + "proj-" + "Ab1" * 16,
    "ANTHROPIC_KEY": "sk-" + "ant-" + "api03-" + "Zz9_" * 10,
    "AWS_ACCESS_KEY": "AKIA" + "IOSFODNN7EXAMPL2"[:16],
    "GITHUB_TOKEN": "ghp" + "_" + "a1B2" * 9,
    "GITLAB_TOKEN": "glpat" + "-" + "x" * 20,
    "SLACK_TOKEN": "xoxb" + "-" + "123456789012-abcdef",
    "GOOGLE_KEY": "AIza" + "Sy0" * 11 + "ab",
    "STRIPE_KEY": "sk" + "_live_" + "4eC39HqLyjWDarjtT1zdp7dc",
    "HUGGINGFACE_TOKEN": "hf" + "_" + "aBcD" * 9,
    "NPM_TOKEN": "npm" + "_" + "a1b2" * 9,
    "SENDGRID_KEY": "SG" + "." + "a" * 22 + "." + "b" * 43,
    "JWT": "eyJ" + "hbGciOiJIUzI1NiJ9" + "." + "eyJ" + "zdWIiOiIxMjM0In0" + "." + "c2lnbmF0dXJl" * 2,
    "PRIVATE_KEY": "-----BEGIN " + "RSA PRIVATE KEY-----\nMIIEow\nIBAAKC-AQ\n-----END " + "RSA PRIVATE KEY-----",
}
HIDDEN = "correct/horse+battery=staple ü"


@pytest.mark.row("S003-02")
@pytest.mark.parametrize("kind", KEYS)
def test_known_forms_are_taken_out(kind: str) -> None:
    text = f"use {KEYS[kind]}, then go on"
    assert Secrets().redact(text) == f"use [redacted: {kind}], then go on"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("postgresql://app:s3cr3t-word@db:5432/x", "postgresql://app:[redacted: PASSWORD]@db:5432/x"),
        ("Authorization: Bearer abcDEF0123456789abcdef", "Authorization: Bearer [redacted: BEARER_TOKEN]"),
        ("password = 'hunter2!!'", "password = '[redacted: PASSWORD]'"),
        ('{"api_key": "9f8e7d6c5b4a"}', '{"api_key": "[redacted: PASSWORD]"}'),
        ("AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG", "AWS_SECRET_ACCESS_KEY=[redacted: PASSWORD]"),
    ],
)
def test_values_that_are_called_secret_are_taken_out(text: str, left: str) -> None:
    assert Secrets().redact(text) == left


@pytest.mark.parametrize(
    "text",
    [
        "the password is forgotten: please reset the password: yourself",
        "password: ${DB_PASSWORD} and api_key=os.environ['KEY1'] and token: <your-token-1>",
        "a task-force-with-a-very-long-name-and-more, risk-averse-and-many-other-words",
        "https://example.org/path:with/colon@sign and http://user@host/",
        "basic understanding of bearer bonds and token economics",
        "commit 3f786850e387550fdab836ed7e6dc881de23001b",
        "",
    ],
)
def test_ordinary_text_stays(text: str) -> None:
    assert Secrets(["s3cret-value"]).redact(text) == text


@pytest.mark.parametrize(
    "encode",
    [
        lambda s: s,
        lambda s: json.dumps(s)[1:-1],
        lambda s: urllib.parse.quote(s, safe=""),
        lambda s: urllib.parse.quote_plus(s).lower(),
        lambda s: s.encode().hex(),
        lambda s: s.encode().hex().upper(),
        lambda s: base64.b64encode(s.encode()).decode().rstrip("="),
        lambda s: base64.urlsafe_b64encode(s.encode()).decode(),
        lambda s: base64.b64encode(b"k=" + s.encode() + b"; path").decode(),
        lambda s: base64.b64encode(b"u:" + b"x" + s.encode()).decode(),
    ],
)
def test_a_configured_secret_is_found_in_every_encoding(encode: object) -> None:
    assert callable(encode)
    text = f"before {encode(HIDDEN)} after"
    left = Secrets([HIDDEN]).redact(text)
    assert "[redacted: CONFIGURED_SECRET]" in left
    assert left.startswith("before ")
    assert left.endswith(" after")
    assert len(left) < len("before [redacted: CONFIGURED_SECRET] after") + 12, "only bytes beside it may stay"


def test_values_too_short_to_be_told_from_words_are_not_looked_for() -> None:
    assert Secrets(["key"]).redact("the key fits") == "the key fits"


def test_a_tree_is_redacted_in_names_and_values_however_deep() -> None:
    tree: object = {"password": "plain", "n": 1, "list": [KEYS["JWT"], None, {KEYS["NPM_TOKEN"]: True}]}
    redacted = Secrets().redact_tree(tree)  # type: ignore[arg-type]
    assert redacted == {
        "password": "[redacted: PASSWORD]", "n": 1,
        "list": ["[redacted: JWT]", None, {"[redacted: NPM_TOKEN]": True}],
    }  # fmt: skip
    deep: object = KEYS["JWT"]
    for _ in range(5_000):
        deep = [deep]
    left: object = Secrets().redact_tree(deep)  # type: ignore[arg-type]
    while isinstance(left, list):
        left = left[0]
    assert left == "[redacted: JWT]"


_BITS = st.sampled_from(
    [*KEYS.values(), HIDDEN, base64.b64encode(HIDDEN.encode()).decode(), "password = ", "api-key: ", "hunter2hunter2",
     " ", "\n", "Bearer ", "abcDEF0123456789abcdef", "-----BEGIN ", "PRIVATE KEY-----", "-----END", "text ",
     "postgres://u:", "p4ssw0rd@host ", "connection-string = ", "é", "-"]
)  # fmt: skip


@settings(deadline=None)
@given(st.lists(_BITS, max_size=8).map("".join), st.lists(st.integers(1, 23), min_size=1, max_size=40))
def test_any_split_redacts_the_same(text: str, sizes: list[int]) -> None:
    secrets = Secrets([HIDDEN])
    stream = secrets.stream()
    out, at = [], 0
    for size in [*sizes, *([11] * len(text))]:
        out.append(stream.feed(text[at : at + size]))
        at += size
    assert "".join(out) + stream.end() == secrets.redact(text)


def test_a_stream_holds_back_one_word_only() -> None:
    stream = Secrets().stream()
    assert stream.feed("The quick brown fo") == "The quick brown "
    assert stream.feed("x jumps ") == "fox jumps "
    assert stream.end() == ""
