"""Every way an upstream can fail, met by every purpose a model is asked for: the table of what must come of it.

A group of cases runs at once on one gateway; the script knows a case by its words, and its own log says what was asked.
"""

import asyncio
import json
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from agent.core.events import ModelReturned, PlanProposed
from gateway.render.errors import get_http_status
from tests.faults.gateway import FaultReport, FaultyGateway, faulty_gateway
from tests.support.script import Rule, Script, judges, plans, says, script
from tests.support.scripted_server import ScriptedServer

RATE, DOWN, LATE, BROKEN = "ERR_MODEL_RATE_LIMIT", "ERR_MODEL_DOWN", "ERR_MODEL_TIMEOUT", "ERR_MODEL_OUTPUT"
ANSWER, FINDINGS = "Answer with ümläuts and 漢字.", "Naïve findings: all is wéll."
TIMEOUT_S = 1.0
"""The time limit of a model call among those that are late; elsewhere a busy machine must not make them so."""
SLACK_S = 15.0
"""What a busy machine may add to a deadline, in seconds."""
AT_ONCE = 16
MOST_CALLS = 20
"""`max_model_calls` of the room."""


@dataclass(frozen=True)
class Fault:
    """One way to fail. `code` is what a call comes to, None where it is survived; `requests` is what one call takes,
    retries included, whole and streamed."""

    name: str
    code: str | None
    requests: int
    streamed: int
    times: int | None = None
    options: dict[str, Any] = field(default_factory=dict)


FAULTS = {
    "429, then well": Fault("status_429", None, 2, 2, times=1),
    "429 with Retry-After, then well": Fault("status_429", None, 2, 2, times=1, options={"retry_after": 0.1}),
    "429 always": Fault("status_429", RATE, 3, 3),
    "429, come back in 90 s": Fault("status_429", RATE, 1, 1, options={"retry_after": 90}),
    "500 once": Fault("status_500", None, 2, 2, times=1),
    "500 always": Fault("status_500", DOWN, 3, 3),
    "hangs before the first byte": Fault("hang", LATE, 2, 2),
    "stalls in the middle": Fault("stall", LATE, 2, 1),
    "a byte at a time": Fault("drip", LATE, 2, 2, options={"pause_s": 0.05}),
    "ends without [DONE]": Fault("half_stream", BROKEN, 1, 1),
    "resets the connection": Fault("reset", DOWN, 3, 3),
    "resets it in the middle": Fault("reset_stream", BROKEN, 1, 1),
    "JSON that is none": Fault("garbage_json", BROKEN, 1, 1),
    "HTML with 200": Fault("garbage", BROKEN, 1, 1),
    "no choice": Fault("empty", BROKEN, 1, 1),
    "200 without a byte": Fault("nothing", BROKEN, 1, 1),
    "a line of 10 MB": Fault("huge_line", BROKEN, 1, 1),
    "every chunk twice": Fault("twice", None, 1, 1),
    "chunks cut inside characters": Fault("split", None, 1, 1),
}


@dataclass(frozen=True)
class End:
    """What becomes of a run whose call failed: how its answer stands (`failed`: there is none), how often the call is
    made, and whether the upstream is asked for a stream."""

    broken: tuple[str, int]
    """Where the reply was no completion: this may be chance, and is tried again with the step."""
    other: tuple[str, int]
    streams: bool = False


ENDS = {
    "planner": End(("complete", 1), ("complete", 1), streams=True),  # the rules plan
    "skill": End(("partial", 4), ("aborted", 1)),  # two attempts under each of two plans; no rules for this skill
    "supervisor": End(("complete", 1), ("complete", 1)),  # a judge that cannot be reached gives no verdict
    "completion": End(("complete", 2), ("complete", 1), streams=True),  # composed from the results
    "direct": End(("failed", 2), ("failed", 1), streams=True),  # nothing is there to fall back on
}
UNREADABLE = {
    # Every word stands there twice: that is no plan, and the second one is none either. What they would have called has
    # a name that nothing has, so that the answer says that nothing was changed.
    ("planner", "every chunk twice"): ("partial", 2),
}
READ_ALL_THE_SAME = {
    # Ten megabytes of text are a reply, where they need not be a plan or a verdict.
    ("skill", "a line of 10 MB"): ("complete", 1),
    ("supervisor", "a line of 10 MB"): ("complete", 2),  # no verdict in it, twice: that of the rules holds
}


