"""Named credentials: where values come from, who may read the file, and that no secret is ever told."""

import json
import os
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.core.models import JsonObject
from agent.storage.credentials import Bearer, CredentialError, Credentials, GoogleOAuth, GoogleServiceAccount

SECRET = "s3cret-value-nobody-may-see"
OAUTH: JsonObject = {"type": "google_oauth", "client_id": "id", "client_secret": SECRET, "refresh_token": "again"}
Write = Callable[..., Credentials]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def written(content: object, mode: int = 0o600, environment: dict[str, str] | None = None) -> Credentials:
        path = tmp_path / "credentials.json"
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        path.chmod(mode)
        return Credentials(path, environment or {})

    return written


def _error_text(credentials: Credentials, name: str = "drive") -> str:
    """The error's message, after a look at everything a log could hold of it."""
    with pytest.raises(CredentialError) as caught:
        credentials.get(name)
    whole = "".join(traceback.format_exception(caught.value)) + repr(caught.value) + repr(caught.value.to_failure())
    assert SECRET not in whole
    assert caught.value.code == "ERR_CONNECTOR_AUTH"
    return caught.value.message


@pytest.mark.row("S003-10")
def test_each_type_is_read_and_shows_no_secret(write: Write) -> None:
    account = {"type": "google_service_account", "client_email": "bot@example.org", "private_key": SECRET}
    credentials = write({"oauth": OAUTH, "account": account, "plain": {"type": "bearer", "token": SECRET}})
    oauth, service, bearer = (credentials.get(name) for name in ("oauth", "account", "plain"))
    assert isinstance(oauth, GoogleOAuth)
    assert isinstance(service, GoogleServiceAccount)
    assert isinstance(bearer, Bearer)
    assert oauth.client_secret.get_secret_value() == bearer.token.get_secret_value() == SECRET
    assert service.token_uri == "https://oauth2.googleapis.com/token"
    for shown in (repr(oauth), str(service), f"{bearer}", oauth.model_dump_json(), str(service.model_dump())):
        assert SECRET not in shown
    assert SECRET not in repr(credentials)
    assert credentials.list_names() == ("account", "oauth", "plain")
    assert credentials.list_secrets() == (SECRET, "again")


def test_values_come_from_the_environment_and_from_files(write: Write, tmp_path: Path) -> None:
    (tmp_path / "token.txt").write_text(f"{SECRET}\n")
    (tmp_path / "token.txt").chmod(0o400)
    entry = {**OAUTH, "client_secret": "${OAUTH_SECRET}", "refresh_token": {"file": "token.txt"}}
    found = write({"drive": entry}, environment={"OAUTH_SECRET": "from outside"}).get("drive")
    assert isinstance(found, GoogleOAuth)
    assert found.client_secret.get_secret_value() == "from outside"
    assert found.refresh_token.get_secret_value() == SECRET


def test_a_value_with_a_dollar_in_it_is_itself(write: Write) -> None:
    found = write({"a": {"type": "bearer", "token": "pre${HOME}"}}, environment={"HOME": "x"}).get("a")
    assert isinstance(found, Bearer)
    assert found.token.get_secret_value() == "pre${HOME}"


@pytest.mark.parametrize("inline", [True, False])
def test_googles_own_key_file_is_taken_as_it_is(write: Write, tmp_path: Path, inline: bool) -> None:
    key = {"type": "service_account", "project_id": "p", "client_email": "bot@p.example", "private_key": SECRET}
    (tmp_path / "key.json").write_text(json.dumps(key))
    (tmp_path / "key.json").chmod(0o600)
    entry = {
        "type": "google_service_account",
        "key": key if inline else {"file": str(tmp_path / "key.json")},
        "subject": "ann@p.example",
    }
    found = write({"drive": entry}).get("drive")
    assert isinstance(found, GoogleServiceAccount)
    assert (found.client_email, found.subject) == ("bot@p.example", "ann@p.example")
    assert found.private_key.get_secret_value() == SECRET


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")
@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o660, 0o601])
def test_a_file_that_others_may_read_is_refused_with_the_remedy(write: Write, tmp_path: Path, mode: int) -> None:
    credentials = write({"drive": OAUTH}, mode=mode)
    told = _error_text(credentials)
    assert f"chmod 600 {tmp_path / 'credentials.json'}" in told
    assert f"{mode:o}" in told
    for reading in (credentials.list_secrets, credentials.list_names):
        with pytest.raises(CredentialError, match="chmod 600"):
            reading()


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")
def test_a_secret_in_a_file_that_others_may_read_is_refused(write: Write, tmp_path: Path) -> None:
    (tmp_path / "token.txt").write_text(SECRET)
    (tmp_path / "token.txt").chmod(0o644)
    told = _error_text(write({"drive": {"type": "bearer", "token": {"file": "token.txt"}}}))
    assert f"chmod 600 {tmp_path / 'token.txt'}" in told


