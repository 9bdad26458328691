"""What can go wrong between Google Drive and us, and what becomes of it: asked again, resumed, missed, or told."""

import asyncio
import hashlib
import random
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.features.documents.engine.ingest.connectors.drive_api import FileChangedError
from gateway.features.documents.engine.ingest.connectors.drive_auth import AccountError
from gateway.features.documents.engine.ingest.connectors.port import FetchedDocument, MissedDocument
from gateway.features.documents.engine.ingest.connectors.source_client import ConnectorTransientError
from gateway.features.documents.engine.ingest.errors import ConnectorAuthError, ConnectorError, ConnectorNotFoundError
from tests.support.drive_case import DriveCase, drive_case
from tests.support.drive_server import EMAIL, EXPORT_LIMIT
from tests.support.drive_wire import Fault

TOP = "folder-top-0"
FILE = "file-big-00"
BIG = random.Random(3).randbytes(600_000)


@pytest.fixture
async def case(tmp_path: Path) -> AsyncIterator[DriveCase]:
    async with drive_case(tmp_path) as made:
        made.server.folder(TOP)
        made.server.file(FILE, "big.pdf", BIG, parent=TOP)
        yield made


async def _missed(case: DriveCase) -> MissedDocument:
    """The one thing in the folder, which cannot be had."""
    [found] = await case.fetch(TOP)
    assert isinstance(found, MissedDocument)
    assert found.source == f"gdrive:{TOP}/{FILE}"
    return found


@pytest.mark.row("S003-11")
@pytest.mark.parametrize("call", ["get", "media"])
@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (403, "rateLimitExceeded"),
        (403, "userRateLimitExceeded"),
        (429, "rateLimitExceeded"),
        (500, "internalError"),
        (503, "backendError"),
    ],
)
async def test_too_fast_and_in_trouble_is_asked_again_ever_later(
    case: DriveCase, call: str, status: int, reason: str
) -> None:
    case.server.faults.append(Fault(call, status, reason, times=3))
    assert await case.contents(FILE) == {"big.pdf": BIG}
    assert case.pauses == [1.0, 2.0, 4.0]


@pytest.mark.row("S003-11")
async def test_retry_after_is_kept_to(case: DriveCase) -> None:
    case.server.faults.append(Fault("list", 429, "rateLimitExceeded", retry_after="17"))
    assert await case.contents(TOP) == {"big.pdf": BIG}
    assert case.pauses == [17.0]


async def test_patience_ends(case: DriveCase) -> None:
    case.server.faults.append(Fault("media", 429, "rateLimitExceeded", times=99))
    missed = await _missed(case)
    assert isinstance(missed.error, ConnectorTransientError)
    assert not missed.gone
    assert len(case.server.calls("media")) == 5
    case.server.faults.append(Fault("get", 429, "rateLimitExceeded", times=99))
    with pytest.raises(ConnectorTransientError, match="try again later"):
        await case.fetch(TOP)


@pytest.mark.row("S003-43")
async def test_a_file_that_may_not_be_read_is_missed_with_whom_to_share_it(case: DriveCase) -> None:
    case.server.file("file-other0", "other.pdf", b"other", parent=TOP)
    message = "The user does not have sufficient permissions for this file."
    case.server.faults.append(Fault("media", 403, "insufficientFilePermissions", message, about=FILE))
    missed, other = await case.fetch(TOP)
    assert isinstance(other, FetchedDocument)
    assert isinstance(missed, MissedDocument)
    assert isinstance(missed.error, ConnectorAuthError)
    assert not missed.gone
    assert missed.error.message == f"Google Drive: {message} Share it with {EMAIL}, downloading allowed"
    assert missed.error.to_failure().details == {"reason": "insufficientFilePermissions"}
    case.server.faults.append(Fault("get", 403, "insufficientFilePermissions", message))
    with pytest.raises(ConnectorAuthError, match="Share it with the account that made the refresh token of"):
        await case.fetch(TOP, credential="oauth")


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("accessNotConfigured", "enable the Google Drive API"),
        ("insufficientPermissions", "must have the scope https://www.googleapis.com/auth/drive.readonly"),
        ("dailyLimitExceeded", "continue tomorrow"),
    ],
)
async def test_what_is_wrong_with_the_account_ends_the_walk(case: DriveCase, reason: str, told: str) -> None:
    case.server.file("file-other0", "other.pdf", b"other", parent=TOP)
    case.server.faults.append(Fault("media", 403, reason, times=99))
    with pytest.raises(AccountError, match=told):
        await case.fetch(TOP)
    assert len(case.server.calls("media")) == 1


