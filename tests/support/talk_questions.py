"""Conversations about documents (`tests/bench/talks`): asked over HTTP, and judged by the words of the answer."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from agent.answers.evidence import contains_no_answer_text
from agent.core.bounded_yaml import load_trusted_yaml

TALKS = Path(__file__).parents[1] / "bench" / "talks"
DOCUMENTS = {"en": "harrow.md", "sv": "nordvik.md", "de": "lindhof.md"}


@dataclass(frozen=True)
class Talk:
    """A conversation. `expect` holds the alternatives of each part of the last answer; () if there is no answer."""

    id: str
    turns: tuple[str, ...]
    expect: tuple[tuple[str, ...], ...]

    @property
    def language(self) -> str:
        return self.id[:2]


@dataclass(frozen=True)
class TalkResult:
    """The last answer of a conversation, whether it is right, and the model calls of its turn."""

    talk: Talk
    answer: str
    searches: tuple[str, ...]
    model_calls: int

    @property
    def is_right(self) -> bool:
        if not self.talk.expect:
            return contains_no_answer_text(self.answer)
        text = " ".join(self.answer.casefold().replace("\u00a0", " ").split())
        return all(any(one.casefold() in text for one in group) for group in self.talk.expect)


def read_talks() -> list[Talk]:
    """The conversations of the set."""
    rows = load_trusted_yaml((TALKS / "talks.yaml").read_text("utf-8"))
    return [
        Talk(row["id"], tuple(row["turns"]), tuple(tuple(group) for group in row.get("expect", ()))) for row in rows
    ]


async def upload_documents(client: httpx.AsyncClient) -> None:
    """Puts each handbook into the collection of its language."""
    for language, name in DOCUMENTS.items():
        data = {"collection": f"talks-{language}"}
        sent = await client.post("/v1/documents", files={"file": (name, (TALKS / name).read_bytes())}, data=data)
        assert sent.status_code == 201, sent.text


async def hold_talks(client: httpx.AsyncClient, talks: Sequence[Talk]) -> AsyncIterator[TalkResult]:
    """Asks every turn of each conversation at `/query`, each conversation in a session of its own."""
    for talk in talks:
        body: dict[str, Any] = {}
        run = ""
        for turn in talk.turns:
            sent = await client.post(
                "/query",
                json={
                    "user_message": turn,
                    "session_id": talk.id,
                    "user_id": "u",
                    "collection": f"talks-{talk.language}",
                },
            )
            assert sent.status_code == 200, sent.text
            body, run = sent.json(), sent.headers["x-stepgate-run-id"]
        yield await _read_told(client, talk, body, run)


async def _read_told(client: httpx.AsyncClient, talk: Talk, body: dict[str, Any], run: str) -> TalkResult:
    plan = (await client.get(f"/v1/runs/{run}")).json()["plan"]
    searches = [str(step["args"].get("query")) for step in plan["steps"] if step["tool"] == "search_knowledge"]
    calls = [one for one in body["trace"] if one["usage"]]
    return TalkResult(talk, str(body["final_response"]["content"]), tuple(searches), len(calls))
