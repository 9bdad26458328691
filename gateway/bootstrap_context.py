"""The first step of the composition root: what every other step builds on."""

import logging
from contextlib import AsyncExitStack
from dataclasses import dataclass

from agent.core.errors import ConfigError
from agent.core.settings import Settings
from agent.net import SafeClient
from agent.run_context.extensions import NO_EXTENSIONS, Extensions
from agent.runs.run_worker import make_worker_name
from agent.storage.api_keys import KeyStore
from agent.storage.audit import StoredAuditLog
from agent.storage.sql import SqlClient
from gateway.bootstrap_database import Storage, build_statements, open_store
from gateway.bootstrap_extensions import InstalledExtensions
from gateway.feature_loader import FeatureConflictError, LoadedFeatures, load_features
from gateway.observe.metrics import Metrics

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BuildContext:
    """What every step of the composition root builds on."""

    settings: Settings
    stack: AsyncExitStack
    """Closes what the steps open, the latest first."""
    store: Storage
    statements: SqlClient
    audit: StoredAuditLog
    keys: KeyStore
    client: SafeClient
    """The client for addresses that users or models choose."""
    installed: InstalledExtensions
    extensions: Extensions
    """The gates and topics of all packages."""
    features: LoadedFeatures
    """The features in use."""
    metrics: Metrics
    worker: str
    """This process's name in the journal."""
    recover: bool
    """Whether this process takes over the work of others; a command does not."""


async def open_context(
    settings: Settings, stack: AsyncExitStack, storage: "Storage | None", *, recover: bool
) -> BuildContext:
    """Opens the store, unless `storage` replaces it, and loads what installed packages add.

    Raises `ConfigError`, `StoreNewerError` and `StoreError`.
    """
    store = storage if storage is not None else await open_store(settings)
    stack.push_async_callback(store.close)
    installed = InstalledExtensions.with_parsers()
    statements = build_statements(store)
    audit = StoredAuditLog(statements, store.clock)
    client = SafeClient(settings.fetch_allow_hosts)
    stack.push_async_callback(client.aclose)
    return BuildContext(
        settings,
        stack,
        store,
        statements,
        audit,
        KeyStore(statements, store.clock, audit),
        client,
        installed,
        NO_EXTENSIONS,
        choose_configured(settings),
        Metrics(),
        make_worker_name(),
        recover,
    )


def choose_configured(settings: Settings) -> LoadedFeatures:
    """Returns the features that the settings leave on, and logs those that are skipped. Raises `ConfigError`."""
    try:
        features = load_features(settings.features)
    except FeatureConflictError as error:
        raise ConfigError(str(error)) from error
    for skipped in features.skipped:
        log.warning("the feature %s is skipped: %s", skipped.name, skipped.error)
    return features
