"""`MeteredModels`: the only way a run asks a model. Budgets are checked before, usage is recorded after, each call."""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from math import ceil
from time import monotonic

from agent.core.errors import BudgetError, ModelError
from agent.core.events import AssistantTurn, ModelReturned, Purpose
from agent.core.llm.faults import for_strangers
from agent.core.llm.port import ModelChunk, ModelReply, ModelRequest, ResponseSchema
from agent.core.models import LOCAL_OWNER, JsonObject, Tier, Usage
from agent.execution.asides import turn_kept
from agent.execution.estimates import Bill, expected
from agent.execution.run import Run
from agent.execution.screening import options_for_models
from agent.execution.shield import configured_secrets, for_models, without_own_secrets
from agent.execution.tool_deltas import tool_calls_of

log = logging.getLogger(__name__)


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
        formed: bool = True,
    ) -> ModelReply:
        """One whole completion. Raises `BudgetError` before the call, `ModelError` after a failed one.

        `keep_message` stores the reply in the log, for a conversation that must survive a crash. Without `formed` the
        caller's `response_format` is kept from the model."""
        request = self._request(purpose, messages, tier, tools, schema, max_tokens, formed=formed)
        started = monotonic()
        async with self._in_flight(request) as bill:
            try:
                reply = await self._run.engine.models.require().complete(request)
            except (ModelError, asyncio.CancelledError) as error:
                await self._record(request, tier, bill.ended(error), started, error=error)
                raise self._told(error) from error.__cause__
            bill.reply(reply)
            reply = replace(without_own_secrets(self._run, reply), usage=bill.spent)
            message = await turn_kept(self._run, _turn(reply), tools) if keep_message else None
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
        formed: bool = True,
    ) -> AsyncGenerator[ModelChunk, None]:
        """One completion as chunks; recorded when it ends, well or not, and when it is closed before. For `formed` see
        `complete`."""
        request = self._request(purpose, messages, tier, tools, None, max_tokens, formed=formed)
        started = monotonic()
        finish: str | None = None
        requests = 1
        async with self._in_flight(request) as bill:
            try:
                async for chunk in self._run.engine.models.require().stream(request):
                    bill.chunk(chunk)
                    requests = max(requests, chunk.requests)
                    finish = chunk.finish_reason or finish
                    yield chunk
            except (ModelError, asyncio.CancelledError) as error:
                await self._record(request, tier, bill.ended(error), started, error=error, requests=requests)
                raise self._told(error) from error.__cause__
            except GeneratorExit:  # whoever listened has left: the provider has worked all the same
                cut = asyncio.CancelledError()
                await self._record(request, tier, bill.ended(cut), started, error=cut, requests=requests)
                raise
            await self._record(request, tier, bill.spent, started, finish=finish, requests=requests)

    async def spoken(
        self,
        purpose: Purpose,
        messages: tuple[JsonObject, ...],
        *,
        tier: Tier,
        tools: tuple[JsonObject, ...],
        said: Callable[[str], Awaitable[None]],
    ) -> ModelReply:
        """`complete` with `keep_message`, whose text is told to `said` as it comes."""
        request = self._request(purpose, messages, tier, tools, None, None, formed=True)
        started = monotonic()
        text: list[str] = []
        deltas: list[JsonObject] = []
        finish, requests = "stop", 1
        async with self._in_flight(request) as bill:
            try:
                async for chunk in self._run.engine.models.require().stream(request):
                    bill.chunk(chunk)
                    finish = chunk.finish_reason or finish
                    requests = max(requests, chunk.requests)
                    deltas += chunk.tool_calls
                    text.append(chunk.text)
                    if chunk.text:
                        await said(chunk.text)
            except (ModelError, asyncio.CancelledError) as error:
                await self._record(request, tier, bill.ended(error), started, error=error, requests=requests)
                raise self._told(error) from error.__cause__
            calls = tool_calls_of(deltas)
            whole = ModelReply("".join(text), request.model, finish, bill.spent, calls, requests=requests)
            reply = without_own_secrets(self._run, whole)
            message = await turn_kept(self._run, _turn(reply), tools)
            await self._record(request, tier, reply.usage, started, reply=reply, message=message)
        return reply

    @asynccontextmanager
    async def _in_flight(self, request: ModelRequest) -> AsyncIterator[Bill]:
        """Count a call against the budgets until its usage does; what it may cost is set aside from the caller's key.

        What is spent goes onto the bill. Raises `QuotaError` and `RateLimitError` before the call."""
        run, key, purse = self._run, self._run.state.key, self._run.engine.purse
        prices = run.engine.models.prices
        reserved = ""
        if key is not None and purse is not None:
            asked = prices.priced(request.model, expected(request))
            reserved = await purse.reserve(key, asked, run_id=run.run_id, epoch=run.epoch)
        run.calls_in_flight += 1
        bill = Bill(request, prices)
        try:
            yield bill
        finally:
            run.calls_in_flight -= 1
            if key is not None and purse is not None:
                await asyncio.shield(purse.settle(key, reserved, bill.spent))

    def _request(
        self,
        purpose: Purpose,
        messages: tuple[JsonObject, ...],
        tier: Tier,
        tools: tuple[JsonObject, ...],
        schema: ResponseSchema | None,
        max_tokens: int | None,
        *,
        formed: bool,
    ) -> ModelRequest:
        run, models = self._run, self._run.engine.models
        options = options_for_models(run) if purpose == "completion" else {}
        if not formed:
            options = {name: value for name, value in options.items() if name != "response_format"}
        model = models.name(tier, run.room)
        check_budget(run, leave=self._leave)
        return ModelRequest(
            model=model,
            messages=for_models(run, messages),
            purpose=purpose,
            tools=for_models(run, tools),
            response_schema=schema,
            temperature=run.state.request.temperature if purpose == "completion" else 0.0,
            max_tokens=max_tokens or models.max_tokens,
            options=options,
            timeout_s=min(models.timeout_s, max(1.0, run.seconds_left)),
        )

    def _told(self, error: BaseException) -> BaseException:
        """The error as people may read it: providers repeat the key they refuse. The operator hears of it here, for the
        run may go on by rules."""
        if isinstance(error, ModelError):
            log.warning("a model call failed (%s): %s", error.code, error.message, extra={"code": error.code})
            state = self._run.state
            if state.key is not None or state.owner != LOCAL_OWNER:  # else the caller is at home, and may mend it
                error.message = for_strangers(error, self._run.engine.settings.llm_base_url)
            error.message = configured_secrets(self._run, "forms").redact(error.message)
        return error

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
        requests: int = 1,
    ) -> None:
        """The call's end in the log. One that was cut short counts too: the provider has begun it."""
        code = error.code if isinstance(error, ModelError) else "ERR_CANCELLED" if error else None
        tried = reply.requests if reply else error.requests if isinstance(error, ModelError) else 1
        body = ModelReturned(
            purpose=request.purpose,
            tier=tier,
            model=reply.model if reply else request.model,
            usage=usage,
            duration=monotonic() - started,
            requests=max(requests, tried),
            finish_reason=reply.finish_reason if reply else finish,
            error_code=code,
            message=message,
            span=self._span,
        )
        await self._run.note(body, step_id=self._step_id, attempt=self._attempt)


