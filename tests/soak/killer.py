"""The killer: lives of a gateway under load, each ended by `kill -9` at a moment the seed chooses."""

import asyncio
import random
import signal
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

from tests.soak.clients import ROOM, TASK_ROOM, Load, Target
from tests.soak.gateway import POINTS
from tests.soak.judge import Verdict, judge, unfinished
from tests.soak.ledger import Ledger, ledger
from tests.support.processes import Process, start
from tests.support.script import Call, Script, plans, says, script
from tests.support.scripted_server import ScriptedServer

CLIENTS = 6
SETTLE_S = 90.0
"""How long the last gateway may take to end what the others have left, in seconds."""
DRAIN_S = 20.0
"""How long it may take to stop when nothing is left to do, in seconds."""
SKILL = (
    "---\nname: investigate\ndescription: Investigates.\nallowed-tools: lookup send order\n---\n"
    "Look it up, then send and order it.\n"
)
ANSWER = "All of it was looked up, sent, ordered and recorded; nothing is left to do, and nobody need ask again."
Say = Callable[[str], None]


@dataclass
class Soak:
    """What was done, and the verdict."""

    seed: int
    lives: int = 0
    deaths: Counter[str] = field(default_factory=Counter)
    verdict: Verdict = field(default_factory=Verdict)


def scenario() -> Script:
    """A plan of an idempotent step, a skill with two side effects, and an answer. What comes next is told by what
    stands in the conversation, not by counting: a resumed run asks again. Some calls fail on the way."""
    return script(
        says("", to="planner", fault="status_429", retry_after=0.1, times=3),
        says("", to="completion", fault="status_500", times=3),
        says(ANSWER, to="completion", fault="half_stream", times=3),
        plans(
            {"tool": "record", "inputs": {"x": "first"}},
            {
                "tool": "investigate",
                "tools": ["lookup", "send", "order"],
                "inputs": {"task": "look up, send and order"},
            },
            {"tool": "lookup", "inputs": {"x": "second"}, "depends_on": ["s1"]},
            {"tool": "completion", "depends_on": ["s1", "s2", "s3"]},
        ),
        says("Looked up, sent and ordered.", to="skill", about="order did"),
        says("", to="skill", about="send did", calls=(Call("order", {"x": "thing"}, id="c3"),)),
        says("", to="skill", about="lookup did skill", calls=(Call("send", {"x": "mail"}, id="c2"),), delay_s=0.03),
        says("", to="skill", calls=(Call("lookup", {"x": "skill"}, id="c1"),), delay_s=0.03),
        says(ANSWER, to="completion", chunk=8, pause_s=0.01),
        says("no rule fits"),
    )


async def soak(
    folder: Path, *, seconds: float, seed: int, say: Say, longest_life_s: float = 4.0, least_lives: int = 1
) -> Soak:
    """Kill for so long, and so often at least; let the last gateway end what is left, and judge."""
    pick, done = random.Random(seed), Soak(seed)
    furnish(folder)
    with ScriptedServer(scenario()) as upstream:
        async with ledger() as kept:
            target = Target()
            load = Load(target, random.Random(pick.random()))
            clients = [asyncio.create_task(load.keep_asking()) for _ in range(CLIENTS)]
            try:
                until = monotonic() + seconds
                while monotonic() < until or done.lives < least_lives:
                    moment = pick.uniform(0.1, longest_life_s)
                    await _one_life(folder, upstream, kept, target, pick, done, moment)
                    say(f"life {done.lives}: {len(load.asked)} requests, {len(kept.entries)} effects; {_latest(done)}")
                await _last_life(folder, upstream, kept, target, clients, done)
            finally:
                for client in clients:
                    client.cancel()
                await asyncio.wait(clients)
                await load.aclose()
            done.verdict.findings += [f"a client failed: {c.exception()!r}" for c in clients if _failed(c)]
            seen = await judge(_database(folder), load.asked, kept, upstream.requests())
            done.verdict.findings += seen.findings
            done.verdict.figures = seen.figures
    return done


def furnish(folder: Path) -> None:
    """Writes the skill and the room that requests ask for."""
    skill = folder / "skills" / "investigate"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text(SKILL)
    (folder / "rooms").mkdir()
    for room in (ROOM, TASK_ROOM):
        (folder / "rooms" / f"{room}.yaml").write_text("name: Soak\nmemory: false\nsupervision: checks\n")


