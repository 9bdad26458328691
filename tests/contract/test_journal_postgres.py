"""The journal and the conversations on PostgreSQL, tested against the same contracts, and what only a server can do."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from agent.core.errors import StoreError, StoreNewerError
from agent.storage.journal import Journal
from agent.storage.journal_postgres import PostgresStore, open_postgres
from agent.storage.migrate import create_postgres_engine, create_tables
from agent.storage.postgres import CHANNEL, redact_password
from agent.storage.tables import metadata
from tests.contract.conversations_contract import ConversationsContract
from tests.contract.journal_contract import JournalContract
from tests.contract.journal_stores import Clock, make_note, new_run, read_seqs


class PostgresStores:
    """One database. Every driver object has its own pool and listener."""

    def __init__(self, url: str) -> None:
        self.clock = Clock()
        self._url = url
        self._opened: list[PostgresStore] = []

    async def open(self) -> Journal:
        """See `Stores.open`."""
        store = await open_postgres(self._url, self.clock)
        self._opened.append(store)
        return store.journal

    async def close(self) -> None:
        """Closes what a test has left open."""
        for store in self._opened:
            await store.close()


class TestPostgresJournal(JournalContract):
    @pytest.fixture
    async def stores(self, url: str) -> AsyncIterator[PostgresStores]:
        stores = PostgresStores(url)
        yield stores
        await stores.close()


class TestPostgresConversations(ConversationsContract):
    @pytest.fixture
    async def store(self, url: str) -> AsyncIterator[PostgresStore]:
        store = await open_postgres(url)
        yield store
        await store.close()


async def test_two_processes_may_open_an_empty_database_at_once(empty_url: str) -> None:
    stores = await asyncio.gather(*(open_postgres(empty_url) for _ in range(3)))
    for store in stores:
        await store.journal.check_writable()
        await store.close()


async def test_a_tail_of_another_process_is_woken_by_the_server(url: str) -> None:
    writer, reader = await open_postgres(url), await open_postgres(url)
    await new_run(writer.journal)
    notified = asyncio.Event()

    async def never() -> bool:
        """Replaces the poll: it sees nothing, so only a notification can end the wait."""
        return notified.is_set()

    waiting = asyncio.create_task(reader.journal.wakeups.wait("run_1", never, timeout_s=60))
    await asyncio.sleep(0)
    await writer.journal.append("run_1", 1, [make_note("x")])
    async with asyncio.timeout(20):
        await waiting
    await writer.close()
    await reader.close()


class Listener:
    """Collects the runs that the processes of a database notify of, up to and with the one that is `awaited`."""

    def __init__(self) -> None:
        self.awaited = ""
        self._listens = asyncio.Event()

    async def start(self, url: str) -> asyncio.Task[list[str]]:
        """The collecting task, once it listens."""
        task = asyncio.create_task(self._listen(url))
        async with asyncio.timeout(20):
            await self._listens.wait()
        return task

    async def _listen(self, url: str) -> list[str]:
        heard = []
        async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
            await connection.execute(f"LISTEN {CHANNEL}")
            self._listens.set()
            async for notice in connection.notifies(timeout=20):
                heard.append(notice.payload)
                if notice.payload == self.awaited:
                    break
        return heard


async def test_appends_in_quick_succession_are_notified_of_together(url: str) -> None:
    writer = await open_postgres(url)
    for run_id in ("run_1", "run_2"):
        await new_run(writer.journal, run_id)
    listener = Listener()
    listening = await listener.start(url)
    for number in range(60):
        await writer.journal.append("run_1", 1, [make_note(str(number))])
    listener.awaited = "run_2"
    await writer.journal.append("run_2", 1, [make_note("x")])
    heard = await listening
    assert 1 <= heard.count("run_1") < 60
    assert heard[-1] == "run_2"
    await writer.close()


async def test_a_process_that_ends_notifies_of_its_last_append(url: str) -> None:
    writer = await open_postgres(url)
    await new_run(writer.journal)
    listener = Listener()
    listener.awaited = "run_1"
    listening = await listener.start(url)
    await writer.journal.append("run_1", 1, [make_note("x")])
    await writer.close()
    assert await listening == ["run_1"]


async def test_a_server_that_drops_every_connection_costs_one_error_and_nothing_else(url: str) -> None:
    store = await open_postgres(url)
    await new_run(store.journal)
    await store.journal.append("run_1", 1, [make_note("before")])
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    for _ in range(5):
        with contextlib.suppress(StoreError):
            await store.journal.append("run_1", 1, [make_note("after")])
            break
    assert (await read_seqs(store.journal, "run_1"))[-1] == 3
    await store.close()


class Proxy:
    """A TCP proxy to the server. While it is `cut`, it closes and counts new connections."""

    def __init__(self, url: str) -> None:
        self._url = urlsplit(url)
        self._open = set[asyncio.StreamWriter]()
        self.cut = False
        self.sent_away = 0

    @asynccontextmanager
    async def url(self) -> AsyncIterator[str]:
        """Yields the server's URL through this proxy."""
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        try:
            who, at, _ = self._url.netloc.rpartition("@")
            yield urlunsplit(self._url._replace(netloc=f"{who}{at}127.0.0.1:{port}"))
        finally:
            self.drop_connections()
            server.close()

    def drop_connections(self) -> None:
        """Breaks every connection."""
        for writer in self._open:
            writer.transport.abort()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.cut:
            self.sent_away += 1
            writer.close()
            return
        far = await asyncio.open_connection(self._url.hostname, self._url.port or 5432)
        self._open |= {writer, far[1]}
        await asyncio.gather(self._forward(reader, far[1]), self._forward(far[0], writer))

    @staticmethod
    async def _forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65_536):
                writer.write(data)
        writer.close()


