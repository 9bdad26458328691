"""The peer LangGraph: `python -m tests.bench.langgraph_agent UPSTREAM FOLDER`, in the environment of `peer.py`.

The prebuilt agent of its documentation: `create_agent` with a chat model and a tool, and the SQLite checkpointer, which
stores each turn under a thread of its own. Nothing is supervised.
"""

import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import aiosqlite  # type: ignore[import-not-found, unused-ignore]
from langchain.agents import create_agent  # type: ignore[import-not-found]
from langchain_core.messages import AIMessageChunk
from langchain_openai import ChatOpenAI  # type: ignore[import-not-found]
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver  # type: ignore[import-not-found]

from tests.bench.door import encode_chunk, encode_completion, serve


def calculator(expression: str) -> str:
    """Multiply two whole numbers, such as 2*21."""
    left, right = expression.split("*")
    return f"the result is {int(left) * int(right)}"


class LangGraphAgent:
    """Implements `Worker` with an agent that has a tool (`turn`) and one that has none (`stream`)."""

    def __init__(self, upstream: str, store: AsyncSqliteSaver) -> None:
        def make_agent(purpose: str, tools: list[Any]) -> Any:
            headers = {"x-stepgate-purpose": purpose}
            model = ChatOpenAI(model="m", base_url=upstream, api_key="none", default_headers=headers)
            return create_agent(model, tools, system_prompt="Answer the user.", checkpointer=store)

        self._agents = {"turn": make_agent("agent", [calculator]), "stream": make_agent("completion", [])}

    @classmethod
    async def open(cls, upstream: str, folder: Path) -> "LangGraphAgent":
        """Returns it with a store in `folder`, which waits for the disk as often as those of the others do."""
        store = AsyncSqliteSaver(aiosqlite.connect(folder / "checkpoints.db"))
        await store.setup()
        await store.conn.execute("PRAGMA synchronous=NORMAL")
        return cls(upstream, store)

    async def answer(self, body: dict[str, Any]) -> bytes:
        """The agent's last message as a completion."""
        result = await self._agents[body["model"]].ainvoke(*_read(body))
        return encode_completion(result["messages"][-1].text)

    async def stream(self, body: dict[str, Any]) -> AsyncIterator[bytes]:
        """The agent's text as it comes."""
        state, config = _read(body)
        async for message, _ in self._agents[body["model"]].astream(state, config, stream_mode="messages"):
            if isinstance(message, AIMessageChunk) and message.text:
                yield encode_chunk({"content": message.text}, None)
        yield encode_chunk({}, "stop")
        yield b"data: [DONE]\n\n"


def _read(body: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The agent's input and its configuration: a thread of its own for each turn."""
    return {"messages": body["messages"]}, {"configurable": {"thread_id": str(uuid4())}}


if __name__ == "__main__":
    serve(lambda: LangGraphAgent.open(sys.argv[1], Path(sys.argv[2])))
