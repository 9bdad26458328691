"""Replies of a real model, recorded once by task and played back without it.

`python -m tests.support.recorded_model URL MODEL FILE` asks the tasks of the probe and writes what came back, one line
a task. Only texts, calls and tokens are kept: the prompts may change, the replies stay what a real model wrote.
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from agent.core.errors import ModelOutputError
from agent.core.models import Usage
from agent.llm.http import HttpModelClient
from agent.llm.port import ModelChunk, ModelClient, ModelReply, ModelRequest, ModelToolCall
from gateway.model_probe import PROBE_TASKS, AskedModel, ModelProbe, ProbeTask

RECORDED = Path(__file__).parent / "data/probe_replies.jsonl"
"""Qwen2.5-Coder-1.5B-Instruct Q4_K_M on llama.cpp, temperature 0."""


@dataclass
class RecordedModel:
    """Implements `ModelClient`: with `inner` it records, without it it plays back. `task` is set before each task."""

    inner: ModelClient | None = None
    replies: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    task: str = "speed"
    played: int = 0

    async def complete(self, request: ModelRequest) -> ModelReply:
        """The next reply of the task."""
        if self.inner is not None:
            reply = await self.inner.complete(request)
            self.replies.setdefault(self.task, []).append(_to_json(reply))
            return reply
        replies = self.replies.get(self.task, [])
        if self.played >= len(replies):
            raise ModelOutputError(f"no further reply was recorded for {self.task}", agent_id="models")
        self.played += 1
        return _from_json(replies[self.played - 1], request.model)

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelChunk]:
        """Yields the model's stream; played back, a reply of two pieces."""
        if self.inner is not None:
            async for chunk in self.inner.stream(request):
                yield chunk
            return
        yield ModelChunk(text="13. ")
        yield ModelChunk(text="Lund")
        yield ModelChunk(finish_reason="stop", usage=Usage(model_calls=1, prompt_tokens=200, completion_tokens=4))

    async def check(self) -> None:
        """Does nothing."""

    async def aclose(self) -> None:
        """Closes the recorded model."""
        if self.inner is not None:
            await self.inner.aclose()


def name_tasks(client: RecordedModel, tasks: Iterable[ProbeTask] = PROBE_TASKS) -> Sequence[ProbeTask]:
    """The tasks of the probe; each tells the client which one it is."""

    def name(task: ProbeTask) -> ProbeTask:
        async def run(model: AskedModel) -> Any:
            client.task, client.played = f"{task.kind} {task.name}", 0
            return await task.run(model)

        return replace(task, run=run)

    return [name(task) for task in tasks]


def load_recorded(path: Path = RECORDED) -> RecordedModel:
    """The recorded model."""
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return RecordedModel(replies={line["task"]: line["replies"] for line in lines})


def _to_json(reply: ModelReply) -> dict[str, Any]:
    calls = [{"name": call.name, "arguments": call.arguments} for call in reply.tool_calls]
    usage = [reply.usage.prompt_tokens, reply.usage.completion_tokens]
    return {"text": reply.text, "calls": calls, "finish": reply.finish_reason, "usage": usage}


def _from_json(kept: dict[str, Any], model: str) -> ModelReply:
    calls = tuple(ModelToolCall("c1", call["name"], call["arguments"]) for call in kept["calls"])
    prompt, completion = kept["usage"]
    usage = Usage(model_calls=1, prompt_tokens=prompt, completion_tokens=completion)
    return ModelReply(kept["text"], model, kept["finish"], usage, calls)


async def record(url: str, model: str, path: Path) -> None:
    """Asks the model every task, prints the outcomes and writes the replies."""
    client = RecordedModel(HttpModelClient(url))
    probe = ModelProbe(AskedModel(client, model, timeout_s=600), name_tasks(client))
    try:
        await probe.run(seconds=3600, report=lambda outcome: print(outcome, flush=True))
    finally:
        await client.aclose()
    print(probe.speed, probe.seconds)
    lines = [
        json.dumps({"task": task, "replies": replies}, ensure_ascii=False) for task, replies in client.replies.items()
    ]
    await asyncio.to_thread(path.write_text, "\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    asyncio.run(record(sys.argv[1], sys.argv[2], Path(sys.argv[3])))