@pytest.mark.parametrize(
    ("reason", "told"), [("cannotDownloadAbusiveFile", "malware or spam"), ("downloadQuotaExceeded", "too often")]
)
async def test_what_is_wrong_with_one_file_is_no_question_of_rights(case: DriveCase, reason: str, told: str) -> None:
    case.server.faults.append(Fault("media", 403, reason))
    error = (await _missed(case)).error
    assert type(error) is ConnectorError
    assert told in error.message


@pytest.mark.row("S003-44")
async def test_what_is_not_there_or_not_shared_is_not_found(case: DriveCase) -> None:
    with pytest.raises(ConnectorNotFoundError) as caught:
        await case.fetch("file-nowhere")
    assert caught.value.message == (
        f"Google Drive: File not found: file-nowhere. It is deleted, or not shared with {EMAIL}"
    )
    assert caught.value.code == "ERR_CONNECTOR_NOT_FOUND"
    case.server.faults.append(Fault("media", 404, "notFound"))
    missed = await _missed(case)
    assert missed.gone, "deleted between the list and the download"


async def test_an_export_that_is_too_large_is_told(case: DriveCase) -> None:
    case.server.document("native-big0", "Plan", bytes(EXPORT_LIMIT + 1))
    [missed] = await case.fetch("native-big0")
    assert isinstance(missed, MissedDocument)
    assert "Drive exports at most 10 MB" in missed.error.message


async def test_files_above_the_limit_are_not_begun_and_exports_are_broken_off(case: DriveCase) -> None:
    case.server.document("native-long", "Plan", bytes(2000))
    case.connector = case.connect(max_bytes=1000)
    missed = await _missed(case)
    assert missed.error.message == "it has 600000 bytes; at most 1000 are fetched"
    assert not case.server.calls("media")
    [other] = await case.fetch("native-long")
    assert isinstance(other, MissedDocument)
    assert "larger than 1000 bytes" in other.error.message
    assert list(case.workspace.iterdir()) == []


@pytest.mark.row("S003-13")
@pytest.mark.parametrize("etags", [False, True])
async def test_a_download_that_is_cut_off_goes_on_where_it_was(case: DriveCase, etags: bool) -> None:
    case.server.etags = etags
    case.server.faults += [Fault("media", cut_at=250_000), Fault("media", cut_at=100_000)]
    assert await case.contents(FILE) == {"big.pdf": BIG}
    first, second, third = (int(asked.headers.get("range", "bytes=0-")[6:-1]) for asked in case.server.calls("media"))
    assert 0 == first < second <= 250_000
    assert second < third <= second + 100_000
    assert list(case.workspace.iterdir()) == []


async def test_an_export_that_is_cut_off_begins_anew(case: DriveCase) -> None:
    case.server.document("native-doc0", "Plan", BIG)
    case.server.faults.append(Fault("export", cut_at=250_000))
    assert await case.contents("native-doc0") == {"Plan": BIG}
    assert ["range" in asked.headers for asked in case.server.calls("export")] == [False, False]


async def test_a_download_that_falls_silent_goes_on_where_it_was(case: DriveCase) -> None:
    case.wire = replace(case.wire, silence_s=0.2)
    case.connector = case.connect()
    case.server.faults.append(Fault("media", stall=True))
    assert await case.contents(FILE) == {"big.pdf": BIG}
    assert [asked.headers.get("range") for asked in case.server.calls("media")] == [None, "bytes=300000-"]


@pytest.mark.parametrize("after", [BIG[:250_000] + bytes(350_000), b"short", bytes(900_000)])
async def test_a_file_that_changes_while_it_is_fetched_is_fetched_as_it_became(case: DriveCase, after: bytes) -> None:
    item = case.server.items[FILE]

    async def change(_: float) -> None:
        item.content = after

    case.wire = replace(case.wire, back_off=replace(case.wire.back_off, sleep=change))
    case.connector = case.connect()
    case.server.faults.append(Fault("media", cut_at=300_000))
    [found] = await case.fetch(FILE)
    assert isinstance(found, FetchedDocument)
    assert found.output is not None
    assert found.output.checksum == hashlib.sha256(after).hexdigest()
    assert found.version == hashlib.md5(after).hexdigest()


