"""`WebhookSender`: posts the ends of runs, each until it is accepted. No run waits for it.

A delivery is in the outbox before its run starts. It is sent at least once: a gateway that dies between the receiver's
answer and its own record sends it again, under the same `webhook-id`.
"""

import asyncio
import contextlib
import logging
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from agent.core.cancellation import cancel_and_wait
from agent.core.errors import (
    BadRequestError,
    NotFoundError,
    StoreError,
    ToolDeniedError,
    ToolError,
    ToolInputError,
)
from agent.core.events import Event
from agent.core.models import Webhook
from agent.core.throttled_log import ThrottledLog
from agent.net import SafeClient
from agent.storage.credentials import CredentialError, Credentials
from gateway.features.schedules.engine.webhook_outbox import DeliveryState, WebhookDelivery, WebhookOutbox
from gateway.features.schedules.engine.webhooks.payload import build_payload
from gateway.features.schedules.engine.webhooks.signature import build_headers

log = logging.getLogger(__name__)

RETRY_DELAYS: Final = (5.0, 60.0, 300.0, 1800.0, 7200.0, 18_000.0, 36_000.0, 50_400.0, 72_000.0, 86_400.0)
"""Seconds between the attempts: eleven in about three days, as the specification suggests."""
JITTER: Final = 0.2
"""Part of a delay that is random, so that the posts of an outage do not all come back at once."""
MAX_PARALLEL: Final = 16
POLL_SECONDS: Final = 2.0
"""How long an ended run of another process, or a repetition, may wait for the next look into the outbox."""
ORPHANS_EVERY_SECONDS: Final = 60.0
CHECK_SECONDS: Final = 3.0
"""Longest lookup of a webhook's host when it is registered."""
STOP_SECONDS: Final = 3.0
MAX_AWAITED_RUNS: Final = 10_000


class RunEvents(Protocol):
    """Reads the logs of runs. `agent.runs.service.AgentService` implements it."""

    async def read_events(self, run_id: str, *, owner: str = ..., after: int = 0) -> list[Event]:
        """The events of a run. Raises `NotFoundError`."""
        ...


@dataclass(frozen=True, slots=True)
class SendResult:
    """The result of an attempt. `status` is the HTTP status, if there was one; `retry_after_s` what the server asks."""

    state: DeliveryState
    status: int | None = None
    error: str = ""
    retry_after_s: float = 0.0


