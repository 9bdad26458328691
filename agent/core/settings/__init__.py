"""`Settings`: every option of the gateway, read once from the environment and `.env`, validated and passed down.

The options are in the modules of this package, one for each subject.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import get_args

from pydantic import SecretStr, model_validator
from pydantic_settings import BaseSettings, EnvSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict

from agent.core.readable_roots import AddedRoots, ReadableRoots
from agent.core.settings.access import AccessSettings
from agent.core.settings.aliases import STANDARD, AliasSource, get_variable
from agent.core.settings.constants import ConstantSettings, remove_names
from agent.core.settings.conversations import ConversationsSettings
from agent.core.settings.derived import DerivedSettings
from agent.core.settings.guards import GuardSettings
from agent.core.settings.limits import LimitSettings
from agent.core.settings.models import ModelSettings
from agent.core.settings.observation import ObservationSettings
from agent.core.settings.planning import PlanningSettings
from agent.core.settings.rooms import RoomSettings
from agent.core.settings.search import SearchSettings
from agent.core.settings.secret_files import SecretFileSource
from agent.core.settings.server import ServerSettings
from agent.core.settings.stores import StoreSettings
from agent.core.settings.tools import ToolSettings
from agent.core.settings.variables import VariableSource
from agent.core.settings.workers import WorkerSettings

PREFIX = "AGENT_"


class Settings(
    # Pydantic orders fields from the last base to the first: docs/settings.md begins with `ServerSettings`.
    DerivedSettings,
    ConstantSettings,
    ConversationsSettings,
    WorkerSettings,
    LimitSettings,
    ToolSettings,
    RoomSettings,
    GuardSettings,
    ObservationSettings,
    AccessSettings,
    PlanningSettings,
    SearchSettings,
    ModelSettings,
    StoreSettings,
    ServerSettings,
    BaseSettings,
):
    """Each field but those of `ConstantSettings`, `DerivedSettings` and `STANDARD` is the setting `AGENT_<FIELD>`.

    Lists are separated by commas or written as JSON.

    A secret can also be read from a file: `AGENT_<FIELD>_FILE` names it.

    A program that embeds the gateway gives the settings of features as further arguments. The start refuses an argument
    that is not a setting (`check_further_settings` in `gateway/feature_settings.py`).
    """

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_file=".env", env_file_encoding="utf-8", extra="allow", frozen=True
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Orders the sources: arguments, environment, secret files, `.env`, then the names other orchestrators use."""
        for source in (env_settings, dotenv_settings):
            remove_names(source, (*ConstantSettings.model_fields, *DerivedSettings.model_fields, *STANDARD))
        files = SecretFileSource(settings_cls, env_settings, dotenv_settings)
        aliases = AliasSource(settings_cls, env_settings, dotenv_settings)
        assert isinstance(env_settings, EnvSettingsSource)
        assert isinstance(dotenv_settings, EnvSettingsSource)
        environment = VariableSource(settings_cls, env_settings)
        dotenv = VariableSource(settings_cls, dotenv_settings)
        return init_settings, environment, files, dotenv, file_secret_settings, aliases

    @model_validator(mode="before")
    @classmethod
    def _drop_empty_values(cls, values: dict[str, object]) -> dict[str, object]:
        """Treats an empty value as unset, so that `AGENT_MODEL_FAST= stepgate ask ...` overrides `.env` with the
        default.
        """
        return {name: value for name, value in values.items() if not isinstance(value, str) or value.strip()}

    @property
    def further(self) -> Mapping[str, object]:
        """The arguments that are not fields: settings of features."""
        return self.model_extra or {}

    def list_secrets(self) -> tuple[str, ...]:
        """Every secret among the settings. None of them may appear in a prompt, an answer or a log."""
        values = (getattr(self, name) for name in _list_secret_fields())
        keys = (endpoint.api_key for endpoint in self.model_endpoints.values())
        return tuple(value.get_secret_value() for value in (*values, *keys) if isinstance(value, SecretStr))

    def list_secret_names(self) -> tuple[str, ...]:
        """The names of the secrets that are set."""
        return tuple(name for name in _list_secret_fields() if getattr(self, name) is not None)

    def list_secret_settings(self) -> tuple[tuple[str, bool], ...]:
        """The name of every setting that holds a secret, and whether it is set."""
        return tuple((get_variable(name), getattr(self, name) is not None) for name in _list_secret_fields())

    @property
    def readable_roots(self) -> ReadableRoots:
        """The folders that may be read. Those of AGENT_FILE_ROOTS are final: none is added to them."""
        if self.file_roots:
            return ReadableRoots(self.file_roots)
        return ReadableRoots((self.data_dir / "files",), AddedRoots(self.added_roots_path))

    @property
    def added_roots_path(self) -> Path:
        """The file of the folders that were added by `stepgate file-roots` or the page."""
        return self.data_dir / "file_roots.json"

    @property
    def rooms_path(self) -> Path:
        """The folder of the operator's room files. The one in the data folder is created with its first room."""
        return self.rooms_dir or self.data_dir / "rooms"

    @property
    def mcp_servers_path(self) -> Path:
        """The file that lists foreign MCP servers: the data folder's, else the working folder's. If none exists, the
        path in the data folder is where to create it.
        """
        own, shared = self.data_dir / "mcp_servers.json", Path("config/mcp_servers.json")
        return self.mcp_servers or (shared if shared.is_file() and not own.exists() else own)

    @property
    def mcp_views_path(self) -> Path:
        """The folder of the operator's view files, which may not exist."""
        return self.mcp_views_dir or self.data_dir / "mcp_views"

    @property
    def saved_models_path(self) -> Path:
        """The file of the models that were chosen by `stepgate models` or the page."""
        return self.data_dir / "models.yaml"

    @property
    def measured_models_path(self) -> Path:
        """The file of what was measured of models."""
        return self.data_dir / "model_profiles.json"

    @property
    def credentials_file(self) -> Path:
        """The file of named credentials."""
        return self.credentials_path or self.data_dir / "credentials.json"


@cache
def _list_secret_fields() -> tuple[str, ...]:
    """The names of the settings that hold secrets. Cached, because every answer is compared with them."""
    fields = Settings.model_fields.items()
    return tuple(name for name, field in fields if SecretStr in (field.annotation, *get_args(field.annotation)))
