"""How the Drive connector gets, keeps and renews its tokens; and that no secret leaks."""

import asyncio
import logging
import traceback
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import jwt
import pytest

from agent.core.errors import AgentError
from agent.storage.credentials import Bearer, Credentials, GoogleOAuth, GoogleServiceAccount
from gateway.features.documents.engine.ingest.connectors.drive_auth import Account, AccountError
from gateway.features.documents.engine.ingest.connectors.port import FetchedDocument, MissedDocument
from gateway.features.documents.engine.ingest.errors import ConnectorAuthError, ConnectorError
from tests.support.drive_case import DriveCase, drive_case
from tests.support.drive_server import CLIENT, EMAIL, REFRESH_TOKEN, new_key, pem
from tests.support.drive_wire import Fault

FILE = "file-report"


@pytest.fixture
async def case(tmp_path: Path) -> AsyncIterator[DriveCase]:
    async with drive_case(tmp_path) as made:
        made.server.file(FILE, "Report.pdf", b"%PDF report")
        yield made


def _credential(case: DriveCase, entry: dict[str, Any]) -> GoogleServiceAccount | GoogleOAuth | Bearer:
    case.write_credentials(named=entry)
    found = Credentials(case.credentials_path).get("named")
    assert isinstance(found, GoogleServiceAccount | GoogleOAuth | Bearer)
    return found


@pytest.mark.row("S003-10")
async def test_a_service_account_signs_for_its_token(case: DriveCase) -> None:
    [found] = await case.fetch(FILE, credential="account")
    assert isinstance(found, FetchedDocument)
    assert found.output is not None
    assert len(case.server.tokens) == 1


async def test_an_account_may_act_for_a_person(case: DriveCase) -> None:
    credential = _credential(case, case.account() | {"subject": "ann@example.org"})
    account = Account("named", credential, case.wire)
    await account.get_token()
    assertion = case.server.forms[-1]["assertion"]
    assert jwt.get_unverified_header(assertion)["kid"] == "key-1"
    said = jwt.decode(assertion, options={"verify_signature": False})
    assert (said["sub"], said["iss"], said["scope"]) == (
        "ann@example.org",
        EMAIL,
        "https://www.googleapis.com/auth/drive.readonly",
    )
    assert said["exp"] - said["iat"] == 3600
    assert account.display_name == "ann@example.org"


async def test_a_refresh_token_is_exchanged_for_an_access_token(case: DriveCase) -> None:
    [found] = await case.fetch(FILE, credential="oauth")
    assert isinstance(found, FetchedDocument)
    assert case.server.forms[-1] == {"grant_type": "refresh_token", **CLIENT, "refresh_token": REFRESH_TOKEN}


async def test_a_token_is_kept_until_just_before_its_end(case: DriveCase) -> None:
    now = 1000.0
    account = Account("named", _credential(case, case.oauth()), case.wire, clock=lambda: now)
    first = await account.get_token()
    now += 3599 - 61
    assert await account.get_token() == first
    now += 2
    assert await account.get_token() != first
    assert len(case.server.tokens) == 2


async def test_many_at_once_ask_for_one_token(case: DriveCase) -> None:
    for number in range(8):
        case.server.file(f"file-many-{number}", f"{number}.pdf", b"%d" % number)
    results = await asyncio.gather(*(case.fetch(f"file-many-{number}") for number in range(8)))
    assert [one.name for [one] in results] == [f"{number}.pdf" for number in range(8)]
    assert all(isinstance(one, FetchedDocument) and one.output for [one] in results)
    assert len(case.server.tokens) == 1


@pytest.mark.row("S003-10")
async def test_a_401_is_answered_with_a_new_token_and_the_same_question(case: DriveCase) -> None:
    await case.fetch(FILE)
    case.server.forget_tokens()
    [found] = await case.fetch(FILE)
    assert isinstance(found, FetchedDocument)
    assert found.output is not None
    assert len(case.server.tokens) == 2
    assert case.pauses == []


async def test_many_who_are_refused_at_once_renew_once(case: DriveCase) -> None:
    await case.fetch(FILE)
    case.server.forget_tokens()
    results = await asyncio.gather(*(case.fetch(FILE) for _ in range(4)))
    assert all(isinstance(one, FetchedDocument) for [one] in results)
    assert len(case.server.tokens) == 2


async def test_a_401_for_the_new_token_too_is_the_end(case: DriveCase) -> None:
    case.server.faults.append(Fault("get", 401, "authError", times=9))
    with pytest.raises(AccountError, match=f"rejects even a new token of {EMAIL}"):
        await case.fetch(FILE)
    assert len(case.server.calls("get")) == 2


async def test_a_token_that_nobody_can_renew_must_be_replaced(case: DriveCase) -> None:
    case.write_credentials(plain={"type": "bearer", "token": "ya29.old"})
    with pytest.raises(AccountError, match="'plain': it is expired or revoked: replace it"):
        await case.fetch(FILE, credential="plain")
    case.write_credentials(plain={"type": "bearer", "token": case.server.issue_token()})
    [found] = await case.fetch(FILE, credential="plain")
    assert isinstance(found, FetchedDocument), "a changed credentials file counts at once"


