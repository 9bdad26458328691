"""The names other orchestrators have for our settings (document 004): read where our own name is not set."""

from collections.abc import Mapping
from typing import Any, Final

from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, EnvSettingsSource, PydanticBaseSettingsSource

PREFIXES: Final = ("AGENT_ORCHESTRATOR_", "ORCHESTRATOR_")
"""Both are read; the first wins."""

ALIASES: Final[Mapping[str, str]] = {
    "DATABASE_URL": "database_url",
    "PLANNER_MODE": "planner_mode",
    "EXECUTOR_MODE": "executor_mode",
    "TOOL_TIMEOUT_S": "tool_timeout_s",
    "TOOL_MAX_RETRIES": "tool_max_retries",
    "TOOL_RETRY_BACKOFF_S": "tool_retry_backoff_s",
    "OPENAI_API_KEY": "llm_api_key",
    "LLM_MODEL": "model_fast",
    "LLM_BASE_URL": "llm_base_url",
    "LLM_TIMEOUT_S": "llm_timeout_s",
    "EMBEDDING_MODEL": "embedder_model",
    "EMBEDDING_BASE_URL": "embedder_url",
    "RAG_RETRIEVAL_MODE": "retrieval_mode",
}
"""What stands after a prefix, and the setting it is. A bare OPENAI_API_KEY is none of them: a key of the shell's must
not go to an endpoint that was chosen for something else."""


REPLACED: Final[Mapping[str, str]] = {
    "COMPANY_SIM_ROOT": "documents lie in a collection: `stepgate ingest FOLDER --collection company` "
    "(AGENT_INCIDENT_KNOWLEDGE)",
    "RAG_INDEX_PATH": "issues lie in a collection: `stepgate corpus build FILE.jsonl --collection issues` "
    "(AGENT_INCIDENT_ISSUES)",
    "CHROMA_PERSIST_PATH": "vectors lie in the store, or in Qdrant (AGENT_QDRANT_URL, AGENT_QDRANT_PATH)",
    "CHROMA_COLLECTION": "every collection has vectors of its own; nothing is to be named",
    "LLM_MAX_RETRIES": "how often a model is asked again depends on what went wrong: the table of failures says it",
    "LLM_BACKOFF_S": "the wait before that is fixed, or what the provider asks for",
}
"""What those names set that is no setting here, and what there is instead."""


def replaced_names() -> dict[str, str]:
    """Every name that sets nothing here, and what there is instead."""
    return {prefix + name: instead for name, instead in REPLACED.items() for prefix in PREFIXES}


def alias_names() -> dict[str, str]:
    """Every alias with the setting it stands for."""
    return {prefix + name: field for name, field in ALIASES.items() for prefix in PREFIXES}


class AliasSource(PydanticBaseSettingsSource):
    """Settings under their other names, from the environment first, then from `.env`."""

    def __init__(self, settings: type[BaseSettings], *sources: PydanticBaseSettingsSource) -> None:
        super().__init__(settings)
        self._sources = [source for source in sources if isinstance(source, EnvSettingsSource)]

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        """The value under the first alias that is set."""
        names = [alias for alias, meant in alias_names().items() if meant == field_name]
        for name in names:
            for source in self._sources:
                value = source.env_vars.get(name.lower())
                if value is not None and value.strip():
                    return value, field_name, False
        return None, field_name, False

    def __call__(self) -> dict[str, Any]:
        """Every setting that has a value here."""
        found = {name: self.get_field_value(field, name)[0] for name, field in self.settings_cls.model_fields.items()}
        return {name: value for name, value in found.items() if value is not None}
