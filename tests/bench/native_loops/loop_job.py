"""What a framework's process gets and gives back, in that framework's environment: nothing of Stepgate is imported.

A process reads one `Job` as JSON from stdin and prints one line of JSON: the answer, or the error that ended it.
"""

import asyncio
import json
import sys
import urllib.request
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from time import monotonic
from typing import Any

CALL_SECONDS = 300


@dataclass(frozen=True)
class Job:
    """A conversation to hold. `turns` are the user's messages, of which the last one's answer counts.

    `tools` have a name, a description and a JSON schema; they are called at `door`, which is also where the model is.
    """

    door: str
    model: str
    instructions: str
    turns: list[str]
    tools: list[dict[str, Any]]
    max_requests: int
    """Model calls of one turn."""
    max_tokens: int
    seed: int
    seconds: float
    """Time limit of one model call."""

    @property
    def model_url(self) -> str:
        """The base URL of the model."""
        return f"{self.door}/v1"

    async def call_tool(self, name: str, arguments: dict[str, Any]) -> str:
        """The text of a tool's result. An error is text too, so that the model can react to it."""
        return await asyncio.to_thread(self._post, name, arguments)

    def _post(self, name: str, arguments: dict[str, Any]) -> str:
        body = json.dumps({"name": name, "arguments": arguments}).encode()
        request = urllib.request.Request(f"{self.door}/call", body, {"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=CALL_SECONDS) as response:
            return str(json.loads(response.read())["text"])


def run_job(hold: Callable[[Job], Coroutine[Any, Any, str]], failures: tuple[type[Exception], ...]) -> None:
    """Holds the conversation of stdin and prints the answer. `failures` are the framework's own errors."""
    job = Job(**json.loads(sys.stdin.read()))
    started = monotonic()
    answer, error = "", ""
    try:
        answer = asyncio.run(hold(job))
    except failures as failure:
        error = f"{type(failure).__name__}: {failure}"[:500]
    print(json.dumps({"answer": answer, "error": error, "seconds": round(monotonic() - started, 3)}))
