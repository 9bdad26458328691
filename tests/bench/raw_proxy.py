"""The floor: `python -m tests.bench.raw_proxy UPSTREAM`. The model calls of each kind of work, and nothing besides.

No plan is read, nothing is supervised, stored or resumed: what Python and aiohttp cost by themselves. The calls are
streamed, as Stepgate's are: a model server takes longer to write a reply in pieces.
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from typing import Any

import aiohttp

from tests.bench.door import encode_completion, serve


class RawProxy:
    """Implements `Worker` by passing the caller's messages on."""

    def __init__(self, upstream: str) -> None:
        self._url = f"{upstream}/chat/completions"
        self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))

    async def answer(self, body: dict[str, Any]) -> bytes:
        """The last call's text, as a whole."""
        await self._before(body)
        return encode_completion(_join_text(await self._call("completion", body)))

    async def stream(self, body: dict[str, Any]) -> AsyncIterator[bytes]:
        """The last call's reply, piece by piece as it comes."""
        await self._before(body)
        async with self._session.post(self._url, **_request("completion", body)) as response:
            async for piece in response.content.iter_any():
                yield piece

    async def _before(self, body: dict[str, Any]) -> None:
        """The calls that come before the answer's."""
        match body["model"]:
            case "turn":
                await self._call("planner", body)
            case "chain":
                for purpose in ("planner", "skill", "skill", "skill"):
                    await self._call(purpose, body)
            case "fan":
                await self._call("planner", body)
                await asyncio.gather(*(self._step(body) for _ in range(8)))

    async def _step(self, body: dict[str, Any]) -> None:
        await self._call("skill", body)
        await self._call("supervisor", body)

    async def _call(self, purpose: str, body: dict[str, Any]) -> bytes:
        async with self._session.post(self._url, **_request(purpose, body)) as response:
            return await response.read()


def _join_text(stream: bytes) -> str:
    """The text of a streamed reply."""
    events = (json.loads(line[6:]) for line in stream.splitlines() if line.startswith(b"data: {"))
    return "".join(choice["delta"].get("content") or "" for event in events for choice in event["choices"])


def _request(purpose: str, body: dict[str, Any]) -> dict[str, Any]:
    data = {"model": "m", "messages": body["messages"], "stream": True}
    headers = {"x-stepgate-purpose": purpose, "content-type": "application/json"}
    return {"data": json.dumps(data).encode(), "headers": headers}


if __name__ == "__main__":
    serve(lambda: RawProxy(sys.argv[1]))
