"""The first step of the composition root: what every other step builds on."""

from contextlib import AsyncExitStack
from dataclasses import dataclass

from agent.core.settings import Settings
from agent.net import SafeClient
from agent.run_context.extensions import NO_EXTENSIONS, Extensions
from agent.runs.run_worker import make_worker_name
from agent.storage.api_keys import KeyStore
from agent.storage.audit import StoredAuditLog
from agent.storage.sql import SqlClient
from gateway.bootstrap_database import Storage, build_statements, open_store
from gateway.bootstrap_extensions import InstalledExtensions
from gateway.configured_features import apply_feature_revisions, choose_configured
from gateway.feature_loader import LoadedFeatures
from gateway.observe.metrics import Metrics


@dataclass(frozen=True, slots=True)
class BuildContext:
    """The context that every step of the composition root builds on."""

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
    features = choose_configured(settings)
    await apply_feature_revisions(store, features)
    installed = InstalledExtensions()
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
        features,
        Metrics(),
        make_worker_name(),
        recover,
    )
