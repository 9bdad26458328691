"""The peer openai-agents: `python -m tests.bench.openai_agents_agent UPSTREAM FOLDER`, in the environment of `peer.py`.

An application on the OpenAI Agents SDK as its documentation shows it for other providers' models: agents with the Chat
Completions model, and no tracing, which would be sent to OpenAI. A finished turn's items are stored in one row: the
SDK's own sessions would write one for each item. Nothing is supervised, and nothing is resumed.
"""

import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from agents import (  # type: ignore[import-not-found]
    Agent,
    ModelSettings,
    OpenAIChatCompletionsModel,
    Runner,
    function_tool,
    set_tracing_disabled,
)
from openai import AsyncOpenAI

from tests.bench.door import encode_chunk, encode_completion, serve
from tests.bench.traces import Traces


async def calculator(expression: str) -> str:
    """Multiply two whole numbers.

    Args:
        expression: such as 2*21
    """
    left, right = expression.split("*")
    return f"the result is {int(left) * int(right)}"


class OpenAiAgentsAgent:
    """Implements `Worker` with an agent that has a tool (`turn`) and one that has none (`stream`)."""

    def __init__(self, upstream: str, folder: Path) -> None:
        set_tracing_disabled(True)
        model = OpenAIChatCompletionsModel(model="m", openai_client=AsyncOpenAI(base_url=upstream, api_key="none"))

        def make_agent(purpose: str, tools: list[Any]) -> Any:
            settings = ModelSettings(extra_headers={"x-stepgate-purpose": purpose})
            return Agent(
                name=purpose, instructions="Answer the user.", model=model, model_settings=settings, tools=tools
            )

        self._agents = {
            "turn": make_agent("agent", [function_tool(calculator)]),
            "stream": make_agent("completion", []),
        }
        self._traces = Traces(folder)

    async def answer(self, body: dict[str, Any]) -> bytes:
        """The agent's final output as a completion."""
        result = await Runner.run(self._agents[body["model"]], body["messages"])
        self._traces.store(json.dumps(result.to_input_list()))
        return encode_completion(result.final_output)

    async def stream(self, body: dict[str, Any]) -> AsyncIterator[bytes]:
        """The agent's text as it comes."""
        result = Runner.run_streamed(self._agents[body["model"]], body["messages"])
        async for event in result.stream_events():
            if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
                yield encode_chunk({"content": event.data.delta}, None)
        self._traces.store(json.dumps(result.to_input_list()))
        yield encode_chunk({}, "stop")
        yield b"data: [DONE]\n\n"


if __name__ == "__main__":
    serve(lambda: OpenAiAgentsAgent(sys.argv[1], Path(sys.argv[2])))
