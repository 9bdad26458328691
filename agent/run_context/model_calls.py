"""`MeteredModels`: the only way for a run to call a model. Checks budgets and records usage."""

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import KW_ONLY, dataclass, replace
from math import ceil, floor
from time import monotonic

from agent.core.errors import BudgetError, ModelError, ModelTimeoutError, StoreError
from agent.core.events import AssistantTurn, ModelReturned, Purpose
from agent.core.models import LOCAL_OWNER, JsonObject, Tier, Usage
from agent.llm.faults import hide_endpoint_details
from agent.llm.port import ModelChunk, ModelReply, ModelRequest, ResponseSchema
from agent.llm.streamed_reply import StreamedReply
from agent.policy.redaction.requests import redact_client_tools, redact_options
from agent.run_context.run import Run
from agent.run_context.token_estimates import (
    ANSWER_TOKENS,
    UsageMeter,
    estimate_call,
    estimate_prompt_tokens,
    estimate_unread_tokens,
)
from agent.storage.prompt_log import PromptLog

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ModelCall:
    """What a model is asked, before the run adds its model, its budget and its redaction (`ModelRequest`)."""

    purpose: Purpose
    messages: tuple[JsonObject, ...]
    _: KW_ONLY
    tier: Tier = "fast"
    tools: tuple[JsonObject, ...] = ()
    """The tools that the model may call."""
    schema: ResponseSchema | None = None
    """What the reply must match."""
    max_tokens: int | None = None
    """The longest reply; None: the limit of the settings."""
    temperature: float = 0.0
    """A completion has the caller's instead."""
    has_response_format: bool = True
    """Whether a completion has the caller's `response_format`."""
    retry_timeouts: bool = True
    """Whether a call that timed out is made once more."""


