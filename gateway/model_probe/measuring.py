"""`ModelMeasurement`: measures one model at its endpoint and stores the record, by command or in an idle gateway."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from time import time

from agent.core.errors import ConfigError, ModelError
from agent.core.models import JsonObject
from agent.llm.http import HttpModelClient
from agent.llm.listed_models import find_fingerprint, read_listed_models
from agent.llm.profile import MeasuredModel
from agent.llm.saved_models import get_stamp
from agent.llm.tiers import ConfiguredModel
from agent.planning.rounds.tool_need import build_first_question
from gateway.live_models import LiveModels
from gateway.model_choice import find_key
from gateway.model_probe.asked_model import AskedModel
from gateway.model_probe.probe import PROBE_SECONDS, ModelProbe, Outcome
from gateway.model_probe.record import build_record

Report = Callable[[Outcome], None]
BuildPrompt = Callable[[], Awaitable[tuple[JsonObject, ...]]]
"""Builds the messages of a prompt; none if there is nothing to read."""


class ModelMeasurement:
    """The measurement of one model. It can be cancelled; the tasks asked so far are kept for the next `run`."""

    def __init__(self, live: LiveModels, model: ConfiguredModel) -> None:
        """Raises `ConfigError` for a model that is neither at an address nor in a file."""
        engine = live.tiers.engines.get(model.file or "")
        if model.place is None or (model.base_url is None and engine is None):
            raise ConfigError(
                f"{model.model} has no address of its own; only models of endpoints and files are measured"
            )
        self.model = model
        self._place = model.place
        self._live = live
        self._own_client = (
            HttpModelClient(model.base_url, find_key(live, model), extra_body=model.extra_body)
            if model.base_url
            else None
        )
        client = self._own_client or engine
        assert client is not None
        self._asked = AskedModel(client, model.model, timeout_s=live.settings.llm_timeout_s)
        self._probe = ModelProbe(self._asked)
        self._former: MeasuredModel | None = None
        """The record of the measurement that this one goes on from."""

    async def read_fingerprint(self) -> str:
        """The identity of this model among others at its place. Raises `ModelError`."""
        return (await self._look())[0]

    async def warm(self, build_decision: BuildPrompt) -> None:
        """Has the endpoint read the prompts of the first answer and of the first decision. Raises `ModelError`, and
        what `build_decision` raises.

        An endpoint that keeps one prompt only ends with that of each answer: of one with room for both, it takes no
        time to read it twice.
        """
        question = build_first_question()
        await self._asked.read(question)
        if decision := await build_decision():
            await self._asked.read(decision)
            await self._asked.read(question)

    async def run(self, *, seconds: float = PROBE_SECONDS, report: Report = lambda outcome: None) -> MeasuredModel:
        """Asks the missing tasks, stores the record and uses it. Goes on from the stored record of the same model if
        that was cut off by its time limit. Raises `ModelError` and `ConfigError`."""
        fingerprint, context_tokens = await self._look()
        if not self._probe.outcomes:
            former = await asyncio.to_thread(self._live.measured.find, self._place, self.model.model)
            if former is not None and not former.is_complete and former.fingerprint == fingerprint:
                self._former = former
                self._probe.resume(former.outcomes)
        await self._probe.run(seconds=seconds, report=report)
        if context_tokens is None:  # Ollama says it of models that are loaded
            with suppress(ModelError):
                context_tokens = (await self._look())[1]
        record = build_record(
            self._probe,
            model=self.model.model,
            base_url=self._place,
            fingerprint=fingerprint,
            context_tokens=context_tokens,
            at=time(),
            former=self._former,
        )
        await asyncio.to_thread(self._live.measured.save, record)
        await self._live.refresh()
        return record

    async def aclose(self) -> None:
        """Closes the connection; a call in progress ends with it."""
        if self._own_client is not None:
            await self._own_client.aclose()

    async def _look(self) -> tuple[str, int | None]:
        """The fingerprint of the model, and its context in tokens as far as it is known."""
        if self._own_client is None:
            stamp = await asyncio.to_thread(get_stamp, Path(self.model.file or ""))
            return "/".join(map(str, (stamp or ())[1:3])), self._live.settings.model_context
        listing = await self._own_client.read_listing()
        listed = next((one for one in read_listed_models(listing, {}) if one.name == self.model.model), None)
        return find_fingerprint(listing, self.model.model), listed.context_tokens if listed is not None else None
