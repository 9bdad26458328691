"""What a conversation has begun to read in, followed to its end in the terminal."""

import asyncio
import sys
from typing import TYPE_CHECKING

from agent.core.models import LOCAL_OWNER
from gateway.cli import screen
from gateway.cli.ingest import reading_bar

if TYPE_CHECKING:
    from agent.knowledge.jobs import Job
    from gateway.bootstrap import Stepgate

LOOK_SECONDS = 0.5
"""How often the bar moves."""


async def indexed(
    stepgate: "Stepgate", conversation_id: str, stopped: asyncio.Event | None = None, *, owner: str = LOCAL_OWNER
) -> bool:
    """Read in what this conversation (its id, or the run's that has none) applied and nobody has read to its end; False
    where that failed, or `stopped` was set first. A running gateway may be the one that does it."""
    conversation = await stepgate.conversations.builder.store.get(conversation_id, owner)
    if conversation is None or conversation.job_id is None:
        return True
    job = await stepgate.jobs.wait(owner, conversation.job_id, 0)
    if job.is_finished:
        return True  # it was told when it ended
    stepgate.jobs.start()
    with reading_bar() as bar:
        task = bar.add_task("Reading", total=None, file="")
        while True:
            job = await stepgate.jobs.wait(owner, job.id, LOOK_SECONDS)
            done = job.progress
            bar.update(task, completed=done.done, total=done.total, file=screen.escape(done.current[-40:]))
            if job.is_finished or (stopped is not None and stopped.is_set()):
                return _told(job)


def _told(job: "Job") -> bool:
    """Say on stderr how far the job has come; whether it is done."""
    report, failure = job.outcome.report, job.outcome.failure
    if report is not None:
        print(f"{job.collection}: {report.get('read', 0)} documents read", file=sys.stderr)
        return True
    if failure is not None:
        print(f"{job.collection} could not be read: {failure.message}", file=sys.stderr)
    else:
        print(f"{job.collection} is not read to its end; `stepgate serve` goes on with it ({job.id})", file=sys.stderr)
    return False
