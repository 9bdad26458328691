"""`LiveModels`: keeps the models of a running gateway equal to the operator's saved list, also after changes by hand.

The environment wins: where it names a model, the saved list is kept and shown but not used.
"""

import asyncio
import logging
from contextlib import AsyncExitStack

from agent.core.errors import AgentError, ConfigError
from agent.core.settings import Settings
from agent.core.throttled_log import ThrottledLog
from agent.llm.measured_models import MeasuredModels
from agent.llm.port import ModelClient
from agent.llm.saved_models import SavedModel, SavedModels, get_stamp
from agent.llm.tiers import ConfiguredModel, ModelTiers
from agent.storage.credentials import Credentials
from gateway.bootstrap_context import BuildContext
from gateway.bootstrap_models import build_models, build_saved_models, describe_saved_model
from gateway.local_engine import LocalModelClient
from gateway.observe.logs import hide_in_logs

log = logging.getLogger(__name__)

WATCH_SECONDS = 1.0
"""How often the file is compared: a choice at the command line is used within this time."""
_UNREAD = (-1,)


class LiveModels:
    """The models in use, and the saved list. `fault` says why the list cannot be used; then what was used before is."""

    def __init__(self, settings: Settings, tiers: ModelTiers) -> None:
        self.settings = settings
        self.tiers = tiers
        self.saved = SavedModels(settings.saved_models_path)
        self.measured = MeasuredModels(settings.measured_models_path)
        self.credentials = Credentials(settings.credentials_file)
        self.fault = ""
        self.unused: tuple[ConfiguredModel, ...] = ()
        """Saved models that the environment overrides."""
        self._stamp: tuple[int, ...] | None = _UNREAD
        self._measured_stamp: tuple[int, ...] | None = _UNREAD
        self._serves = False
        self._retired: list[ModelClient] = []
        self._lock = asyncio.Lock()

    def start(self) -> None:
        """Loads the files of models now, and those that are chosen later: before the first request needs them."""
        self._serves = True
        for engine in self.tiers.engines.values():
            engine.start()

    async def watch(self) -> None:
        """Takes up changes until it is cancelled."""
        trouble = ThrottledLog(log, "changes of the saved models cannot be taken up")
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            with trouble.guard():
                await self.refresh()

    async def refresh(self) -> None:
        """Takes up the saved list and what was measured, if they have changed.

        A list that cannot be used is reported in `fault`.
        """
        async with self._lock:
            stamp, measured = await asyncio.to_thread(self._read_stamps)
            if stamp != self._stamp:
                self._stamp = stamp
                await self._take_up_list()
            elif measured == self._measured_stamp:
                return
            self._measured_stamp = measured
            fast = self.tiers.fast_model
            self.tiers.measured = (
                await asyncio.to_thread(self.measured.find, fast.place, fast.model) if fast is not None else None
            )

    async def _take_up_list(self) -> None:
        try:
            entries, keys = await asyncio.to_thread(self._read)
        except AgentError as error:
            self.fault = error.message
            log.warning("the saved models cannot be used: %s", error.message)
            return
        self.fault = ""
        if self.settings.is_llm_configured:
            self.unused = tuple(describe_saved_model(one, has_key=one.name in keys) for one in entries)
            return
        loaded = {file: one for file, one in self.tiers.engines.items() if isinstance(one, LocalModelClient)}
        await self._use(build_saved_models(self.settings, entries, keys, loaded))

    async def save(self, entry: SavedModel, key: str | None = None) -> None:
        """Saves an entry at the head of the list, with its key, and uses it. Raises `ConfigError` and
        `CredentialError`.
        """
        if entry.base_url is not None and key is not None:
            entry = entry.model_copy(update={"credential": f"model-{entry.name}"})
        await asyncio.to_thread(self._save, entry, key)
        await self.refresh()

    async def remove(self, name: str) -> bool:
        """Removes an entry and its key. Returns whether there was one."""
        removed = await asyncio.to_thread(self.saved.remove, name)
        if removed is not None and removed.credential is not None:
            await asyncio.to_thread(self.credentials.remove_model_key, removed.credential)
        await self.refresh()
        return removed is not None

    def find_key(self, entry: SavedModel) -> str | None:
        """The key of a saved endpoint. Raises `CredentialError` if it cannot be read."""
        if entry.credential is None or entry.base_url is None:
            return None
        return self.credentials.get_model_key(entry.credential, entry.base_url).get_secret_value()

    async def aclose(self) -> None:
        """Closes the clients, those that were replaced too."""
        for client in (*self._retired, *([self.tiers.client] if self.tiers.client is not None else ())):
            await client.aclose()

    def _read_stamps(self) -> tuple[tuple[int, ...] | None, tuple[int, ...] | None]:
        return self.saved.get_stamp(), get_stamp(self.settings.measured_models_path)

    def _read(self) -> tuple[tuple[SavedModel, ...], dict[str, str]]:
        entries = self.saved.read()
        keys = {entry.name: self.find_key(entry) for entry in entries}
        return entries, {name: key for name, key in keys.items() if key is not None}

    def _save(self, entry: SavedModel, key: str | None) -> None:
        if entry.credential is not None and entry.base_url is not None and key is not None:
            self.credentials.set_model_key(entry.credential, entry.base_url, key)
        self.saved.put_first(entry)

    async def _use(self, tiers: ModelTiers) -> None:
        """Replaces the models. Runs in progress may still read from the clients before, which are closed at the end; a
        model file that is no longer used leaves the memory at once.
        """
        before = self.tiers.engines
        self._retired += self.tiers.endpoint_clients
        self.tiers.replace(tiers)
        for file, engine in before.items():
            if file not in tiers.engines:
                await engine.aclose()
        if self._serves:
            self.start()
        hide_in_logs(tiers.keys)
        if tiers.is_configured:
            log.info("models in use: fast=%s, high=%s", tiers.fast, tiers.high or tiers.fast)


async def open_models(context: BuildContext) -> LiveModels:
    """The models of this process, which the end of the gateway closes. Raises `ConfigError`."""
    return await open_live_models(context.settings, context.stack)


async def open_live_models(settings: Settings, stack: AsyncExitStack) -> LiveModels:
    """The models that the settings or the saved list name. Raises `ConfigError`."""
    live = LiveModels(settings, await build_models(settings))
    stack.push_async_callback(live.aclose)
    await live.refresh()
    return live


def check_name_is_free(live: LiveModels, entry: SavedModel) -> None:
    """Raises `ConfigError` if the name is that of another endpoint of the settings."""
    if entry.name in live.settings.model_endpoints:
        raise ConfigError(f"{entry.name!r} is the name of an endpoint in AGENT_MODEL_ENDPOINTS; choose another one")
