"""The engine inside beside a plain llama.cpp server: start, memory, tokens a second.

`python -m tests.bench.local_engine FILE URL` serves FILE by the engine inside, and asks it and the server at URL (which
serves the same file) in turn. Each call writes the same number of tokens; the median counts, because other work on the
machine slows single calls down.
"""

import asyncio
import sys
from pathlib import Path
from statistics import median
from time import monotonic

from agent.core.models import JsonObject
from agent.llm.http import HttpModelClient
from agent.llm.port import ModelClient, ModelRequest
from gateway.local_engine import EngineOptions, LocalEngine, LocalModelClient

ROUNDS, TOKENS = 9, 64
SECONDS = 600.0


async def measure(file: Path, url: str) -> None:
    """Prints the figures."""
    inside = LocalModelClient(LocalEngine(EngineOptions(file, file.stem, context=4096, slots=1)))
    plain = HttpModelClient(url)
    try:
        started = monotonic()
        await inside.complete(build_request(0, 1))
        print(
            f"first token after {monotonic() - started:.1f} s, of which loading took {inside.engine.load_seconds:.1f} s"
        )
        speeds: dict[str, list[float]] = {"inside": [], "plain": []}
        for number in range(1, ROUNDS + 1):
            for name, client in (("inside", inside), ("plain", plain)):
                speeds[name].append(await measure_speed(client, number))
                print(f"{name} {speeds[name][-1]:.1f}", flush=True)
        status = Path(f"/proc/{inside.engine.pid}/status")
        memory = (await asyncio.to_thread(status.read_text)).splitlines()
        print("; ".join(line for line in memory if line.startswith(("VmRSS", "RssAnon"))))
        found, plainly = median(speeds["inside"]), median(speeds["plain"])
        print(f"tokens a second: inside {found:.1f}, plain {plainly:.1f}, ratio {found / plainly:.2f}")
    finally:
        await inside.aclose()
        await plain.aclose()


async def measure_speed(client: ModelClient, number: int) -> float:
    """The tokens a second between the first and the last token of one streamed call."""
    times = [monotonic() async for chunk in client.stream(build_request(number, TOKENS)) if chunk.text]
    return (len(times) - 1) / (times[-1] - times[0])


def build_request(number: int, tokens: int) -> ModelRequest:
    """A request for a text of `tokens` tokens."""
    messages: tuple[JsonObject, ...] = (
        {"role": "user", "content": f"Tell a long story about a ship with {number} sails."},
    )
    return ModelRequest("local", messages, "probe", temperature=0.0, max_tokens=tokens, timeout_s=SECONDS)


if __name__ == "__main__":
    asyncio.run(measure(Path(sys.argv[1]), sys.argv[2]))