class MeteredModels:
    """The model calls of one run, for one attempt of a step, or for the planner.

    All three methods build the request, redact it, reserve its cost, call the model and record the call; they differ in
    how the reply arrives: whole (`complete`), whole with its pieces passed to a callback (`complete_streaming`), or as
    pieces (`stream`). Each raises `BudgetError` before the call, and `ModelError` after a failed one.

    `span` names the sub-agent of the calls. A share `leave` of every budget, from 0 to 1, is reserved for its
    parents.
    """

    def __init__(
        self, run: Run, step_id: str | None = None, attempt: int | None = None, *, span: str = "", leave: float = 0.0
    ) -> None:
        self._run = run
        self._step_id = step_id
        self._attempt = attempt
        self._span = span
        self._reserved_share = leave

    async def complete(self, call: ModelCall, *, keep_message: bool = False) -> ModelReply:
        """One whole completion. `keep_message` stores the reply in the log, for a conversation that must survive a
        crash.
        """
        if self._run.profile.decides == "rounds":
            # A slow model is given up where it says nothing, not while it writes a long text.
            return await self.complete_streaming(call, keep_message=keep_message)
        request = await self._redact(self._build_request(call))
        started = monotonic()
        async with self._reserve_budget(request) as meter:
            try:
                reply = await self._run.engine.models.require().complete(request)
            except (ModelError, asyncio.CancelledError) as error:
                self._note_slowness(request, error)
                usage = meter.estimate_usage_after_error(error)
                await self._record_call(request, call.tier, usage, started, error=error)
                raise self._redact_error(error) from error.__cause__
            meter.add_reply(reply)
            reply = self._run.engine.models.thoughts.split_reply(request, reply)
            reply = replace(self._run.redaction.redact_reply(reply), usage=meter.usage)
            message = await self._redact_turn(call, reply) if keep_message else None
            await self._record_call(request, call.tier, reply.usage, started, reply=reply, message=message)
        return reply

    def stream(self, call: ModelCall) -> AsyncGenerator[ModelChunk, None]:
        """Yields one completion as chunks. Records the call when it ends, fails, or is closed early."""
        request = self._build_request(call)
        return self._stream(request, call.tier, StreamedReply(request.model))

    async def complete_streaming(
        self,
        call: ModelCall,
        *,
        keep_message: bool = True,
        on_chunk: Callable[[ModelChunk], Awaitable[None]] | None = None,
    ) -> ModelReply:
        """Like `complete`; calls `on_chunk` with each piece as it arrives. The time limit is that of a stream: until
        the first token, and between tokens."""
        request = self._build_request(call)
        streamed = StreamedReply(request.model)
        replies: list[ModelReply] = []  # built once, because calls without an id get a random one

        async def finish_reply() -> AssistantTurn | None:
            replies.append(self._run.redaction.redact_reply(streamed.build_reply()))
            return await self._redact_turn(call, replies[0]) if keep_message else None

        async with aclosing(self._stream(request, call.tier, streamed, finish_reply)) as chunks:
            async for chunk in chunks:
                if on_chunk is not None:
                    await on_chunk(chunk)
        return replies[0]

    async def _stream(
        self,
        request: ModelRequest,
        tier: Tier,
        streamed: StreamedReply,
        finish_reply: Callable[[], Awaitable[AssistantTurn | None]] | None = None,
    ) -> AsyncGenerator[ModelChunk, None]:
        """Yields the chunks of a call, collects them in `streamed` and records the call. `finish_reply` is called with
        the whole reply in `streamed`, and returns the turn to keep in the log."""
        request = await self._redact(request)
        started = monotonic()
        thoughts = self._run.engine.models.thoughts
        splitter = thoughts.begin(request)
        async with self._reserve_budget(request) as meter:
            try:
                raws = self._run.engine.models.require().stream(request)
                async for raw in raws:
                    meter.add_chunk(raw)
                    chunk = splitter.split(raw)
                    streamed.add_chunk(chunk)
                    yield chunk
                    if splitter.is_beyond_end:  # the model makes up further turns, which nobody reads
                        streamed.finish_reason = "stop"
                        if isinstance(raws, AsyncGenerator):
                            await raws.aclose()
                        break
                if (rest := splitter.end()) is not None:
                    streamed.add_chunk(rest)
                    yield rest
                thoughts.learn(request, splitter)
            except (ModelError, asyncio.CancelledError) as error:
                if not streamed.text:
                    self._note_slowness(request, error)
                usage = meter.estimate_usage_after_error(error)
                await self._record_call(request, tier, usage, started, error=error, streamed=streamed)
                raise self._redact_error(error) from error.__cause__
            except GeneratorExit:  # the consumer closed the stream, but the provider charges for the call
                cut = asyncio.CancelledError()
                usage = meter.estimate_usage_after_error(cut)
                await self._record_call(request, tier, usage, started, error=cut, streamed=streamed)
                raise
            streamed.usage = meter.usage
            message = await finish_reply() if finish_reply is not None else None
            await self._record_call(request, tier, streamed.usage, started, streamed=streamed, message=message)

    @asynccontextmanager
    async def _reserve_budget(self, request: ModelRequest) -> AsyncIterator[UsageMeter]:
        """Counts a call as in flight, and reserves its estimated cost from the caller's key meanwhile.

        Raises `QuotaError` and `RateLimitError` before the call.
        """
        run, key, reservations = self._run, self._run.state.api_key_id, self._run.engine.quota_reservations
        prices = run.engine.models.prices
        reserved = ""
        if key is not None and reservations is not None:
            estimate = prices.add_cost(request.model, estimate_call(request))
            reserved = await reservations.reserve(key, estimate, run_id=run.run_id, epoch=run.epoch)
        run.calls_in_flight += 1
        meter = UsageMeter(request, prices)
        try:
            yield meter
        finally:
            run.calls_in_flight -= 1
            if key is not None and reservations is not None:
                await asyncio.shield(reservations.record_usage(key, reserved, meter.usage))

    def _build_request(self, call: ModelCall) -> ModelRequest:
        """A request that is not redacted yet, so that a spent budget raises `BudgetError` at once."""
        run, models = self._run, self._run.engine.models
        is_completion, tools = call.purpose == "completion", call.tools
        parameters = redact_options(run.state.request, run.room.guard_input) if is_completion else {}
        if not call.has_response_format:
            parameters = {name: value for name, value in parameters.items() if name != "response_format"}
        model, *fallbacks = models.list_upstreams(call.tier, run.room)
        check_budget(run, leave=self._reserved_share)
        if model in run.slow_models:
            raise ModelTimeoutError(run.slow_models[model], agent_id="models")
        # Callers write these tools, so their descriptions may contain an attack.
        if tools is run.state.request.client_tools:
            tools = redact_client_tools(run.state.request, run.room.guard_input)
        return ModelRequest(
            model=model,
            messages=call.messages,
            purpose=call.purpose,
            tools=tools,
            response_schema=call.schema,
            temperature=run.state.request.temperature if is_completion else call.temperature,
            max_tokens=call.max_tokens or models.max_tokens,
            options=parameters,
            fallbacks=tuple(fallbacks),
            timeout_s=min(models.timeout_s, max(1.0, run.seconds_left)),
            retry_timeouts=call.retry_timeouts,
            tokens_left=self._count_tokens_left(call.messages, tools),
        )

    async def _redact(self, request: ModelRequest) -> ModelRequest:
        """The request as the model may read it; nothing else is ever sent."""
        redaction = self._run.redaction
        messages = await redaction.redact_for_model(request.messages)
        tools = await redaction.redact_for_model(request.tools)
        if messages is request.messages and tools is request.tools:
            return request
        return replace(request, messages=messages, tools=tools)

    async def _redact_turn(self, call: ModelCall, reply: ModelReply) -> AssistantTurn | None:
        """A reply as the log keeps it; None if it cannot be kept."""
        return await self._run.redaction.redact_turn(to_assistant_turn(reply), call.tools)

    def _note_slowness(self, request: ModelRequest, error: BaseException) -> None:
        """Notes a model that sent nothing in time, also when it was asked again.

        It would keep the run waiting at every further call, and rules answer what they can. A model that is known to be
        capable is asked again: one late reply says little of it.
        """
        if isinstance(error, ModelTimeoutError) and request.retry_timeouts and self._run.profile.decides == "rounds":
            error.message = (
                f"the model is too slow here, so it is not asked again in this run: {error.message}; a smaller model, "
                "or a longer AGENT_LLM_TIMEOUT_S, would help"
            )
            self._run.slow_models[request.model] = error.message

    def _count_tokens_left(self, messages: tuple[JsonObject, ...], tools: tuple[JsonObject, ...]) -> int:
        """The tokens that the run's budget leaves for a reply.

        At least 4 % of the budget, by which a run may exceed it: a reply of a few tokens is useless.
        """
        run, budget = self._run, self._run.room.budgets.max_tokens
        spent = run.state.usage.total_tokens + estimate_prompt_tokens(messages, tools)
        return max(floor(budget * (1 - self._reserved_share)) - spent, budget // 25, 1)

    def _redact_error(self, error: BaseException) -> BaseException:
        """The error for callers, without secrets: providers repeat the key that they reject.

        Logs the full error for the operator, because the run may continue by rules.
        """
        if isinstance(error, ModelError):
            log.warning("a model call failed (%s): %s", error.code, error.message, extra={"code": error.code})
            state = self._run.state
            # The local owner is the operator, who needs the details.
            if state.api_key_id is not None or state.owner != LOCAL_OWNER:
                error.message = hide_endpoint_details(error, self._run.engine.settings.llm_base_url)
            error.message = self._run.redaction.redact_error(error.message)
        return error

    async def _record_call(
        self,
        request: ModelRequest,
        tier: Tier,
        usage: Usage,
        started: float,
        *,
        reply: ModelReply | None = None,
        message: AssistantTurn | None = None,
        error: BaseException | None = None,
        streamed: StreamedReply | None = None,
    ) -> None:
        """Records the end of a call. An interrupted call counts too, because the provider charges for it."""
        code = error.code if isinstance(error, ModelError) else "ERR_CANCELLED" if error else None
        tried = reply.requests if reply else error.requests if isinstance(error, ModelError) else 1
        answering = reply or streamed or StreamedReply(request.model)
        failed = error.failed_upstreams if isinstance(error, ModelError) else ()
        body = ModelReturned(
            purpose=request.purpose,
            tier=tier,
            model=answering.upstream or request.model,
            failed_upstreams=failed or answering.failed_upstreams,
            usage=usage,
            duration=monotonic() - started,
            requests=max(answering.requests, tried),
            finish_reason=None if error is not None else answering.finish_reason,
            error_code=code,
            message=message,
            span=self._span,
            unread_tokens=estimate_unread_tokens(request, usage),
        )
        await self._run.note(self._run.redaction.mark_redacted(body), step_id=self._step_id, attempt=self._attempt)
        if self._run.engine.prompts is not None:
            written = answering.build_reply() if isinstance(answering, StreamedReply) else answering
            whole = self._run.redaction.redact_reply(written) if error is None else None
            await self._keep_prompt(self._run.engine.prompts, request, body, whole)

    async def _keep_prompt(
        self, prompts: PromptLog, request: ModelRequest, body: ModelReturned, reply: ModelReply | None
    ) -> None:
        """Keeps what was sent and replied. A full disk does not fail the run."""
        reply_text = body.error_code or "" if reply is None else reply.text
        if reply is not None and reply.tool_calls:
            calls = [{"name": call.name, "arguments": call.arguments} for call in reply.tool_calls]
            reply_text = "\n".join(filter(None, (reply_text, json.dumps(calls, ensure_ascii=False))))
        try:
            await prompts.add(
                self._run.run_id, self._step_id, request.purpose, body.model, request.messages, reply_text
            )
        except StoreError as error:
            log.warning("a prompt of run %s is not kept: %s", self._run.run_id, error.message)


def to_assistant_turn(reply: ModelReply) -> AssistantTurn:
    """A reply as a turn of a skill's or sub-agent's conversation."""
    calls: tuple[JsonObject, ...] = tuple(
        {"id": call.id, "name": call.name, "arguments": call.arguments, **({"extra": call.extra} if call.extra else {})}
        for call in reply.tool_calls
    )
    return AssistantTurn(
        text=reply.text, tool_calls=calls, provider_fields=reply.provider_fields, finish_reason=reply.finish_reason
    )


def check_budget(run: Run, *, leave: float = 0.0) -> None:
    """Raises `BudgetError` if one more model call would exceed a budget of the run.

    `leave` is the share of each budget, from 0 to 1, that must stay unused; of the calls, at least one.
    """
    budgets, usage, share = run.room.budgets, run.state.usage, 1 - leave
    reserve_note = f", except {leave:.0%} that are reserved for the answer" if leave else ""

    def make_budget_error(what: str, budget: str) -> BudgetError:
        explanation = f"the run has used its {what}{reserve_note} (budgets.{budget} of the room)"
        return BudgetError(explanation, agent_id="budget")

    calls = budgets.max_model_calls - ceil(budgets.max_model_calls * leave)
    if usage.model_calls + run.calls_in_flight >= calls:
        raise make_budget_error(f"{budgets.max_model_calls} model calls", "max_model_calls")
    reserved = run.calls_in_flight * min(run.engine.models.max_tokens or ANSWER_TOKENS, budgets.max_tokens)
    if usage.total_tokens + reserved >= budgets.max_tokens * share:
        raise make_budget_error(f"{budgets.max_tokens} tokens", "max_tokens")
    if budgets.max_cost_usd is not None and (usage.cost_usd or 0) >= budgets.max_cost_usd * share:
        raise make_budget_error(f"{budgets.max_cost_usd} USD", "max_cost_usd")
    if run.seconds_left <= budgets.max_seconds * leave:
        raise make_budget_error(f"{budgets.max_seconds:g} seconds", "max_seconds")