@pytest.mark.row("S003-43")
@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"refresh_token": "1//revoked"}, "the refresh token is expired or revoked: make a new one"),
        ({"client_secret": "wrong"}, "check client_id and client_secret"),
    ],
)
async def test_what_google_has_against_a_refresh_token_is_told_with_the_remedy(
    case: DriveCase, changed: dict[str, str], told: str
) -> None:
    case.write_credentials(oauth=case.oauth(**changed))
    with pytest.raises(ConnectorAuthError, match=told) as caught:
        await case.fetch(FILE, credential="oauth")
    assert caught.value.code == "ERR_CONNECTOR_AUTH"
    assert case.pauses == [], "asking again is no use"


async def test_what_google_has_against_a_service_account_is_told_with_the_remedy(case: DriveCase) -> None:
    case.write_credentials(account=case.account(private_key=pem(new_key())))
    with pytest.raises(AccountError, match=r"Invalid JWT Signature.*make a new key for the service account"):
        await case.fetch(FILE)
    case.write_credentials(account=case.account(client_email="gone@project.iam.example"))
    with pytest.raises(AccountError, match="account not found"):
        await case.fetch(FILE)
    case.write_credentials(account=case.account() | {"subject": "ann@example.org"})
    case.server.faults.append(Fault("token", 401, "unauthorized_client", "Client is unauthorized."))
    with pytest.raises(AccountError, match=r"let an administrator allow it to act for ann@example\.org"):
        await case.fetch(FILE)


async def test_a_clock_that_is_wrong_is_told(case: DriveCase) -> None:
    account = Account("named", _credential(case, case.account()), case.wire, now=lambda: 1_000_000_000.0)
    with pytest.raises(AccountError, match=r"Signature has expired.*check this machine's clock"):
        await account.get_token()


@pytest.mark.parametrize("key", ["no key at all", "-----BEGIN PRIVATE KEY-----\nQUJD\n-----END PRIVATE KEY-----"])
async def test_a_key_that_is_none_is_told_without_it(case: DriveCase, key: str) -> None:
    case.write_credentials(account=case.account(private_key=key))
    with pytest.raises(AccountError, match="is not an RSA key: take it from Google's key file as it is") as caught:
        await case.fetch(FILE)
    assert key not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("body", ["", "<html>", "[]", '{"access_token": 7}', '{"access_token": "a\\r\\nhost: x"}'])
async def test_a_token_endpoint_that_answers_nonsense_is_told(case: DriveCase, body: str) -> None:
    case.server.faults.append(Fault("token", body=body))
    with pytest.raises(ConnectorError, match="answered without an access token; try again later"):
        await case.fetch(FILE)


async def test_a_token_endpoint_in_trouble_is_asked_again(case: DriveCase) -> None:
    case.server.faults.append(Fault("token", 503, "backend", times=2))
    [found] = await case.fetch(FILE)
    assert isinstance(found, FetchedDocument)
    assert case.pauses == [1.0, 2.0]


async def test_a_token_is_told_to_nobody_else(case: DriveCase, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    async with drive_case(tmp_path / "other") as stranger:
        case.server.redirects[FILE] = f"{stranger.server.url}/drive/v3/files/{FILE}?alt=media"
        [found] = await case.fetch(FILE)
        assert isinstance(found, MissedDocument)
        [asked] = stranger.server.calls("media")
        assert "authorization" not in asked.headers


@pytest.mark.parametrize("name", [None, "other"])
async def test_a_credential_that_is_not_there_is_told_with_those_that_are(case: DriveCase, name: str | None) -> None:
    with pytest.raises(ConnectorAuthError, match="account, oauth"):
        await case.fetch(FILE, credential=name)


@pytest.mark.row("S003-10")
async def test_no_secret_is_ever_logged_or_told(case: DriveCase, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    told: list[str] = []

    async def look(credential: str) -> None:
        try:
            told.extend(map(repr, await case.fetch(FILE, credential=credential)))
        except AgentError as error:
            told.extend((repr(error), str(error.to_failure()), "".join(traceback.format_exception(error))))

    for credential in ("account", "oauth"):
        await look(credential)
        for fault in (Fault("get", 403), Fault("get", 401, times=2), Fault("token", 400), Fault("media", 500, times=9)):
            case.server.faults[:] = [fault]
            case.server.forget_tokens()
            await look(credential)
    secrets = [*Credentials(case.credentials_path).list_secrets(), *case.server.tokens]
    secrets += [form["assertion"] for form in case.server.forms if "assertion" in form]
    assert len(secrets) > 6
    assert len(told) > 8
    for secret in secrets:
        assert secret not in caplog.text
        assert not any(secret in one for one in told)
