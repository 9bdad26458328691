"""Credentials leave nothing behind: known forms, and every configured value in any encoding."""

import base64
import json
import urllib.parse

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.policy.guardrails import SecretScanner

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
    assert SecretScanner().redact(text) == f"use [removed: {kind}], then go on"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("postgresql://app:s3cr3t-word@db:5432/x", "postgresql://app:[removed: PASSWORD]@db:5432/x"),
        ("Authorization: Bearer abcDEF0123456789abcdef", "Authorization: Bearer [removed: BEARER_TOKEN]"),
        ("password = 'hunter2!!'", "password = '[removed: PASSWORD]'"),
        ('{"api_key": "9f8e7d6c5b4a"}', '{"api_key": "[removed: PASSWORD]"}'),
        ("AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG", "AWS_SECRET_ACCESS_KEY=[removed: PASSWORD]"),
        ("my password is hunter2abc!", "my password is [removed: PASSWORD]"),
        ("lösenordet är sommar2024", "lösenordet är [removed: PASSWORD]"),
        ("het wachtwoord is zomer2024!", "het wachtwoord is [removed: PASSWORD]"),
        ("mysql -u root -pS3cret!x shop", "mysql -u root -p[removed: PASSWORD] shop"),
        ("sshpass -p 'h4nter22' ssh x", "sshpass -p '[removed: PASSWORD]' ssh x"),
        ("Set-Cookie: a=b; session=abc123def456; Path=/", "Set-Cookie: a=b; session=[removed: SESSION_COOKIE]; Path=/"),
        ("use dckr_" + "pat_" + "aB3-" * 7, "use [removed: DOCKER_TOKEN]"),
        ('{"auth": "dXNlcjpwYXNz' + 'd29yZDE="}', '{"auth": "[removed: DOCKER_LOGIN]"}'),
        ("id abc8" + "Q~" + "aB3~" * 8 + "xy", "id [removed: AZURE_SECRET]"),
    ],
)
def test_values_that_are_called_secret_are_taken_out(text: str, left: str) -> None:
    assert SecretScanner().redact(text) == left


@pytest.mark.parametrize(
    "text",
    [
        "the password is forgotten: please reset the password: yourself",
        "password: ${DB_PASSWORD} and api_key=os.environ['KEY1'] and token: <your-token-1>",
        "a task-force-with-a-very-long-name-and-more, risk-averse-and-many-other-words",
        "https://example.org/path:with/colon@sign and http://user@host/",
        "basic understanding of bearer bonds and token economics",
        "commit 3f786850e387550fdab836ed7e6dc881de23001b",
        "the password is 8 characters long, sha256-hashed and case-sensitive; mysql -p3306 -p database1",
        "Cookie: theme=dark; lang=sv",
        "",
    ],
)
def test_ordinary_text_stays(text: str) -> None:
    assert SecretScanner(["s3cret-value"]).redact(text) == text


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
        lambda s: "".join(f"%{byte:02X}" for byte in s.encode()),
        lambda s: "".join(f"%25{byte:02x}" for byte in s.encode()),
        lambda s: urllib.parse.quote(urllib.parse.quote(s, safe=""), safe=""),
        lambda s: s.replace("/", "\\/"),
        lambda s: "".join(f"\\u{ord(char):04x}" for char in s),
        lambda s: s.replace("/", "&#47;").replace("=", "&#x3d;"),
        lambda s: "".join(f"&#{ord(char)};" for char in s),
        lambda s: " ".join(f"{byte:02x}" for byte in s.encode()),
        lambda s: ":".join(f"{byte:02X}" for byte in s.encode()),
        lambda s: ", ".join(f"0x{byte:02x}" for byte in s.encode("latin-1")),
        lambda s: base64.b64encode(base64.b64encode(s.encode())).decode().rstrip("="),
        lambda s: base64.b64encode(s.encode("utf-16-le")).decode().rstrip("="),
        lambda s: base64.b32encode(s.encode()).decode().rstrip("="),
        "\u200b".join,
        " ".join,
        lambda s: f"{s[:9]}**{s[9:]}",
        lambda s: f"{s[:9]}\n{s[9:]}",
        str.upper,
        lambda s: s[::-1],
    ],
)
def test_a_configured_secret_is_found_in_every_encoding(encode: object) -> None:
    assert callable(encode)
    text = f"before {encode(HIDDEN)} after"
    left = SecretScanner([HIDDEN]).redact(text)
    assert "[removed: CONFIGURED_SECRET]" in left
    assert left.startswith("before ")
    assert left.endswith(" after")
    assert len(left) < len("before [removed: CONFIGURED_SECRET] after") + 12, "only bytes beside it may stay"


def test_a_short_word_is_found_as_it_stands_only() -> None:
    secrets = SecretScanner(["changeit"])
    assert secrets.redact("please change it") == "please change it"
    assert secrets.redact("it is changeit") == "it is [removed: CONFIGURED_SECRET]"


def test_values_too_short_to_be_told_from_words_are_not_looked_for() -> None:
    assert SecretScanner(["key"]).redact("the key fits") == "the key fits"


def test_a_tree_is_redacted_in_names_and_values_however_deep() -> None:
    tree: object = {"password": "plain", "n": 1, "list": [KEYS["JWT"], None, {KEYS["NPM_TOKEN"]: True}]}
    redacted = SecretScanner().redact_tree(tree)  # type: ignore[arg-type]
    assert redacted == {
        "password": "[removed: PASSWORD]", "n": 1,
        "list": ["[removed: JWT]", None, {"[removed: NPM_TOKEN]": True}],
    }  # fmt: skip
    deep: object = KEYS["JWT"]
    for _ in range(5_000):
        deep = [deep]
    left: object = SecretScanner().redact_tree(deep)  # type: ignore[arg-type]
    while isinstance(left, list):
        left = left[0]
    assert left == "[removed: JWT]"


_BITS = st.sampled_from(
    [*KEYS.values(), HIDDEN, base64.b64encode(HIDDEN.encode()).decode(), "password = ", "api-key: ", "hunter2hunter2",
     " ", "\n", "Bearer ", "abcDEF0123456789abcdef", "-----BEGIN ", "PRIVATE KEY-----", "-----END", "text ",
     "postgres://u:", "p4ssw0rd@host ", "connection-string = ", "é", "-", "my password is ", "mysql -u x ",
     " -pS3cret!x", "Set-Cookie: a=b; ", "sid=abc123def456", " ".join(HIDDEN), "%73",
     " \\u0073", "&#115;", "\u200b", "**", ".",
     HIDDEN[:9], HIDDEN[9:]]
)  # fmt: skip


@given(st.lists(_BITS, max_size=8).map("".join), st.lists(st.integers(1, 23), min_size=1, max_size=40))
def test_any_split_redacts_the_same(text: str, sizes: list[int]) -> None:
    secrets = SecretScanner([HIDDEN])
    stream = secrets.create_stream()
    out, at = [], 0
    for size in [*sizes, *([11] * len(text))]:
        out.append(stream.feed(text[at : at + size]))
        at += size
    assert "".join(out) + stream.end() == secrets.redact(text)


def test_a_stream_holds_back_one_word_only() -> None:
    stream = SecretScanner().create_stream()
    assert stream.feed("The quick brown fo") == "The quick brown "
    assert stream.feed("x jumps ") == "fox jumps "
    assert stream.end() == ""
