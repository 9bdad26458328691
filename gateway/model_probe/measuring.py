"""`ModelMeasurement`: measures one model at its endpoint and stores the record, by command or in an idle gateway."""

import asyncio
from collections.abc import Callable
from time import time

from agent.core.errors import ConfigError
from agent.llm.http import HttpModelClient
from agent.llm.listed_models import find_fingerprint, read_listed_models
from agent.llm.profile import MeasuredModel
from agent.llm.tiers import ConfiguredModel
from gateway.live_models import LiveModels
from gateway.model_choice import find_key
from gateway.model_probe.asked_model import AskedModel
from gateway.model_probe.probe import PROBE_SECONDS, ModelProbe, Outcome
from gateway.model_probe.record import build_record

Report = Callable[[Outcome], None]


class ModelMeasurement:
    """The measurement of one model. It can be cancelled; the tasks asked so far are kept for the next `run`."""

    def __init__(self, live: LiveModels, model: ConfiguredModel) -> None:
        """Raises `ConfigError` for a model without an address."""
        if model.base_url is None:
            raise ConfigError(f"{model.model} has no address of its own; only models of endpoints are measured")
        self.model = model
        self._base_url = model.base_url
        self._live = live
        self._client = HttpModelClient(model.base_url, find_key(live, model))
        self._probe = ModelProbe(AskedModel(self._client, model.model, timeout_s=live.settings.llm_timeout_s))

    async def read_fingerprint(self) -> str:
        """Returns what the endpoint lists of the model now. Raises `ModelError`."""
        return find_fingerprint(await self._client.read_listing(), self.model.model)

    async def run(self, *, seconds: float = PROBE_SECONDS, report: Report = lambda outcome: None) -> MeasuredModel:
        """Asks the missing tasks, stores the record and uses it. Raises `ModelError` and `ConfigError`."""
        listing = await self._client.read_listing()
        await self._probe.run(seconds=seconds, report=report)
        listed = next((one for one in read_listed_models(listing, {}) if one.name == self.model.model), None)
        record = build_record(
            self._probe,
            model=self.model.model,
            base_url=self._base_url,
            fingerprint=find_fingerprint(listing, self.model.model),
            context_tokens=listed.context_tokens if listed is not None else None,
            at=time(),
        )
        await asyncio.to_thread(self._live.measured.save, record)
        await self._live.refresh()
        return record

    async def aclose(self) -> None:
        """Closes the connection; a call in progress ends with it."""
        await self._client.aclose()
