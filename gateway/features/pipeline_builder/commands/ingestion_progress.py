"""Follows the ingestion job of a conversation in the terminal."""

import asyncio
import sys
from typing import TYPE_CHECKING

from agent.core.models import LOCAL_OWNER
from gateway.cli import lazy_rich
from gateway.features.documents.parts import get_documents
from gateway.features.pipeline_builder.parts import get_conversations

if TYPE_CHECKING:
    from gateway.bootstrap import Stepgate
    from gateway.features.documents.engine.ingest.jobs import Job

POLL_SECONDS = 0.5
"""Interval of the progress bar."""


async def follow_ingestion(
    stepgate: "Stepgate", conversation_id: str, stopped: asyncio.Event | None = None, *, owner: str = LOCAL_OWNER
) -> bool:
    """Waits for the job of an applied pipeline. Returns False if it failed or `stopped` was set first.

    `conversation_id` may also be the id of the conversation's run. A running gateway may be the process that does the
    work.
    """
    conversation = await get_conversations(stepgate).builder.store.get(conversation_id, owner)
    if conversation is None or conversation.job_id is None:
        return True
    job = await get_documents(stepgate).jobs.wait(owner, conversation.job_id, 0)
    if job.is_finished:
        return True  # its result was printed when it ended
    get_documents(stepgate).jobs.start()
    with lazy_rich.show_progress("Reading") as progress:
        while True:
            job = await get_documents(stepgate).jobs.wait(owner, job.id, POLL_SECONDS)
            progress(job.progress.current, job.progress.done, job.progress.total)
            if job.is_finished or (stopped is not None and stopped.is_set()):
                return _print_job_result(job)


def _print_job_result(job: "Job") -> bool:
    """Prints the job's result on stderr. Returns whether it has succeeded."""
    report, failure = job.outcome.report, job.outcome.failure
    if report is not None:
        print(f"{job.collection}: {report.get('read', 0)} documents read", file=sys.stderr)
        return True
    if failure is not None:
        print(f"{job.collection} could not be indexed: {failure.message}", file=sys.stderr)
    else:
        print(f"{job.collection} is not completely indexed; `stepgate serve` continues ({job.id})", file=sys.stderr)
    return False