async def test_bytes_that_never_fit_their_md5_are_not_handed_on(case: DriveCase) -> None:
    case.server.items[FILE].more["md5Checksum"] = "0" * 32
    missed = await _missed(case)
    assert isinstance(missed.error, FileChangedError)
    assert "Drive reports 00000000000000000000000000000000" in missed.error.message
    assert len(case.server.calls("media")) == 3
    assert list(case.workspace.iterdir()) == []


@pytest.mark.parametrize(
    "body", ["", "{", "[" * 100_000, "[]", '"text"', '{"files": 7}', '{"files": [{"id": "../x"}]}']
)
async def test_answers_that_are_nonsense_are_told_and_end_the_walk(case: DriveCase, body: str) -> None:
    case.server.faults.append(Fault("list", body=body))
    with pytest.raises(ConnectorError, match="try again later"):
        await case.fetch(TOP)
    case.server.faults.append(Fault("get", body=body))
    with pytest.raises(ConnectorError, match="try again later"):
        await case.fetch(TOP)


async def test_half_a_list_is_none(case: DriveCase) -> None:
    case.server.faults.append(Fault("list", body='{"files": [], "incompleteSearch": true}'))
    with pytest.raises(ConnectorError, match="did not list all of the folder"):
        await case.fetch(TOP)
    case.server.faults.append(Fault("list", body='{"files": [], "nextPageToken": "round"}', times=9))
    with pytest.raises(ConnectorError, match="lists the folder 'folder-top-0' without an end"):
        await case.fetch(TOP)


@pytest.mark.parametrize("body", ["<html>", "", '{"error": "odd"}', '{"error": {"errors": 7}}', "[1]"])
async def test_a_refusal_without_googles_shape_is_judged_by_its_status(case: DriveCase, body: str) -> None:
    for status, kind in ((403, ConnectorAuthError), (404, ConnectorNotFoundError), (400, ConnectorError)):
        case.server.faults.append(Fault("get", status, body=body))
        with pytest.raises(kind):
            await case.fetch(TOP)


async def test_when_drive_is_down_the_walk_ends_soon(case: DriveCase) -> None:
    for number in range(9):
        case.server.file(f"file-more-{number}", f"{number}.pdf", b"%d" % number, parent=TOP)
    case.server.faults.append(Fault("media", 503, "backendError", times=99))
    with pytest.raises(ConnectorTransientError):
        await case.fetch(TOP)
    assert len(case.server.calls("media")) == 3 * 5


async def test_files_that_fail_here_and_there_end_nothing(case: DriveCase) -> None:
    for number in range(8):
        case.server.file(f"file-more-{number}", f"{number}.pdf", b"%d" % number, parent=TOP)
        if number % 2:
            case.server.faults.append(Fault("media", 503, "backendError", about=f"file-more-{number}", times=99))
    found = await case.fetch(TOP)
    assert [isinstance(one, MissedDocument) for one in found] == [False, True] * 4 + [False]


async def test_a_folder_behind_a_shortcut_that_cannot_be_seen_ends_the_walk(case: DriveCase) -> None:
    case.server.folder("folder-else")
    case.server.shortcut("short-else0", "folder-else", parent=TOP)
    case.server.faults.append(Fault("get", 503, "backendError", about="folder-else", times=99))
    with pytest.raises(ConnectorTransientError):
        await case.fetch(TOP)
    case.server.shortcut("short-else0", FILE)
    case.server.items["short-else0"].parent = TOP
    case.server.items[FILE].parent = ""
    case.server.faults.append(Fault("get", 403, "forbidden", about=FILE))
    assert isinstance((await _missed(case)).error, ConnectorAuthError)


async def test_nothing_half_is_left_when_a_fetch_is_cancelled(case: DriveCase) -> None:
    case.server.faults.append(Fault("media", stall=True))
    task = asyncio.create_task(case.fetch(TOP))
    await case.server.stalled.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert list(case.workspace.iterdir()) == []


async def test_a_server_that_is_not_there_is_told(case: DriveCase) -> None:
    await case.server.__aexit__()
    with pytest.raises(ConnectorError, match="cannot be fetched"):
        await case.fetch(TOP)
    assert len(case.pauses) == 4
