"""The clients of the gateway under fire: every door, with what each was told. A request has a word of its own."""

import asyncio
import json
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, Literal

import httpx

ROOM = "soak"
TASK_ROOM = "incident"
"""The room that executes tasks."""
Kind = Literal["chat", "chat stream", "agent", "agent stream", "task"]
KINDS: tuple[Kind, ...] = ("chat", "chat stream", "agent", "agent stream", "task")
RETRY_S = 0.2


@dataclass
class SentRequest:
    """One request and what its client knows."""

    kind: Kind
    word: str
    run_id: str = ""
    """Known once the gateway has accepted it."""
    status: int = 0
    """Of the last answer; 0 where no answer came."""
    answer: str | None = None
    seqs: list[int] = field(default_factory=list)
    """Of the events that a follower has seen, over all its connections."""
    ended: bool = False
    """Whether a follower has seen the terminal event."""

    @property
    def prompt(self) -> str:
        """What is asked for."""
        return f"search, investigate and record {self.word}"


@dataclass
class Target:
    """Where the gateway listens now; `up` is set while there is one."""

    url: str = ""
    up: asyncio.Event = field(default_factory=asyncio.Event)
    closing: bool = False
    """Whether nobody should wait for another one."""


class Load:
    """Clients that ask one thing after the other, as long as there is somebody to ask."""

    def __init__(self, target: Target, pick: random.Random) -> None:
        self.asked: list[SentRequest] = []
        self._target = target
        self._pick = pick
        self._http = httpx.AsyncClient(timeout=httpx.Timeout(60, connect=2))

    async def keep_asking(self) -> None:
        """One client; until cancelled between two requests or `closing`."""
        while not self._target.closing:
            await self._target.up.wait()
            asked = SentRequest(self._pick.choice(KINDS), f"w{len(self.asked):05}e")
            self.asked.append(asked)
            try:
                await self._ask(asked)
            except (httpx.HTTPError, json.JSONDecodeError):
                await asyncio.sleep(RETRY_S)  # it was killed meanwhile; what this came to is seen at the end
            await asyncio.sleep(self._pick.uniform(0, 0.1))

    async def aclose(self) -> None:
        """Close connections."""
        await self._http.aclose()

    async def _ask(self, asked: SentRequest) -> None:
        match asked.kind:
            case "chat" | "chat stream":
                await self._chat(asked, stream=asked.kind == "chat stream")
            case "agent":
                await self._agent(asked)
            case "agent stream":
                await self._follow(asked)
            case "task":
                await self._task(asked)

    async def _chat(self, asked: SentRequest, *, stream: bool) -> None:
        body = {"model": ROOM, "messages": [{"role": "user", "content": asked.prompt}], "stream": stream}
        async with self._http.stream("POST", f"{self._target.url}/v1/chat/completions", json=body) as response:
            _note(asked, response)
            data = await response.aread()
        if not stream and response.status_code == 200:
            asked.answer = json.loads(data)["choices"][0]["message"]["content"]

    async def _agent(self, asked: SentRequest) -> None:
        """Sent again under its key until there is an answer, as a careful client does."""
        body, headers = {"prompt": asked.prompt, "room": ROOM}, {"Idempotency-Key": asked.word}
        while not self._target.closing:
            await self._target.up.wait()
            try:
                response = await self._http.post(f"{self._target.url}/v1/agent", json=body, headers=headers)
            except httpx.HTTPError:
                await asyncio.sleep(RETRY_S)
                continue
            _note(asked, response)
            if response.status_code == 200:
                asked.answer = response.json()["response"]
            if response.status_code != 503 or asked.run_id:  # a run that a stopping gateway left goes on in the next
                return
            await asyncio.sleep(RETRY_S)

    async def _follow(self, asked: SentRequest) -> None:
        """Follow a run over the deaths of the gateway, each time from where it was left."""
        body = {"prompt": asked.prompt, "room": ROOM, "stream": True}
        async with self._http.stream("POST", f"{self._target.url}/v1/agent", json=body) as response:
            _note(asked, response)
            if response.status_code != 200:
                await response.aread()
                return
            try:
                await _see(asked, response)
            except httpx.HTTPError:
                await asyncio.sleep(RETRY_S)
        while not asked.ended and not self._target.closing:
            await self._target.up.wait()
            url, headers = (
                f"{self._target.url}/v1/runs/{asked.run_id}/events",
                {"Last-Event-ID": str(asked.seqs[-1] if asked.seqs else 0)},
            )
            try:
                async with self._http.stream("GET", url, headers=headers) as response:
                    await _see(asked, response)
            except httpx.HTTPError:
                await asyncio.sleep(RETRY_S)

    async def _task(self, asked: SentRequest) -> None:
        created = await self._http.post(f"{self._target.url}/tasks", json={"prompt": asked.prompt})
        asked.status = created.status_code
        if created.status_code == 201:
            url = f"{self._target.url}/tasks/{created.json()['task_id']}/run"
            _note(asked, await self._http.post(url, params={"wait": "false"}))


def _note(asked: SentRequest, response: httpx.Response) -> None:
    asked.status = response.status_code
    asked.run_id = response.headers.get("x-stepgate-run-id", asked.run_id)


async def _see(asked: SentRequest, response: httpx.Response) -> None:
    async for event in _events(response):
        if "id" in event:
            asked.seqs.append(int(event["id"]))
        if event.get("event") in ("run.succeeded", "run.failed", "run.cancelled"):
            asked.ended = True


async def _events(response: httpx.Response) -> AsyncIterator[dict[str, Any]]:
    """Whole frames; one that was cut by a death is none."""
    frame: dict[str, Any] = {}
    async for line in response.aiter_lines():
        if line:
            name, _, value = line.partition(": ")
            frame[name] = value
        elif frame:
            yield frame
            frame = {}
