"""`MeteredModels`: the only way a run asks a model. Budgets are checked before, usage is recorded after, each call."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from math import ceil
from time import monotonic

from agent.core.errors import BudgetError, ModelError
from agent.core.events import AssistantTurn, ModelReturned, Purpose
from agent.core.llm.port import ModelChunk, ModelReply, ModelRequest, ResponseSchema
from agent.core.models import JsonObject, Tier, Usage
from agent.execution.run import Run

ANSWER_TOKENS = 1_000
"""What an answer without a limit is taken to cost, until it is known."""


class MeteredModels:
    """Model calls of one run, on behalf of one attempt of a step (or of none: planner, judge of the whole), or of the
    sub-agent `span` within it, which has to `leave` a share of every budget, from 0 to 1, to those who wait for it."""

    def __init__(
        self, run: Run, step_id: str | None = None, attempt: int | None = None, *, span: str = "", leave: float = 0.0
    ) -> None:
        self._run = run
        self._step_id = step_id
        self._attempt = attempt
        self._span = span
        self._leave = leave

    async def complete(
        self,
        purpose: Purpose,
        messages: tuple[JsonObject, ...],
        *,
        tier: Tier = "fast",
        tools: tuple[JsonObject, ...] = (),
        schema: ResponseSchema | None = None,
        max_tokens: int | None = None,
        keep_message: bool = False,
    ) -> ModelReply:
        """One whole completion. Raises `BudgetError` before the call, `ModelError` after a failed one.

        `keep_message` stores the reply in the log, for a conversation that must survive a crash."""
        request = self._request(purpose, messages, tier, tools, schema, max_tokens)
        started = monotonic()
        async with self._in_flight(request) as bill:
            try:
                reply = await self._run.engine.models.require().complete(request)
            except (ModelError, asyncio.CancelledError) as error:
                await self._record(request, tier, Usage(model_calls=1), started, error=error)
                raise
            bill.append(reply.usage)
            message = _turn(reply) if keep_message else None
            await self._record(request, tier, reply.usage, started, reply=reply, message=message)
        return reply

    async def stream(
        self,
        purpose: Purpose,
        messages: tuple[JsonObject, ...],
        *,
        tier: Tier,
        tools: tuple[JsonObject, ...] = (),
        max_tokens: int | None = None,
    ) -> AsyncIterator[ModelChunk]:
        """One completion as chunks; recorded when it ends, well or not."""
        request = self._request(purpose, messages, tier, tools, None, max_tokens)
        started = monotonic()
        usage: Usage | None = None
        finish: str | None = None
        async with self._in_flight(request) as bill:
            try:
                async for chunk in self._run.engine.models.require().stream(request):
                    usage = chunk.usage or usage
                    bill[:] = [usage or Usage()]
                    finish = chunk.finish_reason or finish
                    yield chunk
            except (ModelError, asyncio.CancelledError) as error:
                await self._record(request, tier, usage or Usage(model_calls=1), started, error=error)
                raise
            await self._record(request, tier, usage or Usage(model_calls=1), started, finish=finish)

    @asynccontextmanager
    async def _in_flight(self, request: ModelRequest) -> AsyncIterator[list[Usage]]:
        """Count a call against the budgets until its usage does; what it may cost is set aside from the caller's key.

        What was spent goes onto the bill. Raises `QuotaError` and `RateLimitError` before the call."""
        run, key, purse = self._run, self._run.state.key, self._run.engine.purse
        reserved = 0
        if key is not None and purse is not None:
            reserved = expected_tokens(request)
            await purse.reserve(key, reserved)
        run.calls_in_flight += 1
        bill: list[Usage] = []
        try:
            yield bill
        finally:
            run.calls_in_flight -= 1
            if key is not None and purse is not None:
                await asyncio.shield(purse.settle(key, reserved, sum(bill, Usage())))

    def _request(
        self,
        purpose: Purpose,
        messages: tuple[JsonObject, ...],
        tier: Tier,
        tools: tuple[JsonObject, ...],
        schema: ResponseSchema | None,
        max_tokens: int | None,
    ) -> ModelRequest:
        run, models = self._run, self._run.engine.models
        model = models.name(tier, run.room)
        check_budget(run, leave=self._leave)
        return ModelRequest(
            model=model,
            messages=messages,
            purpose=purpose,
            tools=tools,
            response_schema=schema,
            temperature=run.state.request.temperature if purpose == "completion" else 0.0,
            max_tokens=max_tokens or models.max_tokens,
            options=run.state.request.options if purpose == "completion" else {},
            timeout_s=min(models.timeout_s, max(1.0, run.seconds_left)),
        )

    async def _record(
        self,
        request: ModelRequest,
        tier: Tier,
        usage: Usage,
        started: float,
        *,
        reply: ModelReply | None = None,
        message: AssistantTurn | None = None,
        error: BaseException | None = None,
        finish: str | None = None,
    ) -> None:
        """The call's end in the log. One that was cut short counts too: the provider has begun it."""
        code = error.code if isinstance(error, ModelError) else "ERR_CANCELLED" if error else None
        body = ModelReturned(
            purpose=request.purpose,
            tier=tier,
            model=reply.model if reply else request.model,
            usage=usage,
            duration=monotonic() - started,
            requests=reply.requests if reply else 1,
            finish_reason=reply.finish_reason if reply else finish,
            error_code=code,
            message=message,
            span=self._span,
        )
        await self._run.emit(body, step_id=self._step_id, attempt=self._attempt)


def _turn(reply: ModelReply) -> AssistantTurn:
    calls: tuple[JsonObject, ...] = tuple(
        {"id": call.id, "name": call.name, "arguments": call.arguments} for call in reply.tool_calls
    )
    return AssistantTurn(text=reply.text, tool_calls=calls)


def expected_tokens(request: ModelRequest) -> int:
    """What a call may cost: its text at four characters a token, and the longest answer it asks for."""
    sent = sum(len(str(message.get("content") or "")) for message in request.messages)
    return sent // 4 + (request.max_tokens or ANSWER_TOKENS)


def check_budget(run: Run, *, leave: float = 0.0) -> None:
    """Raise `BudgetError` when one more model call would pass a budget of the run, or the share of it, from 0 to 1,
    that has to be left over; of the calls that is at least one."""
    budgets, usage, share = run.room.budgets, run.state.usage, 1 - leave
    kept = f", but for {leave:.0%} that are kept for the answer" if leave else ""
    calls = budgets.max_model_calls - ceil(budgets.max_model_calls * leave)
    if usage.model_calls + run.calls_in_flight >= calls:
        raise BudgetError(f"the run has used its {budgets.max_model_calls} model calls{kept}", agent_id="budget")
    reserved = run.calls_in_flight * min(run.engine.models.max_tokens or 0, budgets.max_tokens)
    if usage.total_tokens + reserved >= budgets.max_tokens * share:
        raise BudgetError(f"the run has used its {budgets.max_tokens} tokens{kept}", agent_id="budget")
    if budgets.max_cost_usd is not None and (usage.cost_usd or 0) >= budgets.max_cost_usd * share:
        raise BudgetError(f"the run has used its {budgets.max_cost_usd} USD{kept}", agent_id="budget")
    if run.seconds_left <= budgets.max_seconds * leave:
        raise BudgetError(f"the run has used its {budgets.max_seconds:g} seconds{kept}", agent_id="budget")