@dataclass(frozen=True)
class Case:
    """A fault, whom it meets, and whether the caller wants a stream."""

    purpose: str
    what: str
    stream: bool
    word: str

    @property
    def fault(self) -> Fault:
        """How the upstream fails."""
        return FAULTS[self.what]

    @property
    def asked_as(self) -> str:
        """What the upstream is told that the call is for."""
        return self.purpose.replace("direct", "completion")

    @property
    def prompt(self) -> str:
        """What is asked at the door."""
        return f"What is {self.word}?" if self.purpose == "direct" else f"search and investigate {self.word}"

    @property
    def end(self) -> tuple[str, int]:
        """How the answer must stand, and how many requests the failing purpose makes of the upstream."""
        end, fault = ENDS[self.purpose], self.fault
        requests = fault.streamed if end.streams else fault.requests
        if self.purpose == "supervisor" and fault.code == LATE:
            requests = 1  # a judge gets the time of one call, and no second one
        for exceptions in (UNREADABLE, READ_ALL_THE_SAME):
            if (self.purpose, self.what) in exceptions:
                return exceptions[self.purpose, self.what]
        if fault.code is None:
            return "complete", requests + (self.purpose == "supervisor")  # the answer is judged too
        status, calls = end.broken if fault.code == BROKEN else end.other
        return status, calls * requests

    def rules(self) -> list[Rule]:
        """The script of this case: the fault, then what is said without it."""
        task = {"tool": "investigate", "inputs": {"task": f"look into {self.word}"}}
        steps = [{"tool": "completion"}] if self.purpose == "direct" else [task, {"tool": "completion"}]
        good = {
            "planner": plans(*steps, about=self.word).reply.text,
            "skill": FINDINGS,
            "supervisor": judges("SUCCESS").reply.text,
            "completion": ANSWER,
        }
        text, fault = good[self.asked_as], self.fault
        failing = says(text, to=self.asked_as, about=self.word, times=fault.times, fault=fault.name, **fault.options)
        return [failing, *(says(text, to=purpose, about=self.word) for purpose, text in good.items())]


def cases_of(*purposes: str, late: bool) -> list[Case]:
    return [
        Case(purpose, what, stream, f"{purpose}{number}{'s' if stream else 'w'}end")
        for purpose in purposes
        for number, what in enumerate(FAULTS)
        for stream in ((False, True) if ENDS[purpose].streams else (False,))
        if (FAULTS[what].code == LATE) is late
    ]


@pytest.fixture(scope="module")
def upstream() -> Iterator[ScriptedServer]:
    with ScriptedServer(Script()) as server:
        yield server


@pytest.mark.parametrize("purpose", list(ENDS))
async def test_whatever_the_upstream_answers_the_run_ends_as_it_should(
    tmp_path: Path, upstream: ScriptedServer, purpose: str
) -> None:
    assert await found_wrong(tmp_path, upstream, cases_of(purpose, late=False)) == {}


async def test_an_upstream_that_is_late_is_given_up_in_time(tmp_path: Path, upstream: ScriptedServer) -> None:
    cases = cases_of(*ENDS, late=True)
    assert await found_wrong(tmp_path, upstream, cases, llm_timeout_s=TIMEOUT_S) == {}


async def found_wrong(folder: Path, upstream: ScriptedServer, cases: list[Case], **settings: Any) -> dict[str, Any]:
    """What went otherwise than the table says, by case."""
    upstream.load(script(*(rule for case in cases for rule in case.rules())))
    turn = asyncio.Semaphore(AT_ONCE)
    async with faulty_gateway(folder, upstream.url, **settings) as gateway:

        async def ask(case: Case) -> FaultReport:
            async with turn:
                return await gateway.ask(case.prompt, stream=case.stream)

        told = await asyncio.gather(*(ask(case) for case in cases))
        asked = [(request["purpose"], json.dumps(request["body"])) for request in upstream.requests()]
        found = {}
        for case, answer in zip(cases, told, strict=True):
            ours = [purpose for purpose, body in asked if case.word in body]
            if faults := [*faults_of(case, answer, ours), *faults_of_log(gateway, case, answer)]:
                found[f"{case.purpose}, {case.what}, {'streamed' if case.stream else 'whole'}"] = faults
    return found


