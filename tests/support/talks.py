"""Conversations about pipelines over HTTP: a folder of papers, and a person who talks to the gateway about it."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

API = "/api/v2/agent/conversations"
ABSTRACT = (
    "# Paper {number}\n\n## Abstract\n\nWe study the growth of kelp forest {number} [1]. Keywords: kelp, sea.\n\n"
    "## Introduction\n\nKelp grows in cold water, as Larsen et al. have shown [2].\n\n## Methodology\n\nWe dived.\n\n"
    "## Conclusions\n\nForest {number} grew by {number} metres.\n\n## References\n\n[1] Larsen, doi:10.1/x\n"
)


def papers(data_dir: Path, count: int = 6) -> Path:
    """A folder of research papers, where the gateway may read."""
    folder = data_dir / "files" / "papers"
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        (folder / f"paper{number}.md").write_text(ABSTRACT.format(number=number))
    return folder


def frames(text: str) -> list[dict[str, Any]]:
    """The objects of a stream; it holds nothing but `data: {...}` lines, blank ones and comments."""
    lines = [line for line in text.splitlines() if line and not line.startswith(":")]
    assert all(line.startswith("data: ") for line in lines), text
    return [json.loads(line.removeprefix("data: ")) for line in lines]


@dataclass
class Talk:
    """One conversation as its user has it."""

    client: httpx.AsyncClient
    id: str
    source_id: str

    async def say(self, message: str) -> list[dict[str, Any]]:
        """The stream that answers; its last object is `done`, and only that one."""
        response = await self.client.post(f"{API}/{self.id}/messages", json={"message": message})
        assert response.status_code == 200, response.text
        assert response.headers["content-type"].startswith("text/event-stream")
        found = frames(response.text)
        assert [one["type"] for one in found].count("done") == 1
        assert found[-1]["type"] == "done"
        return found

    async def ask(self, message: str) -> httpx.Response:
        """The answer as one JSON object."""
        return await self.client.post(f"{API}/{self.id}/messages", json={"message": message, "stream": False})

    async def look(self) -> dict[str, Any]:
        """All that is known."""
        response = await self.client.get(f"{API}/{self.id}")
        assert response.status_code == 200, response.text
        found: dict[str, Any] = response.json()
        return found

    async def apply(self, name: str, *, force: bool = False) -> httpx.Response:
        """Apply by the door."""
        return await self.client.post(f"{API}/{self.id}/apply", json={"collection_name": name, "force": force})


async def talk(client: httpx.AsyncClient, folder: Path) -> Talk:
    """A new conversation about a folder."""
    source = await client.post("/v1/sources", json={"source_identifier": str(folder)})
    assert source.status_code == 201, source.text
    source_id = source.json()["id"]
    made = await client.post(API, json={"source_id": source_id})
    assert made.status_code == 201, made.text
    assert (made.json()["status"], made.json()["source_id"]) == ("active", source_id)
    return Talk(client, made.json()["id"], source_id)


def read_answer(found: list[dict[str, Any]]) -> str:
    """The text of a stream."""
    return "".join(one["content"] for one in found if one["type"] == "text")


def kinds(found: list[dict[str, Any]]) -> set[str]:
    """The types of objects in a stream."""
    return {one["type"] for one in found}
