"""Asks the configured model about lists in two ways, and prints how often it names exactly the right entries.

It reads the list and names the entries by their numbers (the floor), or writes a filter as the gateway asks for it
(`agent.planning.selection`). Needs AGENT_LLM_BASE_URL and AGENT_MODEL_FAST; `--limit N` takes the first N questions,
`--show` prints each.
"""

import argparse
import asyncio
import json
import os
from collections.abc import Sequence
from pathlib import Path
from time import monotonic
from typing import NamedTuple

import httpx
import yaml

from agent.core.models import JsonObject
from agent.llm.port import ONE_CALL, ModelReply, ResponseSchema
from agent.planning.meant_filters import Question
from agent.planning.selection import select_entries

QUESTIONS = Path(__file__).parent / "questions.yaml"
TODAY = "2026-11-30"
READ = "Which of these entries does the request ask about? Reply with their numbers; with none if no entry meets it."


class Case(NamedTuple):
    """A question about a list, and the places of the entries that a right answer is about."""

    asks: str
    entries: list[JsonObject]
    right: frozenset[int]


class Endpoint:
    """The configured model; counts the tokens that it read."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client
        self.tokens = 0

    async def ask(self, messages: Sequence[JsonObject], schema: ResponseSchema) -> ModelReply:
        """The reply to messages, bound to a schema."""
        form = {"name": schema.name, "schema": schema.schema, "strict": True}
        body = {
            "model": os.environ["AGENT_MODEL_FAST"], "messages": [*messages], "temperature": 0, "seed": 1,
            "max_tokens": 200, "response_format": {"type": "json_schema", "json_schema": form},
        }  # fmt: skip
        reply = (await self._client.post("chat/completions", json=body)).raise_for_status().json()
        usage = reply.get("usage") or {}
        cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens", 0)
        self.tokens += usage.get("prompt_tokens", 0) - cached
        return ModelReply(str(reply["choices"][0]["message"]["content"]), "", "stop", ONE_CALL)


def read_cases() -> list[Case]:
    """The questions of the file."""
    cases = []
    for one in yaml.safe_load(QUESTIONS.read_text("utf-8")):
        entries = one["entries"]
        for question in one["questions"]:
            named = range(len(entries)) if question["entries"] == "all" else question["entries"]
            cases.append(Case(question["asks"], entries, frozenset(named)))
    return cases


async def read_list(endpoint: Endpoint, case: Case) -> frozenset[int]:
    """The entries that the model names after it read the list."""
    lines = [f"{place}. {json.dumps(entry, ensure_ascii=False)}" for place, entry in enumerate(case.entries, start=1)]
    text = "\n".join((*lines, f"Request: {case.asks}", READ))
    number: JsonObject = {"type": "integer", "enum": [*range(1, len(lines) + 1)]}
    listed: JsonObject = {"type": "array", "items": number, "maxItems": len(lines)}
    schema: JsonObject = {
        "type": "object", "properties": {"entries": listed}, "required": ["entries"], "additionalProperties": False,
    }  # fmt: skip
    reply = await endpoint.ask(({"role": "user", "content": text},), ResponseSchema("entries", schema))
    try:
        return frozenset(number - 1 for number in json.loads(reply.text)["entries"])
    except ValueError:  # cut at the limit of tokens
        return frozenset()


async def filter_list(endpoint: Endpoint, case: Case) -> frozenset[int]:
    """The entries that the model's filter selects; all of them where it names no condition."""
    selection = await select_entries(endpoint.ask, Question(case.asks, (), TODAY), case.entries)
    if selection is None:
        return frozenset(range(len(case.entries)))
    if selection.heading.startswith("no entry with") and not case.right:
        return frozenset()  # the answer is told that none meets it, and what is nearest
    chosen = [*selection.entries]
    return frozenset(place for place, entry in enumerate(case.entries) if entry in chosen)


async def main() -> None:
    """Asks, and prints a row for each way."""
    options = argparse.ArgumentParser()
    options.add_argument("--limit", type=int)
    options.add_argument("--show", action="store_true")
    chosen = options.parse_args()
    cases = read_cases()[: chosen.limit]
    url = os.environ["AGENT_LLM_BASE_URL"].rstrip("/") + "/"
    print(f"{len(cases)} questions, {os.environ['AGENT_MODEL_FAST']}")
    async with httpx.AsyncClient(base_url=url, timeout=600) as client:
        for name, way in (("reads the list", read_list), ("writes a filter", filter_list)):
            endpoint, began, right = Endpoint(client), monotonic(), 0
            for case in cases:
                named = await way(endpoint, case)
                right += named == case.right
                if chosen.show:
                    mark = "+" if named == case.right else "-"
                    print(f"{mark} {case.asks}: {sorted(named)}, right {sorted(case.right)}", flush=True)
            seconds = (monotonic() - began) / len(cases)
            print(f"{name}: {right} of {len(cases)}, {endpoint.tokens / len(cases):.0f} tokens, {seconds:.1f} s each")


if __name__ == "__main__":
    asyncio.run(main())