def faults_of(case: Case, told: FaultReport, asked: list[str]) -> list[str]:
    """What the door and the upstream's own log say that should not be."""
    status, requests = case.end
    found = []
    # A kept connection may have been closed before the call: one that is reset on it is sent once more at once.
    most = 2 * requests if case.what == "resets the connection" else requests
    if not requests <= asked.count(case.asked_as) <= most or len(asked) > MOST_CALLS + most - requests:
        found.append(f"the upstream was asked {asked}, {requests} times for {case.asked_as} is right")
    if told.seconds > 3 * TIMEOUT_S * requests + SLACK_S:  # a call that is late is waited for twice as long once more
        found.append(f"it took {told.seconds:.1f} s")
    if status == "failed":
        return found + faults_of_failure(case, told)
    if (told.status, told.failure, told.done, told.outcome) != (200, None, True, status):
        found.append(f"the door said {told}")
    if status == "complete" and case.fault.code is None and case.fault.name != "twice" and told.text != ANSWER:
        found.append(f"the answer is {told.text!r}")
    if case.purpose == "completion" and case.fault.code is not None and FINDINGS not in told.text:
        found.append(f"the answer lost what was found: {told.text!r}")
    return found


def faults_of_failure(case: Case, told: FaultReport) -> list[str]:
    """A failure is a status where nothing has been sent, a frame where a stream has begun, and never a `[DONE]`."""
    code = str(case.fault.code)
    begun = case.stream and told.status == 200  # half an answer, or one that was too long in coming
    if case.stream and not begun and case.fault.name in ("half_stream", "reset_stream", "stall"):
        return [f"what was said already is lost: {told}"]
    status = 200 if begun else get_http_status(code)
    named = "rate_limit_exceeded" if code == RATE else code.lower()
    right = told.status == status and told.failure is not None and told.failure["code"] == named
    return [] if right and told.done is not begun else [f"the door said {told}"]


def faults_of_log(gateway: FaultyGateway, case: Case, told: FaultReport) -> list[str]:
    """Gaps, terminal events, the error of the call, and who planned."""
    found = gateway.faults_of_log(told.run_id)
    bodies = [event.body for event in gateway.logs.get(told.run_id, [])]
    codes = {body.error_code for body in bodies if isinstance(body, ModelReturned) and body.purpose == case.asked_as}
    expected = None if (case.purpose, case.what) in READ_ALL_THE_SAME else case.fault.code
    if codes != {expected}:
        found.append(f"the log has the errors {codes}")
    logged = sum(body.requests for body in bodies if isinstance(body, ModelReturned) and body.purpose == case.asked_as)
    if logged != case.end[1]:
        found.append(f"the log has {logged} requests, {case.end[1]} is right")
    planners = {body.effective for body in bodies if isinstance(body, PlanProposed)}
    is_read = case.fault.code is None and (case.purpose, case.what) not in UNREADABLE
    if case.purpose == "planner" and planners != ({"llm"} if is_read else {"rules"}):
        found.append(f"planned by {planners}")
    terminal = "run.failed" if case.end[0] == "failed" else "run.succeeded"
    if not bodies or gateway.logs[told.run_id][-1].type != terminal:
        found.append(f"it does not end in {terminal}")
    return found


async def test_an_upstream_that_refuses_connections_is_told_and_planned_around(tmp_path: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # bound, never listening: connections are refused
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/v1"
        async with faulty_gateway(tmp_path, url, room="supervision: checks") as gateway:
            questions = [
                ("What is this?", False),
                ("What is that?", True),
                ("What is 6*7, and what time is it?", False),
            ]
            whole, streamed, planned = await asyncio.gather(*(gateway.ask(q, stream=s) for q, s in questions))
            faults = [gateway.faults_of_log(told.run_id) for told in (whole, streamed, planned)]
    assert faults == [[], [], []]
    assert whole.status == 502
    assert whole.failure is not None
    assert "connection refused; is the model server running?" in whole.failure["message"]
    assert streamed.failure is not None
    assert streamed.failure["code"] == "err_model_down"
    assert streamed.status == 502, "nothing was said yet"
    assert planned.status == 200
    assert "42" in planned.text, "the rules plan and compute without a model"
