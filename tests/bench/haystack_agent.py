"""The peer Haystack, served by hayhooks: `python -m tests.bench.haystack_agent PORT`, in the environment of `peer.py`.

As the two projects' documentation recommends it for production: hayhooks' own application with its door for OpenAI's
clients, on uvicorn with uvloop, and wrappers from `HAYHOOKS_PIPELINES_DIR` whose agents run asynchronously. Each
finished turn's messages are stored beside that folder. Nothing is supervised, and nothing is resumed: hayhooks keeps
durable executions in Redis, and has no door of OpenAI's for them.
"""

import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated, Any

import uvicorn
from hayhooks import BasePipelineWrapper, async_streaming_generator, create_app  # type: ignore[import-not-found]
from hayhooks.settings import settings  # type: ignore[import-not-found]
from haystack.components.agents import Agent  # type: ignore[import-not-found]
from haystack.components.generators.chat import OpenAIChatGenerator  # type: ignore[import-not-found]
from haystack.dataclasses import ChatMessage  # type: ignore[import-not-found]
from haystack.tools import tool  # type: ignore[import-not-found]

from tests.bench.traces import Traces


async def calculator(expression: Annotated[str, "such as 2*21"]) -> str:
    """Multiply two whole numbers."""
    left, right = expression.split("*")
    return f"the result is {int(left) * int(right)}"


class _Wrapper(BasePipelineWrapper):  # type: ignore[misc]
    """An agent that answers chat completions, whole or streamed."""

    purpose: str
    tools: tuple[Any, ...] = ()

    def setup(self) -> None:
        """Makes the agent. The model's address and key are in the environment variables of OpenAI's client."""
        headers = {"x-stepgate-purpose": self.purpose}
        self.pipeline = Agent(
            chat_generator=OpenAIChatGenerator(model="m", generation_kwargs={"extra_headers": headers}),
            tools=[tool(one) for one in self.tools],
            system_prompt="Answer the user.",
        )
        self._traces = Traces(Path(settings.pipelines_dir).parent)

    async def run_chat_completion_async(
        self, model: str, messages: list[dict[str, Any]], body: dict[str, Any]
    ) -> str | AsyncIterator[Any]:
        """The agent's last message as text, or its chunks."""
        asked = [ChatMessage.from_openai_dict_format(message) for message in messages]
        if body.get("stream"):
            chunks: AsyncIterator[Any] = async_streaming_generator(
                self.pipeline, pipeline_run_args={"messages": asked}, on_pipeline_end=self._store
            )
            return chunks
        result = await self.pipeline.run_async(messages=asked)
        self._store(result)
        text: str = result["last_message"].text
        return text

    def _store(self, result: dict[str, Any]) -> None:
        self._traces.store(json.dumps([message.to_dict() for message in result["messages"]]))


class TurnWrapper(_Wrapper):
    """The pipeline `turn`: an agent that has a tool."""

    purpose = "agent"
    tools = (calculator,)


class StreamWrapper(_Wrapper):
    """The pipeline `stream`: an agent that has none."""

    purpose = "completion"


def main(port: int) -> None:
    """Serve hayhooks until killed."""
    app = create_app()
    app.add_api_route("/health", lambda: {"status": "ok"})
    uvicorn.run(app, host="127.0.0.1", port=port, loop="uvloop", access_log=False, log_level="warning")


if __name__ == "__main__":
    main(int(sys.argv[1]))