async def test_a_server_that_is_away_for_long_is_told_of_once_and_its_return_too(
    url: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.storage.postgres._RECONNECT_SECONDS", 0.01)

    def list_messages() -> list[str]:
        return [record.message for record in caplog.records if record.name == "agent.storage.postgres"]

    line = Proxy(url)
    async with line.url() as through, asyncio.timeout(60):
        store = await open_postgres(through)
        line.cut = True
        line.drop_connections()
        while line.sent_away < 30:  # noqa: ASYNC110 - the pool comes back too, but ever more rarely
            await asyncio.sleep(0.01)
        assert len(list_messages()) == 1
        line.cut = False
        while len(list_messages()) < 2:  # noqa: ASYNC110 - a log line wakes nobody
            await asyncio.sleep(0.01)
        await store.close()
    began, over = list_messages()
    assert began.startswith("notifications of ")
    assert over.startswith("recovered after ")


async def test_a_database_of_a_newer_version_is_refused(url: str) -> None:
    await (await open_postgres(url)).close()
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(StoreNewerError, match="newer version"):
        await open_postgres(url)


async def test_an_older_process_goes_on_while_and_after_a_newer_one_migrates(url: str) -> None:
    store = await open_postgres(url)
    run_id = await new_run(store.journal)
    async with await psycopg.AsyncConnection.connect(url) as newer:
        await newer.execute("ALTER TABLE runs ADD COLUMN later TEXT DEFAULT '' NOT NULL")
        await newer.execute("ALTER TABLE events ADD COLUMN later TEXT")
        await newer.execute("UPDATE alembic_version SET version_num = 'r999'")
        appended = asyncio.create_task(store.journal.append(run_id, 1, [make_note("during the migration")]))
        _, waiting = await asyncio.wait([appended], timeout=0.3)
        assert waiting, "it waits for the tables"
    await appended
    await store.journal.append(run_id, 1, [make_note("afterwards")])
    await new_run(store.journal, "run_2")
    assert await read_seqs(store.journal, run_id) == [1, 2, 3]
    with pytest.raises(StoreNewerError, match=r"schema r999, this one knows .*; upgrade Stepgate"):
        await open_postgres(url)
    await store.close()


async def test_a_server_that_is_not_there_is_told_without_the_password() -> None:
    with pytest.raises(StoreError, match="AGENT_DATABASE_URL") as caught:
        await open_postgres("postgresql://ada:s3cret@127.0.0.1:9/db?connect_timeout=2")
    assert "s3cret" not in caught.value.message
    assert "s3cret" not in redact_password("postgresql://ada:s3cret@host/db")


def test_the_tables_are_made_as_they_are_defined(empty_url: str) -> None:
    create_tables(create_postgres_engine(empty_url))
    engine = create_postgres_engine(empty_url)
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
    engine.dispose()


async def test_text_that_the_server_cannot_hold_is_stored_without_it(url: str) -> None:
    store = await open_postgres(url)
    await store.conversations.add_exchange("local", "c", "run_1", "a\x00b", "\ud800")
    assert await store.conversations.list_turns("local", "c") == [("user", "ab"), ("assistant", "\ufffd")]
    await store.close()


async def test_a_notification_is_sent_when_its_transaction_has_committed_and_not_by_it(url: str) -> None:
    store = await open_postgres(url)
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as listener:
        await listener.execute("LISTEN news")
        with contextlib.suppress(StoreError):
            async with store.database.transaction() as db:
                store.database.notify_after_commit(db, "news", "of a transaction that failed")
                await db.execute("SELECT 1 / 0")
        async with store.database.transaction() as db:
            for _ in range(3):
                store.database.notify_after_commit(db, "news", "written")
            cursor = await db.execute("SELECT pg_current_xact_id_if_assigned()")
            assert await cursor.fetchone() == (None,), "a NOTIFY gives its transaction an id"
        await store.close()  # sends what is not sent yet
        received = [notice.payload async for notice in listener.notifies(timeout=2)]
    assert received == ["written"]
