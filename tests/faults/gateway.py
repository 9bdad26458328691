"""The gateway that faults are tried on, its runs' logs as they were written, and what its doors told.

One gateway serves a whole group of cases at once: each case has its own words, by which the script knows it.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

import httpx
from pydantic import JsonValue

from agent.core.events import Event, EventDraft
from agent.core.models import AgentRequest, AgentResponse
from agent.core.settings import Settings
from agent.storage.journal import RunAppend
from agent.tools import Tool
from gateway.bootstrap import Stepgate, build_gateway
from tests.support.serving import serving

ROOM = "faulty"
DEADLINE_S = 20.0
"""No run of a test takes longer, in seconds."""
SKILL = "---\nname: investigate\ndescription: Looks into a matter.\n---\nLook into it and say what you found.\n"


@dataclass(frozen=True)
class FaultReport:
    """What a door said. `failure` is the error of the body or of the stream's last frame."""

    status: int
    run_id: str
    text: str
    outcome: str
    """`metadata.status` of the answer: complete, partial, aborted; empty where there is none."""
    failure: dict[str, Any] | None
    seconds: float
    done: bool = True
    """Whether a stream came to its `[DONE]`."""


@dataclass
class FaultyGateway:
    """A running gateway."""

    url: str
    stepgate: Stepgate
    client: httpx.AsyncClient
    logs: dict[str, list[Event]] = field(default_factory=dict)
    """Every event by its run, as the journal acknowledged it."""

    async def ask(self, prompt: str, *, stream: bool) -> FaultReport:
        """Through the OpenAI door."""
        started = monotonic()
        body = {"model": ROOM, "messages": [{"role": "user", "content": prompt}], "stream": stream}
        async with self.client.stream("POST", f"{self.url}/v1/chat/completions", json=body) as response:
            data = (await response.aread()).decode()
        run_id = response.headers.get("x-stepgate-run-id", "")
        seconds = monotonic() - started
        if stream and response.status_code == 200:
            return _streamed(data, run_id, seconds)
        parsed = json.loads(data)
        if "error" in parsed:
            return FaultReport(response.status_code, run_id, "", "", parsed["error"], seconds)
        text = parsed["choices"][0]["message"]["content"]
        return FaultReport(response.status_code, run_id, text, parsed["metadata"]["status"], None, seconds)

    async def call(self, *tools: str) -> tuple[AgentResponse, list[Event]]:
        """A run that calls these tools; no model is asked. Its response and its log."""
        calls: list[JsonValue] = [{"tool": tool} for tool in tools]
        request = AgentRequest(prompt="", room=ROOM, metadata={"tool_calls": calls})
        run_id = await self.stepgate.service.start_run(request)
        async with asyncio.timeout(DEADLINE_S):
            response = await self.stepgate.service.wait_for_response(run_id)
        return response, self.logs[run_id]

    def faults_of_log(self, run_id: str) -> list[str]:
        """What is wrong with the log of an ended run: gaps, and another number of terminal events than one."""
        log = self.logs.get(run_id, [])
        seqs = [event.seq for event in log]
        found = [] if seqs == list(range(1, len(log) + 1)) and log else [f"seqs are {seqs}"]
        terminal = [event.seq for event in log if event.body.terminal]
        if terminal != [len(log)]:
            found.append(f"terminal events at {terminal} of {len(log)}")
        return found


def _streamed(data: str, run_id: str, seconds: float) -> FaultReport:
    frames = [line.removeprefix("data: ") for line in data.splitlines() if line.startswith("data: ")]
    done = bool(frames) and frames[-1] == "[DONE]"
    parsed = [json.loads(frame) for frame in frames if frame != "[DONE]"]
    failure = next((frame["error"] for frame in parsed if frame.get("error")), None)
    deltas = [frame["choices"][0]["delta"].get("content") or "" for frame in parsed if frame.get("choices")]
    outcome = next((frame["metadata"]["status"] for frame in reversed(parsed) if "metadata" in frame), "")
    return FaultReport(200, run_id, "".join(deltas), outcome, failure, seconds, done)


@asynccontextmanager
async def faulty_gateway(
    folder: Path, model_url: str | None, *tools: Tool, **options: Any
) -> AsyncIterator[FaultyGateway]:
    """A gateway whose room `faulty` has every step judged by the model at `model_url`."""
    rooms, skills = folder / "rooms", folder / "skills"
    (skills / "investigate").mkdir(parents=True)
    (skills / "investigate" / "SKILL.md").write_text(SKILL)
    rooms.mkdir()
    room = options.pop("room", "supervision: always\nbudgets: {max_seconds: 30, max_model_calls: 20, max_replans: 1}")
    (rooms / f"{ROOM}.yaml").write_text(f"name: Faulty\nmemory: false\n{room}\n")
    models = {"llm_base_url": model_url, "model_fast": "small"} if model_url else {}
    settings = Settings(
        _env_file=None,
        data_dir=folder / "data",
        rooms_dir=rooms,
        skills_dirs=(skills,),
        port=0,
        **{"stream_coalesce_ms": 0, "drain_seconds": 1, **models, **options},
    )
    limits = httpx.Limits(max_keepalive_connections=0)
    async with build_gateway(settings) as stepgate, httpx.AsyncClient(timeout=60, limits=limits) as client:
        stepgate.registry.register(*tools)
        gateway = FaultyGateway("", stepgate, client)
        _record(gateway)
        async with serving(settings, stepgate) as gateway.url:
            yield gateway


def _record(gateway: FaultyGateway) -> None:
    """Keep what the journal acknowledges: an ended run's log has lost its `answer.delta` events."""
    journal: Any = gateway.stepgate.journal
    create, append, append_now = journal.create_run, journal.append, journal.append_now

    async def create_run(run_id: str, *args: Any, **kwargs: Any) -> Any:
        claim = await create(run_id, *args, **kwargs)
        gateway.logs[run_id] = list(claim.events)
        return claim

    async def recorded(run_id: str, epoch: int, drafts: Sequence[EventDraft]) -> tuple[Event, ...]:
        events: tuple[Event, ...] = await append(run_id, epoch, drafts)
        gateway.logs[run_id].extend(events)
        return events

    def recorded_now(*appends: RunAppend) -> list[tuple[Event, ...]] | None:
        logs: list[tuple[Event, ...]] | None = append_now(*appends)
        for one, events in zip(appends, logs or (), strict=logs is not None):
            gateway.logs[one.run_id].extend(events)
        return logs

    journal.create_run, journal.append, journal.append_now = create_run, recorded, recorded_now
