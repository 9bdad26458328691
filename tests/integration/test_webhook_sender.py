"""`WebhookSender` on a real outbox, with real receivers: owners beside each other, and answers that are unusual."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from agent.core.errors import BusyError
from agent.core.events import Event, EventDraft, RunCreated, RunFailed
from agent.core.models import AgentRequest, Room, Webhook
from agent.net import SafeClient
from agent.storage.credentials import Credentials
from agent.storage.journal import Journal
from agent.storage.journal_sqlite import open_sqlite
from agent.storage.sql import SqliteClient
from gateway.features.schedules.engine.webhook_outbox import MAX_PER_OWNER, WebhookDelivery, WebhookOutbox
from gateway.features.schedules.engine.webhooks.sender import WebhookSender
from tests.support.webhook_receiver import WebhookReceiver

SECRET_PATH = "/services/T0/B0/SECRET-TOKEN?sig=SECRET-TOO"


@dataclass(frozen=True)
class Opened:
    """A sender with its outbox, and the journal of the runs."""

    sender: WebhookSender
    journal: Journal

    async def read_events(self, run_id: str, *, owner: str = "", after: int = 0) -> list[Event]:
        return await self.journal.read_events(run_id, after=after)

    async def end_run(self, owner: str, run_id: str, url: str) -> None:
        """Stores a run that has ended, with its webhook."""
        await self.sender.register(owner, run_id, Webhook(url=url))
        created = RunCreated(request=AgentRequest(prompt="x"), room=Room(id="r", name="R"), owner=owner)
        claim = await self.journal.create_run(run_id, created, worker="w", lease_s=60)
        failed = RunFailed(failure=BusyError("no").to_failure())
        await self.journal.append(run_id, claim.epoch, [EventDraft(failed)])

    async def send_one(self, url: str) -> WebhookDelivery:
        """The delivery of a run's end to `url`, after one attempt."""
        await self.end_run("anna", "run_1", url)
        async with self.sender.run():
            for _ in range(200):
                (found,) = await self.sender.outbox.list_newest("anna", limit=1)
                if found.last_status is not None or found.last_error:
                    break
                await asyncio.sleep(0.02)
        return found


@asynccontextmanager
async def open_sender(folder: Path, hosts: Sequence[str]) -> AsyncIterator[Opened]:
    store = await open_sqlite(folder / "stepgate.db", time.time)
    client = SafeClient(hosts)
    outbox = WebhookOutbox(SqliteClient(store.database), time.time)
    sender = WebhookSender(outbox, client, Credentials(folder / "none.json"), lambda: opened, run_url="", timeout_s=2)
    opened = Opened(sender, store.journal)
    try:
        yield opened
    finally:
        await client.aclose()
        await store.close()


async def test_a_slow_receiver_of_one_owner_does_not_take_the_places_of_others(tmp_path: Path) -> None:
    with WebhookReceiver(*[0] * 30) as slow, WebhookReceiver() as quick:
        async with open_sender(tmp_path, (slow.host, quick.host)) as opened:
            for number in range(30):
                await opened.end_run("anna", f"run_{number}", slow.url)
            async with opened.sender.run():
                await asyncio.to_thread(slow.wait_for, MAX_PER_OWNER)
                for _ in range(10):  # more runs end
                    opened.sender.wake()
                    await asyncio.sleep(0.02)
                assert len(slow.posts) == MAX_PER_OWNER
                await opened.end_run("ben", "run_b", quick.url)
                opened.sender.wake()
                await asyncio.to_thread(quick.wait_for, 1, 1.0)


@pytest.mark.parametrize("location", ["http://10.0.0.1:9000/login", "file:///etc/passwd", "http://[", "/elsewhere"])
async def test_a_redirect_is_a_failed_attempt_wherever_it_leads(tmp_path: Path, location: str) -> None:
    with WebhookReceiver(302, headers=[("location", location)]) as receiver:
        async with open_sender(tmp_path, [receiver.host]) as opened:
            found = await opened.send_one(receiver.url)
    assert (found.state, found.last_status) == ("open", 302)
    assert found.last_error == "the receiver answered 302: redirects are not followed"


async def test_the_body_of_an_answer_is_not_read(tmp_path: Path) -> None:
    with WebhookReceiver(200, headers=[("content-encoding", "br")]) as receiver:
        async with open_sender(tmp_path, [receiver.host]) as opened:
            found = await opened.send_one(receiver.url)
    assert (found.state, found.last_status) == ("delivered", 200)


@pytest.mark.parametrize("end", ["refused", "silent", "inside"])
async def test_no_log_and_no_error_has_more_of_an_address_than_its_host(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, end: str
) -> None:
    for name in ("httpx", "httpcore"):  # the gateway logs their warnings only
        caplog.set_level(logging.WARNING, name)
    caplog.set_level(logging.DEBUG)
    with WebhookReceiver(0) as receiver:
        host = "127.0.0.1:1" if end == "refused" else receiver.host
        async with open_sender(tmp_path, [] if end == "inside" else [host]) as opened:
            found = await opened.send_one(f"http://{host}{SECRET_PATH}")
    assert found.last_error
    assert f"webhook {found.id}: attempt 1" in caplog.text
    assert "SECRET" not in found.last_error + caplog.text
