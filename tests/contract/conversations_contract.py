"""The contract of every conversation store. A driver's test module subclasses it and provides `store`."""

import asyncio
import json
from typing import Protocol

import pytest

from agent.core.errors import BadRequestError
from agent.core.events import RunCreated
from agent.core.models import AgentRequest, Room
from agent.runs.conversation_list import TOP, ConversationList, ListPosition
from agent.runs.run_search import RunFilter, RunSearch
from agent.storage.journal import ConversationStore, Journal
from agent.storage.run_deletion import delete_runs
from gateway.bootstrap_database import Storage, build_statements


class Stores(Protocol):
    """A store's conversations, and the journal beside them."""

    @property
    def journal(self) -> Journal: ...

    @property
    def conversations(self) -> ConversationStore: ...


class ConversationsContract:
    """The suite. Every test gets an empty store."""

    @pytest.fixture
    def store(self) -> Stores:
        raise AssertionError("a driver's test class gives its own `store` fixture")

    @pytest.fixture
    def conversations(self, store: Stores) -> ConversationStore:
        return store.conversations

    async def test_an_unknown_conversation_is_empty(self, conversations: ConversationStore) -> None:
        assert await conversations.list_turns("local", "chat") == []

    async def test_exchanges_come_back_in_order(self, conversations: ConversationStore) -> None:
        await conversations.add_exchange("local", "chat", "run_1", "one?", "1")
        await conversations.add_exchange("local", "chat", "run_2", "two?", "2")
        assert await conversations.list_turns("local", "chat") == [
            ("user", "one?"),
            ("assistant", "1"),
            ("user", "two?"),
            ("assistant", "2"),
        ]

    async def test_the_newest_turns_are_kept_when_there_are_too_many(self, conversations: ConversationStore) -> None:
        for number in range(5):
            await conversations.add_exchange("local", "chat", f"run_{number}", f"q{number}", f"a{number}")
        assert await conversations.list_turns("local", "chat", limit=3) == [
            ("assistant", "a3"),
            ("user", "q4"),
            ("assistant", "a4"),
        ]

    async def test_a_run_is_remembered_once(self, conversations: ConversationStore) -> None:
        await conversations.add_exchange("local", "chat", "run_1", "one?", "1")
        await conversations.add_exchange("local", "chat", "run_1", "one?", "1 again, after a crash")
        assert await conversations.list_turns("local", "chat") == [("user", "one?"), ("assistant", "1")]

    async def test_owners_and_conversations_do_not_mix(self, conversations: ConversationStore) -> None:
        await conversations.add_exchange("alice", "chat", "run_1", "secret?", "s")
        await conversations.add_exchange("bob", "chat", "run_2", "open?", "o")
        await conversations.add_exchange("bob", "other", "run_3", "else?", "e")
        assert await conversations.list_turns("bob", "chat") == [("user", "open?"), ("assistant", "o")]

    async def test_writers_at_once_lose_nothing(self, conversations: ConversationStore) -> None:
        await asyncio.gather(
            *(
                conversations.add_exchange("local", "chat", f"run_{n}", f"q{n}", f"a{n}", tainted=True)
                for n in range(20)
            )
        )
        turns = await conversations.list_turns("local", "chat", limit=100)
        assert sorted(turns) == sorted(
            [("user", f"q{n}") for n in range(20)] + [("assistant", f"a{n}") for n in range(20)]
        )
        # an exchange stays together
        assert [role for role, _ in turns] == ["user", "assistant"] * 20

    async def test_half_characters_are_mended(self, conversations: ConversationStore) -> None:
        await conversations.add_exchange("local", "chat", "run_1", "a\ud800", "\udfffb")
        assert await conversations.list_turns("local", "chat") == [
            ("user", "a\N{REPLACEMENT CHARACTER}"),
            ("assistant", "\N{REPLACEMENT CHARACTER}b"),
        ]

    async def test_a_conversation_knows_whether_it_rests_on_something_from_outside(
        self, conversations: ConversationStore
    ) -> None:
        assert not await conversations.is_tainted("local", "chat")
        await conversations.add_exchange("local", "chat", "run_1", "one?", "1", tainted=True)
        await conversations.add_exchange("local", "chat", "run_2", "two?", "2")
        assert await conversations.is_tainted("local", "chat")
        assert not await conversations.is_tainted("local", "chat", limit=2), "only what is still told counts"
        assert not await conversations.is_tainted("local", "other")
        assert not await conversations.is_tainted("bob", "chat")

    async def test_a_branch_is_without_the_others(self, store: Stores) -> None:
        follows = {"run_1": None, "run_2": None, "run_3": "run_1", "run_4": "run_3", "run_5": "root"}
        for run_id, parent in follows.items():
            request = AgentRequest(prompt="?", conversation_id="chat", parent=parent)
            body = RunCreated(request=request, room=Room(id="r"), owner="local")
            await store.journal.create_run(run_id, body, worker=None, lease_s=1)
            await store.conversations.add_exchange("local", "chat", run_id, run_id, "a", tainted=run_id == "run_2")

        async def list_questions(parent: str | None) -> list[str]:
            turns = await store.conversations.list_turns("local", "chat", parent=parent)
            return [text for role, text in turns if role == "user"]

        assert await list_questions("run_2") == ["run_1", "run_2"], "without a parent: a line"
        assert await list_questions("run_4") == ["run_1", "run_3", "run_4"]
        assert await list_questions("run_5") == ["run_5"]
        assert await list_questions("root") == []
        assert len(await list_questions(None)) == 5
        assert await store.conversations.is_tainted("local", "chat", parent="run_2")
        assert not await store.conversations.is_tainted("local", "chat", parent="run_4")

    async def test_a_run_without_its_conversation_adds_nothing_to_it(self, store: Storage) -> None:
        request = AgentRequest(prompt="?", conversation_id="chat")
        body = RunCreated(request=request, room=Room(id="r"), owner="local")
        await store.journal.create_run("run_1", body, worker=None, lease_s=1)
        await build_statements(store).write("UPDATE runs SET conversation_id = NULL")
        await store.conversations.add_exchange("local", "chat", "run_1", "secret?", "s")
        assert await store.conversations.list_turns("local", "chat") == []

    async def test_the_newest_turn_names_its_run(self, store: Stores) -> None:
        assert await store.conversations.find_last_run("local", "chat") is None
        for run_id, parent in {"run_1": None, "run_2": None, "run_3": "run_1"}.items():
            request = AgentRequest(prompt="?", conversation_id="chat", parent=parent)
            body = RunCreated(request=request, room=Room(id="r"), owner="local")
            await store.journal.create_run(run_id, body, worker=None, lease_s=1)
            await store.conversations.add_exchange("local", "chat", run_id, "?", "a")
        assert await store.conversations.find_last_run("local", "chat") == "run_3"
        assert await store.conversations.find_last_run("local", "chat", parent="run_2") == "run_2"
        assert await store.conversations.find_last_run("local", "chat", parent="root") is None
        assert await store.conversations.find_last_run("bob", "chat") is None
        assert await store.conversations.list_answer_runs("local", "chat") == ["run_1", "run_2", "run_3"]
        assert await store.conversations.list_answer_runs("local", "chat", parent="run_3") == ["run_1", "run_3"]
        assert await store.conversations.list_answer_runs("bob", "chat") == []

    async def test_letters_of_all_alphabets_are_found_in_either_case(self, store: Storage) -> None:
        statements = build_statements(store)
        for number, words in enumerate(("Fähre nach Åland", "nothing", "other")):
            request = AgentRequest(prompt=words, conversation_id=f"web-{number}")
            body = RunCreated(request=request, room=Room(id="r"), owner="local")
            await store.journal.create_run(f"run_{number}", body, worker=None, lease_s=1)
        await store.conversations.add_exchange("local", "web-1", "run_1", "nothing", "Öland by boat")
        await statements.write(
            "INSERT INTO client_conversations (owner, id, metadata, created) VALUES (?, ?, ?, ?)",
            "local", "web-2", json.dumps({"title": "Übersicht", "collection": "kelp"}), 0.0,
        )  # fmt: skip
        conversations, runs = ConversationList(statements), RunSearch(statements)
        for query, expected in {"ÅLAND": "web-0", "fÄHRE": "web-0", "öLAND": "web-1", "üBER": "web-2"}.items():
            assert [one.id for one in await conversations.list_newest("local", limit=9, query=query)] == [expected]
        for query in ("collection", "kelp", "u00dc"):
            assert await conversations.list_newest("local", limit=9, query=query) == [], "only titles and messages"
        found = await runs.list_runs("local", RunFilter(query="åland"), 9)
        assert [one.run_id for one in found] == ["run_0"]

    async def test_runs_are_searched_by_all_words_of_their_requests(self, store: Storage) -> None:
        statements = build_statements(store)
        asked = {
            "run_long": f"Please read this:\n{'filler ' * 60}\n\tand then\n\tcall 100% of Åland's  Harbours_today",
            "run_deep": f"{'word ' * 3000}kelp",
            "run_past": f"{'word ' * 20_000}seaweed",
            "run_short": "kelp\x00 and \ud800 mussels",
            "run_hidden": "and then call nobody",
            "run_blank": "",
        }
        for run_id, prompt in asked.items():
            body = RunCreated(
                request=AgentRequest(prompt=prompt), room=Room(id="kelp"), owner="local", hidden="hidden" in run_id
            )
            await store.journal.create_run(run_id, body, worker=None, lease_s=1)
        runs = RunSearch(statements)

        async def search(query: str, owner: str | None = "local") -> set[str]:
            return {row.run_id for row in await runs.list_runs(owner, RunFilter(query=query), 9)}

        assert await search("AND then call") == {"run_long"}, "beyond the title, across lines, nothing hidden"
        assert await search("100% of ÅLAND's harbours_TODAY") == {"run_long"}
        assert await search("100_ of") == set(), "signs mean themselves"
        assert await search("\n kelp \t") == {"run_deep", "run_short"}
        assert await search("seaweed") == set(), "the beginning of a very long request"
        assert await search("\x00 and \ud800 mussels") == {"run_short"}
        assert await search("run_blank") == {"run_blank"}
        assert await search("kelp", "bob") == set()
        assert await search("kelp", None) == {"run_deep", "run_short"}
        await delete_runs(statements, ["run_deep"])
        assert await search("kelp") == {"run_short"}
        assert await statements.read("SELECT run_id FROM request_words WHERE run_id = 'run_deep'") == []

    async def test_a_run_of_an_earlier_version_is_searched_by_its_title(self, store: Storage) -> None:
        statements = build_statements(store)
        body = RunCreated(request=AgentRequest(prompt="Kelp and mussels"), room=Room(id="r"), owner="local")
        await store.journal.create_run("run_1", body, worker=None, lease_s=1)
        await statements.write("DELETE FROM request_words")  # as a process of that version leaves it
        assert [row.run_id for row in await RunSearch(statements).list_runs(None, RunFilter(query="AND muss"), 9)]

    async def test_the_list_is_paged_past_conversations_of_one_moment(self, store: Storage) -> None:
        statements = build_statements(store)
        for number in range(14):
            request = AgentRequest(prompt="?", conversation_id=f"web-{number // 2}")  # two runs each
            body = RunCreated(request=request, room=Room(id="r"), owner="local")
            await store.journal.create_run(f"run_{number}", body, worker=None, lease_s=1)
        await statements.write("UPDATE runs SET created_at = 1800000000.1 WHERE run_id <> 'run_0'")
        conversations = ConversationList(statements)
        listed: list[str] = []
        position = TOP
        while page := await conversations.list_newest("local", limit=3, before=position):
            assert len(page) == 3 or len(listed) == 6, "only the last page is not full"
            listed += [one.id for one in page]
            position = ListPosition.parse(page[-1].position.format())
        assert sorted(listed) == [f"web-{number}" for number in range(7)]
        newest = await conversations.list_newest("local", limit=7, before=ListPosition.parse("1800000000.1"))
        assert newest == [], "a time alone, as earlier versions gave it"
        odd = ListPosition.parse("1800000000.2~a\ud800\x00")
        assert len(await conversations.list_newest("local", limit=9, before=odd)) == 7
        assert await conversations.list_newest("local", limit=9, query="a\ud800\x00") == []
        with pytest.raises(BadRequestError, match="before"):
            ListPosition.parse("yesterday~web-1")
