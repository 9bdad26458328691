"""Asks every column for every case, one case after another, so that an interrupted run has as many of each."""

import asyncio
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import httpx

from agent.core.settings import Settings
from gateway.features.evaluation.progress import ProgressFile
from gateway.features.evaluation.report import ERROR_STATUS
from tests.bench.endpoint import ChatReply, Endpoint, build_body, complete, start_gateway
from tests.bench.function_calls.cases import (
    OFFERING_ROOM,
    ROOM,
    Case,
    CaseReply,
    ColumnName,
    build_case_reply,
    get_messages,
    get_tools,
)

MAX_QUESTIONS = 3
"""Approvals that the person behind the client gives for one case."""
WAITING = "awaiting_approval"

Replies = dict[ColumnName, dict[str, CaseReply]]
"""The replies of each column by the id of the case."""


@dataclass(frozen=True, slots=True)
class Column:
    """Who answers: `client` is the gateway's or the endpoint's, `model` a room or a model."""

    name: ColumnName
    client: httpx.AsyncClient
    model: str

    async def ask(self, case: Case) -> CaseReply:
        """The reply to a case. The gateway may ask before a call that changes something: the person approves."""
        messages, replies = get_messages(self.name, case), list[ChatReply]()
        while True:
            replies.append(await complete(self.client, build_body(self.model, messages, get_tools(self.name, case))))
            if replies[-1].run_status != WAITING or len(replies) > MAX_QUESTIONS:
                return build_case_reply(case, replies)
            messages += [{"role": "assistant", "content": replies[-1].text}, {"role": "user", "content": "approve"}]


def ask_columns(
    names: Sequence[ColumnName],
    cases: Sequence[Case],
    settings: Settings,
    endpoint: Endpoint,
    *,
    parallel: int,
    progress: ProgressFile[CaseReply] | None,
) -> Replies:
    """Starts a gateway and asks for what `progress` does not have. Errors are in the replies."""
    with start_gateway(settings, {OFFERING_ROOM: ROOM}) as url:
        return asyncio.run(_ask_all(names, cases, url, endpoint, parallel=parallel, progress=progress))


async def _ask_all(
    names: Sequence[ColumnName],
    cases: Sequence[Case],
    url: str,
    endpoint: Endpoint,
    *,
    parallel: int,
    progress: ProgressFile[CaseReply] | None,
) -> Replies:
    replies: Replies = {name: {} for name in names}
    slots = asyncio.Semaphore(parallel)
    gateway = Endpoint(f"{url}/v1", "")
    async with gateway.open_client() as through, endpoint.open_client() as bare, asyncio.TaskGroup() as group:
        columns: Mapping[ColumnName, Column] = {
            "gateway": Column("gateway", through, OFFERING_ROOM),
            "chat": Column("chat", through, "chat"),
            "native": Column("native", bare, endpoint.model),
            "prompting": Column("prompting", bare, endpoint.model),
        }

        async def ask(column: Column, case: Case) -> None:
            stored = progress.find(column.name, case.id) if progress is not None else None
            async with slots:
                reply = stored or await column.ask(case)
            replies[column.name][case.id] = reply
            if stored is None and progress is not None:
                progress.add(column.name, reply)
            if reply.status == ERROR_STATUS:
                print(f"{column.name} {case.id}: {reply.error[:160]}", file=sys.stderr, flush=True)

        for case in cases:
            for name in names:
                group.create_task(ask(columns[name], case))
    return replies