class WebhookSender:
    """Sends what is due in the outbox, here and in every other gateway on the same store.

    `run_url` begins the addresses of runs in the bodies. `timeout_s` limits one attempt.
    """

    def __init__(
        self,
        outbox: WebhookOutbox,
        client: SafeClient,
        credentials: Credentials,
        get_runs: Callable[[], RunEvents],
        *,
        run_url: str,
        timeout_s: float,
        delays: Sequence[float] = RETRY_DELAYS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.outbox = outbox
        self._client = client
        self._credentials = credentials
        self._get_runs = get_runs
        self._run_url = run_url
        self._timeout_s = timeout_s
        self._delays = delays
        self._clock = clock
        self._wake = asyncio.Event()
        self.awaited_runs: set[str] = set()
        """The runs whose ends must be posted, as far as this process knows."""
        self._sending: dict[asyncio.Task[None], str] = {}
        """The attempts in flight, with their owners."""
        self._orphans_at = 0.0

    async def register(self, owner: str, run_id: str, webhook: Webhook) -> bool:
        """Stores a delivery for a run that is about to start. Returns False if it was stored before."""
        if len(self.awaited_runs) >= MAX_AWAITED_RUNS:  # runs that other processes have ended; polling finds them all
            self.awaited_runs.clear()
        self.awaited_runs.add(run_id)
        return await self.outbox.register(owner, run_id, webhook)

    async def discard(self, run_id: str) -> None:
        """Removes the delivery of a run that was refused."""
        self.awaited_runs.discard(run_id)
        await self.outbox.discard(run_id)

    async def check(self, webhook: Webhook, owner: str) -> None:
        """Raises `BadRequestError` for an address or a secret that cannot be used. The message says what to do."""
        try:
            if webhook.secret_name is not None:
                await asyncio.to_thread(self._credentials.list_webhook_keys, webhook.secret_name, webhook.url, owner)
        except CredentialError as error:
            raise BadRequestError(f"webhook.secret_name: {error.message}", param="webhook.secret_name") from error
        try:
            self._client.parse_url(webhook.url)
            async with asyncio.timeout(CHECK_SECONDS):
                await self._client.check_url(webhook.url)
        except (ToolDeniedError, ToolInputError) as error:
            raise BadRequestError(f"webhook.url: {error.message}", param="webhook.url") from error
        except (ToolError, TimeoutError):  # the lookup may work when the run ends; each attempt checks again
            return

    def notice_end(self, run_id: str) -> None:
        """Starts the delivery of an ended run at once."""
        self.awaited_runs.discard(run_id)
        self._wake.set()

    def wake(self) -> None:
        """Makes the sender look into the outbox now."""
        self._wake.set()

    @contextlib.asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Sends while entered. What is being sent at the end gets a few seconds, then another process repeats it."""
        task = asyncio.create_task(self._send_due(), name="webhooks")
        try:
            yield
        finally:
            await cancel_and_wait(task)
            if self._sending:
                _, late = await asyncio.wait(self._sending, timeout=STOP_SECONDS)
                await cancel_and_wait(*late)

    async def _send_due(self) -> None:
        trouble = ThrottledLog(log, "webhooks cannot be read from the store")
        while True:
            self._wake.clear()
            with trouble.guard():
                await self._start_attempts()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(POLL_SECONDS):
                    await self._wake.wait()

    async def _start_attempts(self) -> None:
        free, in_flight = MAX_PARALLEL - len(self._sending), Counter(self._sending.values())
        hold_s = self._timeout_s + 30  # longer than the attempt, so that the hold needs no renewal
        for delivery in await self.outbox.take_due(free, hold_s=hold_s, in_flight=in_flight) if free > 0 else ():
            task = asyncio.create_task(self._attempt(delivery), name=f"webhook {delivery.id}")
            self._sending[task] = delivery.owner
            task.add_done_callback(self._end_attempt)
        if self._clock() >= self._orphans_at:
            self._orphans_at = self._clock() + ORPHANS_EVERY_SECONDS
            await self.outbox.give_up_orphans()

    def _end_attempt(self, task: asyncio.Task[None]) -> None:
        del self._sending[task]
        self._wake.set()

    async def _attempt(self, delivery: WebhookDelivery) -> None:
        """Makes one attempt and records its result."""
        try:
            result = await self._send_safely(delivery)
            state, due = result.state, self._clock()
            if state == "open" and delivery.attempts > len(self._delays):
                state = "failed"
            elif state == "open":
                delay = self._delays[delivery.attempts - 1] * random.uniform(1, 1 + JITTER)  # noqa: S311 - no secret
                due += max(delay, min(result.retry_after_s, self._delays[-1]))
            await self.outbox.record_attempt(
                delivery, state, next_attempt=due, status=result.status, error=result.error
            )
        except StoreError as error:  # due again when the hold is over
            log.warning("the attempt to deliver webhook %s is not recorded: %s", delivery.id, error.message)
            return
        if state != "delivered":
            log.info("webhook %s: attempt %d: %s (%s)", delivery.id, delivery.attempts, result.error, state)

    async def _send_safely(self, delivery: WebhookDelivery) -> SendResult:
        """Posts the delivery. A defect of ours counts as a failed attempt, so that it ends too. Raises `StoreError`."""
        if delivery.attempts > len(self._delays) + 1:  # the process died in each of them
            return SendResult("failed", error=delivery.last_error or "no attempt was finished")
        try:
            return await self._send(delivery)
        except StoreError:
            raise
        except Exception:
            log.exception("webhook %s cannot be sent", delivery.id)
            return SendResult("open", error="an internal error; the gateway's log has the details")

    async def _send(self, delivery: WebhookDelivery) -> SendResult:
        """Posts the delivery. Raises `StoreError`."""
        try:
            events = await self._get_runs().read_events(delivery.run_id, owner=delivery.owner)
            body = build_payload(events, f"{self._run_url}/v1/runs/{delivery.run_id}")
            keys: list[bytes] = []
            if (name := delivery.secret_name) is not None:
                keys = await asyncio.to_thread(self._credentials.list_webhook_keys, name, delivery.url, delivery.owner)
            async with asyncio.timeout(self._timeout_s):
                return await self._post(delivery, body, keys)
        except NotFoundError:
            return SendResult("failed", error="the run was deleted")
        except (ToolError, CredentialError) as error:
            # The path and query of an address may be the receiver's secret: they are in no error and no log.
            import httpx  # noqa: PLC0415 - 5 MB with httpcore; what it fetched with has loaded it

            message = error.message.replace(delivery.url, httpx.URL(delivery.url).host)
            return SendResult("failed" if isinstance(error, ToolDeniedError) else "open", error=message)
        except TimeoutError:
            return SendResult("open", error=f"no answer within {self._timeout_s:g} s")

    async def _post(self, delivery: WebhookDelivery, body: bytes, keys: Sequence[bytes]) -> SendResult:
        headers = build_headers(delivery.id, self._clock(), body, keys) | {"content-type": "application/json"}
        async with self._client.open(
            delivery.url, method="POST", headers=headers, content=body, silence_s=self._timeout_s
        ) as answer:
            status, retry_after = answer.status, answer.headers.get("retry-after", "")
        if 200 <= status < 300:
            return SendResult("delivered", status)
        if status == 410:  # the specification's word for a receiver that wants no more
            return SendResult("failed", status, "the receiver answered 410: it accepts no more deliveries")
        redirected = ": redirects are not followed" if 300 <= status < 400 else ""
        seconds = float(retry_after) if retry_after.isascii() and retry_after.isdigit() else 0.0
        return SendResult("open", status, f"the receiver answered {status}{redirected}", seconds)
