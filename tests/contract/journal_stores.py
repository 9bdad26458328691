"""What the journal's contract suites share: the store under test, its clock, and small logs."""

from typing import Protocol

import pytest

from agent.core.events import EventDraft, GateChecked, RunCreated, RunSucceeded
from agent.core.models import AgentRequest, Room
from agent.storage.journal import Journal

LEASE_S = 15.0
DEADLINE_S = 30.0
"""How long a test waits for what must happen, in seconds; never reached when it happens."""


class Clock:
    """The store's time in UTC seconds since 1970, moved by hand."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now

    def pass_lease(self) -> None:
        """Lets every lease given so far expire."""
        self.now += LEASE_S + 1


class Stores(Protocol):
    """One empty store. Closes everything opened here."""

    clock: Clock

    async def open(self) -> Journal:
        """Opens an own driver object on the store."""
        ...


def make_run_created(prompt: str = "hello", *, owner: str = "local", hidden: bool = False) -> RunCreated:
    """The first event of a run."""
    request = AgentRequest(prompt=prompt, conversation_id="chat-1")
    return RunCreated(request=request, room=Room(id="test"), owner=owner, hidden=hidden)


def make_note(text: str) -> EventDraft:
    """An event that is neither first nor last."""
    return EventDraft(GateChecked(gate="test", passed=True, reason=text), "s1", 2)


def make_end() -> EventDraft:
    """The end of a run."""
    return EventDraft(RunSucceeded())


async def new_run(
    journal: Journal, run_id: str = "run_1", *, worker: str = "a", owner: str = "local", hidden: bool = False
) -> str:
    """Creates a run that `worker` has claimed and returns its id."""
    await journal.create_run(run_id, make_run_created(owner=owner, hidden=hidden), worker=worker, lease_s=LEASE_S)
    return run_id


async def read_seqs(journal: Journal, run_id: str) -> list[int]:
    """The numbers of the events in the log."""
    return [event.seq for event in await journal.read_events(run_id)]


class StoreFixtures:
    """The base class of the suites. A driver's test class provides `stores`, new for every test."""

    @pytest.fixture
    def stores(self) -> Stores:
        raise AssertionError("a driver's test class gives its own `stores` fixture")

    @pytest.fixture
    async def journal(self, stores: Stores) -> Journal:
        return await stores.open()

    @pytest.fixture
    async def other(self, stores: Stores) -> Journal:
        """The journal as another process has it."""
        return await stores.open()
