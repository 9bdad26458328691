"""The peer pydantic-ai: `python -m tests.bench.pydantic_ai_agent UPSTREAM FOLDER`, in the environment of `peer.py`.

An application on pydantic-ai as its documentation shows it: a turn is an agent with a tool; the longer works are
plain code around agents. Each finished turn's messages are stored, as Stepgate stores its trace. Nothing is
supervised unless the work calls a judge, and nothing is resumed.
"""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from openai import AsyncOpenAI
from pydantic_ai import Agent  # type: ignore[import-not-found]
from pydantic_ai.models.openai import OpenAIChatModel  # type: ignore[import-not-found]
from pydantic_ai.providers.openai import OpenAIProvider  # type: ignore[import-not-found]

from tests.bench.door import encode_chunk, encode_completion, serve
from tests.bench.traces import Traces

PURPOSES = ("agent", "planner", "skill", "supervisor", "completion")


def calculator(expression: str) -> str:
    """Multiply two whole numbers.

    Args:
        expression: such as 2*21
    """
    left, right = expression.split("*")
    return f"the result is {int(left) * int(right)}"


class PydanticAiAgent:
    """Implements `Worker` with one agent a purpose."""

    def __init__(self, upstream: str, folder: Path) -> None:
        client = AsyncOpenAI(base_url=upstream, api_key="none")
        model = OpenAIChatModel("m", provider=OpenAIProvider(openai_client=client))
        self._agents = {
            purpose: Agent(
                model,
                instructions="Answer the user.",
                tools=[calculator] if purpose == "agent" else [],
                model_settings={"extra_headers": {"x-stepgate-purpose": purpose}},
            )
            for purpose in PURPOSES
        }
        self._traces = Traces(folder)

    async def answer(self, body: dict[str, Any]) -> bytes:
        """The last agent's output as a completion."""
        prompt = body["messages"][-1]["content"]
        await self._before(body["model"], prompt)
        result = await self._agents[_last(body["model"])].run(prompt)
        self._traces.store(result.all_messages_json())
        return encode_completion(result.output)

    async def stream(self, body: dict[str, Any]) -> AsyncIterator[bytes]:
        """The last agent's text as it comes."""
        prompt = body["messages"][-1]["content"]
        await self._before(body["model"], prompt)
        async with self._agents[_last(body["model"])].run_stream(prompt) as result:
            async for text in result.stream_text(delta=True, debounce_by=None):
                yield encode_chunk({"content": text}, None)
            self._traces.store(result.all_messages_json())
        yield encode_chunk({}, "stop")
        yield b"data: [DONE]\n\n"

    async def _before(self, work: str, prompt: str) -> None:
        """The agents that run before the last one."""
        match work:
            case "chain":
                await self._agents["planner"].run(prompt)
                for _ in range(3):
                    await self._agents["skill"].run(prompt)
            case "fan":
                await self._agents["planner"].run(prompt)
                await asyncio.gather(*(self._step(prompt) for _ in range(8)))

    async def _step(self, prompt: str) -> None:
        result = await self._agents["skill"].run(prompt)
        await self._agents["supervisor"].run(f"Judge this: {result.output}")


def _last(work: str) -> str:
    return "agent" if work == "turn" else "completion"


if __name__ == "__main__":
    serve(lambda: PydanticAiAgent(sys.argv[1], Path(sys.argv[2])))