def _turn(reply: ModelReply) -> AssistantTurn:
    calls: tuple[JsonObject, ...] = tuple(
        {"id": call.id, "name": call.name, "arguments": call.arguments} for call in reply.tool_calls
    )
    return AssistantTurn(text=reply.text, tool_calls=calls)


def check_budget(run: Run, *, leave: float = 0.0) -> None:
    """Raise `BudgetError` when one more model call would pass a budget of the run, or the share of it, from 0 to 1,
    that has to be left over; of the calls that is at least one."""
    budgets, usage, share = run.room.budgets, run.state.usage, 1 - leave
    kept = f", but for {leave:.0%} that are kept for the answer" if leave else ""

    def spent(what: str, budget: str) -> BudgetError:
        told = f"the run has used its {what}{kept} (budgets.{budget} of the room)"
        return BudgetError(told, agent_id="budget")

    calls = budgets.max_model_calls - ceil(budgets.max_model_calls * leave)
    if usage.model_calls + run.calls_in_flight >= calls:
        raise spent(f"{budgets.max_model_calls} model calls", "max_model_calls")
    reserved = run.calls_in_flight * min(run.engine.models.max_tokens or 0, budgets.max_tokens)
    if usage.total_tokens + reserved >= budgets.max_tokens * share:
        raise spent(f"{budgets.max_tokens} tokens", "max_tokens")
    if budgets.max_cost_usd is not None and (usage.cost_usd or 0) >= budgets.max_cost_usd * share:
        raise spent(f"{budgets.max_cost_usd} USD", "max_cost_usd")
    if run.seconds_left <= budgets.max_seconds * leave:
        raise spent(f"{budgets.max_seconds:g} seconds", "max_seconds")