def _database(folder: Path) -> Path:
    return folder / "data" / "stepgate.db"


async def _begin(folder: Path, upstream: ScriptedServer, kept: Ledger, target: Target, crash: str) -> Process:
    """The next gateway, once it listens; one that dies of its crash point before that has had its life too."""
    environment = {
        "AGENT_DATA_DIR": str(folder / "data"),
        "AGENT_ROOMS_DIR": str(folder / "rooms"),
        "AGENT_SKILLS_DIRS": str(folder / "skills"),
        "AGENT_PORT": "0",
        "AGENT_LLM_BASE_URL": upstream.url,
        "AGENT_MODEL_FAST": "scripted",
        "AGENT_MODEL_PROFILE": "capable",
        "AGENT_DISCOVER": "off",
        "AGENT_DEFAULT_ROOM": ROOM,
        "AGENT_DRAIN_SECONDS": "0.5",
        "AGENT_LEASE_SECONDS": "2",
        "SOAK_LEDGER": kept.url,
        "SOAK_CRASH": crash,
    }
    process = start([sys.executable, "-m", "tests.soak.gateway"], environment=environment)
    with suppress(AssertionError):  # it has ended before it listened
        line = await asyncio.to_thread(process.line_with, "Stepgate listens on ")
        target.url = line.rsplit(" ", 1)[1]
        target.up.set()
    return process


async def _one_life(
    folder: Path,
    upstream: ScriptedServer,
    kept: Ledger,
    target: Target,
    pick: random.Random,
    done: Soak,
    moment: float,
) -> None:
    """From a start to a death: at a point it comes to by itself, else `moment` seconds after it listens; now and then
    a SIGTERM goes before, and the death falls into the drain."""
    crash = f"{pick.choice(POINTS)}:{pick.randint(1, 12)}" if pick.random() < 0.7 else ""
    drains = pick.random() < 0.2
    process = await _begin(folder, upstream, kept, target, crash)
    done.lives += 1
    killed = f"at {crash.partition(':')[0]}"
    if not await _ended(process, moment):
        killed = "in its drain" if drains else "at a random moment"
        if drains:
            with suppress(ProcessLookupError):  # it has come to its crash point just now
                process.signal(signal.SIGTERM)
            await _ended(process, pick.uniform(0, 0.6))
    elif not crash:
        done.verdict.findings.append("the gateway ended by itself:\n" + "\n".join(process.output[-20:]))
    target.up.clear()
    process.kill()
    done.deaths[killed] += 1
    _record_exit(process, done)


async def _last_life(
    folder: Path,
    upstream: ScriptedServer,
    kept: Ledger,
    target: Target,
    clients: list["asyncio.Task[None]"],
    done: Soak,
) -> None:
    """A gateway that nobody kills: everything that was ever accepted has to come to its end."""
    process = await _begin(folder, upstream, kept, target, "")
    done.lives += 1
    target.closing = True
    until = monotonic() + SETTLE_S
    while (left := unfinished(_database(folder))) and monotonic() < until:  # noqa: ASYNC110 - another process'
        await asyncio.sleep(0.1)
    if left:
        done.verdict.findings.append(f"{left} runs did not end within {SETTLE_S:g} s")
    await asyncio.wait(clients, timeout=10)
    process.signal(signal.SIGTERM)
    if not await _ended(process, DRAIN_S):
        done.verdict.findings.append(f"the gateway did not stop within {DRAIN_S:g} s of SIGTERM")
    process.kill()
    _record_exit(process, done)


async def _ended(process: Process, within_s: float) -> bool:
    """Whether it has ended before the time is over."""
    until = monotonic() + within_s
    while process.child.poll() is None:
        if monotonic() >= until:
            return False
        await asyncio.sleep(0.01)
    return True


def _record_exit(process: Process, done: Soak) -> None:
    """A defect that the gateway has logged is a finding."""
    if any("Traceback" in line or "internal error" in line for line in process.output):
        done.verdict.findings.append("the gateway logged a defect:\n" + "\n".join(process.output[-40:]))


def _latest(done: Soak) -> str:
    return ", ".join(f"{count} {how}" for how, count in done.deaths.most_common())


def _failed(client: "asyncio.Task[None]") -> bool:
    return client.done() and not client.cancelled() and client.exception() is not None
