"""The features that the settings choose, and their tables."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from agent.core.errors import ConfigError
from agent.core.settings import Settings
from agent.storage.feature_schema import FeatureRevision, apply_revisions
from agent.storage.feature_tables import FeatureRetention, FeatureTables
from gateway.bootstrap_database import Storage
from gateway.feature_events import declare_events
from gateway.feature_loader import VARIABLE, FeatureError, LoadedFeatures, import_target, load_features
from gateway.feature_settings import check_further_settings, check_settings

log = logging.getLogger(__name__)


@contextmanager
def explain_feature_errors() -> Iterator[None]:
    """Raises `ConfigError` for what is wrong with features."""
    try:
        yield
    except FeatureError as error:
        hint = f"; {VARIABLE} switches features off" if VARIABLE not in str(error) else ""
        raise ConfigError(f"{error}{hint}") from error


def choose_configured(settings: Settings) -> LoadedFeatures:
    """The features that the settings leave on, and logs those that are skipped. Raises `ConfigError`."""
    with explain_feature_errors():
        features = load_features(settings.features, checks_hooks=True)
        check_settings(features)
        check_further_settings(settings, features)
        declare_events(features)
    for skipped in features.skipped:
        log.warning("the feature %s is skipped: %s", skipped.name, skipped.error)
    return features


async def apply_feature_revisions(store: Storage, features: LoadedFeatures) -> None:
    """Creates and changes the tables of features. Raises `StoreNewerError` and `StoreError`."""
    for name in await apply_revisions(store, list_revisions(features)):
        log.debug("changed the tables of a feature: %s", name)


def list_revisions(features: LoadedFeatures) -> list[FeatureRevision]:
    """The revisions of all known features, those that are off too: their rows can be deleted with an owner."""
    return [
        FeatureRevision(feature.name, one.name, one.sqlite, one.postgres)
        for feature in features.known
        for one in feature.revisions
    ]


def collect_tables(features: LoadedFeatures) -> FeatureTables:
    """The tables of all known features, those of a feature before those of the features that it needs."""
    ordered = features.known[::-1]
    return FeatureTables(
        owned=tuple(table for feature in ordered for table in feature.owned_tables),
        work=tuple(table for feature in ordered for table in feature.work_tables),
        of_runs=tuple(table for feature in ordered for table in feature.run_tables),
    )


def list_retentions(features: LoadedFeatures) -> list[FeatureRetention]:
    """What all known features have to do with age. Raises `ConfigError` if one cannot be imported: nobody knows then
    what it needs."""
    with explain_feature_errors():
        return [import_target(one.retention) for one in features.known if one.retention is not None]
