"""The journal and the conversations on PostgreSQL, held to the same contracts, and what only a server can do."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
import sqlalchemy
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from agent.core.conversations_postgres import PostgresConversations
from agent.core.errors import StoreError, StoreNewerError
from agent.core.journal import Journal
from agent.core.journal_postgres import PostgresStore, open_postgres
from agent.core.migrate import downgrade, postgres_engine, upgrade
from agent.core.postgres import without_password
from agent.core.schema import metadata
from tests.contract.conversations_contract import ConversationsContract
from tests.contract.journal_contract import JournalContract
from tests.contract.journal_stores import Clock, new_run, note, seqs


class PostgresStores:
    """One database; every driver object has a pool and a listener of its own."""

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
        """Close whatever a test has left open."""
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
    async def conversations(self, url: str) -> AsyncIterator[PostgresConversations]:
        store = await open_postgres(url)
        yield store.conversations
        await store.close()


async def test_two_processes_may_open_an_empty_database_at_once(url: str) -> None:
    stores = await asyncio.gather(*(open_postgres(url) for _ in range(3)))
    for store in stores:
        await store.journal.check()
        await store.close()


async def test_a_tail_of_another_process_is_woken_by_the_server(url: str) -> None:
    writer, reader = await open_postgres(url), await open_postgres(url)
    await new_run(writer.journal)
    notified = asyncio.Event()

    async def never() -> bool:
        """Stands for the poll: it sees nothing, so only a notification can end the wait."""
        return notified.is_set()

    waiting = asyncio.create_task(reader.journal.wakeups.wait("run_1", never, timeout_s=60))
    await asyncio.sleep(0)
    await writer.journal.append("run_1", 1, [note("x")])
    async with asyncio.timeout(20):
        await waiting
    await writer.close()
    await reader.close()


async def test_a_server_that_drops_every_connection_costs_one_error_and_nothing_else(url: str) -> None:
    store = await open_postgres(url)
    await new_run(store.journal)
    await store.journal.append("run_1", 1, [note("before")])
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    for _ in range(5):
        with contextlib.suppress(StoreError):
            await store.journal.append("run_1", 1, [note("after")])
            break
    assert (await seqs(store.journal, "run_1"))[-1] == 3
    await store.close()


class Line:
    """The way to the server, over a port of its own, which can be `cut`: who comes then is sent away, and counted."""

    def __init__(self, url: str) -> None:
        self._url = urlsplit(url)
        self._open = set[asyncio.StreamWriter]()
        self.cut = False
        self.sent_away = 0

    @asynccontextmanager
    async def url(self) -> AsyncIterator[str]:
        """The server's address through this line."""
        server = await asyncio.start_server(self._come, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        try:
            who, at, _ = self._url.netloc.rpartition("@")
            yield urlunsplit(self._url._replace(netloc=f"{who}{at}127.0.0.1:{port}"))
        finally:
            self.hang_up()
            server.close()

    def hang_up(self) -> None:
        """Break every connection."""
        for writer in self._open:
            writer.transport.abort()

    async def _come(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.cut:
            self.sent_away += 1
            writer.close()
            return
        far = await asyncio.open_connection(self._url.hostname, self._url.port or 5432)
        self._open |= {writer, far[1]}
        await asyncio.gather(self._pass(reader, far[1]), self._pass(far[0], writer))

    @staticmethod
    async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65_536):
                writer.write(data)
        writer.close()


async def test_a_server_that_is_away_for_long_is_told_of_once_and_its_return_too(
    url: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.core.postgres._RECONNECT_SECONDS", 0.01)

    def told() -> list[str]:
        return [record.message for record in caplog.records if record.name == "agent.core.postgres"]

    line = Line(url)
    async with line.url() as through, asyncio.timeout(60):
        store = await open_postgres(through)
        line.cut = True
        line.hang_up()
        while line.sent_away < 30:  # noqa: ASYNC110 - the pool comes back too, but ever more rarely
            await asyncio.sleep(0.01)
        assert len(told()) == 1
        line.cut = False
        while len(told()) < 2:  # noqa: ASYNC110 - a log line wakes nobody
            await asyncio.sleep(0.01)
        await store.close()
    began, over = told()
    assert began.startswith("listening at ")
    assert over.startswith("over after ")


async def test_a_database_of_a_newer_version_is_refused(url: str) -> None:
    await (await open_postgres(url)).close()
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(StoreNewerError, match="newer version"):
        await open_postgres(url)


async def test_a_server_that_is_not_there_is_told_without_the_password() -> None:
    with pytest.raises(StoreError, match="AGENT_DATABASE_URL") as caught:
        await open_postgres("postgresql://ada:s3cret@127.0.0.1:9/db?connect_timeout=2")
    assert "s3cret" not in caught.value.message
    assert "s3cret" not in without_password("postgresql://ada:s3cret@host/db")


def test_migrations_make_the_schema_and_take_it_back(url: str) -> None:
    upgrade(postgres_engine(url))
    engine = postgres_engine(url)
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
    downgrade(postgres_engine(url))
    with engine.connect() as connection:
        assert sqlalchemy.inspect(connection).get_table_names() == ["alembic_version"]
    engine.dispose()


async def test_text_that_the_server_cannot_hold_is_stored_without_it(url: str) -> None:
    store = await open_postgres(url)
    await store.conversations.remember("local", "c", "run_1", "a\x00b", "\ud800")
    assert await store.conversations.history("local", "c") == [("user", "ab"), ("assistant", "\ufffd")]
    await store.close()