def test_an_unknown_name_is_told_the_file_and_the_names_there_are(write: Write, tmp_path: Path) -> None:
    told = _error_text(write({"work": OAUTH, "home": OAUTH}))
    assert "'drive'" in told
    assert str(tmp_path / "credentials.json") in told
    assert "home, work" in told


def test_without_a_file_there_are_no_credentials(tmp_path: Path) -> None:
    credentials = Credentials(tmp_path / "none.json")
    assert credentials.list_names() == credentials.list_secrets() == ()
    assert "docs/connectors.md" in _error_text(credentials)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "is not JSON: Expecting value in line 1, column 1"),
        (f'{{"drive": "{SECRET}",,', "is not JSON"),
        ("[" * 100_000, "is not JSON: it is nested too deeply"),
        ([SECRET], "must be one JSON object"),
        ({"drive": SECRET}, "must be a JSON object with a type"),
        ({"drive": {"type": SECRET}}, "google_service_account, google_oauth, bearer, document_password"),
        ({"drive": {"type": [SECRET]}}, "google_service_account, google_oauth, bearer, document_password"),
        ({"drive": {"type": "bearer", "tokn": SECRET}}, "token: it is missing"),
        ({"drive": {"type": "bearer", "token": ""}}, "token: "),
        ({"drive": {"type": "bearer", "token": [SECRET]}}, "token: write a text"),
        ({"drive": {"type": "bearer", "token": "${NOT_THERE}"}}, "the environment variable NOT_THERE is not set"),
        ({"drive": {"type": "bearer", "token": {"file": "gone.txt"}}}, "gone.txt cannot be read: No such file"),
        ({"drive": {"type": "bearer", "token": {"file": "."}}}, "is not a file"),
        ({"drive": {"type": "google_service_account", "key": SECRET}}, "key is not JSON"),
        ({"drive": {"type": "google_service_account", "key": {"private_key": SECRET}}}, "not a service account key"),
        ({"drive": {**OAUTH, "token_uri": "http://elsewhere.example/token"}}, "must begin with https://"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_told_without_the_secret(write: Write, content: object, told: str) -> None:
    assert told in _error_text(write(content))


def test_bytes_that_are_no_text_and_files_without_end_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "credentials.json"
    path.write_bytes(b'{"drive": "\xff\xfe"}')
    path.chmod(0o600)
    assert "is not UTF-8: see byte 11" in _error_text(Credentials(path))
    path.write_bytes(b" " * 1_000_001)
    assert "larger than" in _error_text(Credentials(path))
    path.unlink()
    os.mkfifo(path, 0o600)
    assert "is not a file" in _error_text(Credentials(path))


def test_one_wrong_entry_takes_nothing_from_the_others(write: Write) -> None:
    credentials = write({"bad": {"type": "bearer"}, "drive": OAUTH})
    assert credentials.list_secrets() == (SECRET, "again")
    assert isinstance(credentials.get("drive"), GoogleOAuth)


def test_a_changed_file_counts_at_once(write: Write) -> None:
    credentials = write({"a": {"type": "bearer", "token": "old"}})
    assert credentials.list_secrets() == ("old",)
    write({"a": {"type": "bearer", "token": "new"}})
    assert credentials.list_secrets() == ("new",)


def test_the_example_of_the_documents_is_a_credentials_file(write: Write, tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "connectors.md").read_text("utf-8")
    example = page.split("```json\n")[1].split("```")[0]
    key = {"type": "service_account", "client_email": "bot@p.example", "private_key": SECRET}
    (tmp_path / "company-drive-key.json").write_text(json.dumps(key))
    (tmp_path / "company-drive-key.json").chmod(0o600)
    environment = {"DRIVE_CLIENT_SECRET": "a", "DRIVE_REFRESH_TOKEN": "b", "DRIVE_TOKEN": "c"}
    credentials = write(example, environment=environment)
    kinds = [type(credentials.get(name)) for name in ("company-drive", "my-drive", "for-an-hour")]
    assert kinds == [GoogleServiceAccount, GoogleOAuth, Bearer]
