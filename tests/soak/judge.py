"""The verdict: what the store holds, held against the logs of the clients, the tools and the upstream."""

import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent.core.events import Event
from agent.runs.response import build_response
from agent.storage.journal_sqlite import open_sqlite
from tests.soak.clients import SentRequest
from tests.soak.ledger import Ledger

TRACED = ("planner", "completion")
"""What a model is asked for with the words of the request in it; a run asks for one of these at a time."""
TRIES = 3
"""Requests of one such call that a death can keep from the log: the transport's retries are one call."""


@dataclass
class Verdict:
    """What was found wrong, in a line each, and figures."""

    findings: list[str] = field(default_factory=list)
    figures: dict[str, int] = field(default_factory=dict)


def unfinished(database: Path) -> int:
    """How many runs have not ended."""
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        return int(connection.execute("SELECT count(*) FROM runs WHERE terminal = 0").fetchone()[0])


async def judge(
    database: Path, asked: Sequence[SentRequest], ledger: Ledger, upstream: Sequence[Mapping[str, Any]]
) -> Verdict:
    """Look at everything once the last gateway has stopped."""
    return judge_logs(await _logs(database), asked, ledger, upstream)


def judge_logs(
    logs: Mapping[str, Sequence[Event]],
    asked: Sequence[SentRequest],
    ledger: Ledger,
    upstream: Sequence[Mapping[str, Any]],
) -> Verdict:
    """Holds the logs of all runs against what the clients, the tools and the upstream have seen."""
    verdict = Verdict()
    words = Counter(_word(log) for log in logs.values())
    calls = Counter(word for request in upstream for word in _words(request))
    verdict.findings += [f"{word} was begun {count} times" for word, count in words.items() if count > 1]
    for run_id, log in logs.items():
        told = [*_of_log(log), *_of_effects(log, ledger), *_of_upstream(log, calls[_word(log)])]
        verdict.findings += [f"{run_id} ({_word(log)}): {finding}" for finding in told]
    for one in asked:
        verdict.findings += [f"{one.kind} {one.word}: {finding}" for finding in _of_client(one, logs)]
    strangers = {entry.run_id for entry in ledger.entries} - logs.keys()
    verdict.findings += [f"an effect of {run_id}, which the store does not know" for run_id in strangers]
    answers = [build_response(log) for log in logs.values() if log and log[-1].body.terminal]
    verdict.figures = {
        "requests": len(asked),
        "runs accepted": len(logs),
        "ended": len(answers),
        "complete": sum(answer.metadata["status"] == "complete" for answer in answers),
        "with an effect nobody can tell": sum(any(e.type == "step.unknown" for e in log) for log in logs.values()),
        "resumed": sum(log[-1].epoch > 1 for log in logs.values()),
        "most lives of a run": max((log[-1].epoch for log in logs.values()), default=0),
        "effects": len(ledger.entries),
        "effects asked for again under their key": ledger.repeated,
        "model requests": len(upstream),
    }
    return verdict


async def _logs(database: Path) -> dict[str, list[Event]]:
    store = await open_sqlite(database)
    try:
        ids = await store.database.read(lambda db: [str(row[0]) for row in db.execute("SELECT run_id FROM runs")])
        return {run_id: await store.journal.read_events(run_id) for run_id in ids}
    finally:
        await store.close()


def _word(log: Sequence[Event]) -> str:
    request: Any = log[0].body
    return str(request.request.prompt).rsplit(" ", 1)[-1]


def _words(request: Mapping[str, Any]) -> Iterable[str]:
    """The word of the run a model was asked for."""
    text = str(request["body"]["messages"]) if request["purpose"] in TRACED else ""
    found = text.find("and record w")
    return [text[found + 11 : found + 18]] if found >= 0 else []


def _of_log(log: Sequence[Event]) -> list[str]:
    """Gaps, the end, and who wrote."""
    found = []
    terminal = [event.seq for event in log if event.body.terminal]
    if len(terminal) != 1 or not log[-1].body.terminal:
        found.append(f"it has {len(terminal)} terminal events and ends in {log[-1].type}")
    answering = False
    seq = 0
    for event in log:
        if event.seq != seq + 1 and not (event.seq > seq and answering):  # a finished answer's pieces are pruned
            found.append(f"seq {event.seq} follows {seq}")
        seq, answering = event.seq, answering or event.type == "answer.started"
    epochs = [event.epoch for event in log]
    if epochs != sorted(epochs):
        found.append(f"epochs {epochs}")
    return found


def _of_effects(log: Sequence[Event], ledger: Ledger) -> list[str]:
    """Nothing twice, nothing without its intent in the log, nothing claimed that did not happen."""
    run_id, found = log[0].run_id, []
    called = {body.call_id: body for event in log if event.type == "tool.called" for body in [_any(event)]}
    entries = ledger.of(run_id)
    for tool, count in Counter(entry.tool for entry in entries).items():
        if count > 1:
            found.append(f"{tool} happened {count} times")
    intents = {(body.tool, body.key) for body in called.values()}
    found += [f"{e.tool} happened without an intent" for e in entries if (e.tool, e.key) not in intents]
    happened = {entry.key for entry in entries}
    for event in log:
        body = _any(event)
        if event.type == "tool.returned" and body.error_code is None and body.tool in ("send", "order", "record"):
            key = called[body.call_id].key if body.call_id in called else "no intent"
            if key not in happened:
                found.append(f"{body.tool} is said to have happened, and has not")
    return found


def _of_upstream(log: Sequence[Event], requests: int) -> list[str]:
    """The model was asked what the log says; a death costs the calls that were under way."""
    returned = [_any(event) for event in log if event.type == "model.returned"]
    recorded = sum(body.requests for body in returned if body.purpose in TRACED)
    if not recorded <= requests <= recorded + TRIES * (log[-1].epoch - 1):
        return [f"the model was asked {requests} times, the log has {recorded} over {log[-1].epoch} lives"]
    return []


def _of_client(asked: SentRequest, logs: Mapping[str, Sequence[Event]]) -> list[str]:
    """What was accepted is there, what was answered is what is stored, and no follower missed or met anything twice."""
    if not asked.run_id:
        return []
    log = logs.get(asked.run_id)
    if log is None:
        return ["its accepted run is lost"]
    found = []
    if asked.answer is not None and asked.answer != build_response(log).response:
        found.append(f"was told {asked.answer[:80]!r}, stored is {build_response(log).response[:80]!r}")
    if asked.ended:
        missed = {event.seq for event in log} - set(asked.seqs)
        if missed or len(set(asked.seqs)) != len(asked.seqs):
            found.append(f"its follower missed {sorted(missed)} and saw {asked.seqs}")
    return found


def _any(event: Event) -> Any:
    return event.body
