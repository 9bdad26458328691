"""Names of settings that are not ours: those that other orchestrators use (document 004), and standard ones.

They apply where our own name is not set.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, EnvSettingsSource, PydanticBaseSettingsSource

from agent.core.settings.constants import ConstantSettings

OWN_PREFIX: Final = "AGENT_"
PREFIXES: Final = ("AGENT_ORCHESTRATOR_", "ORCHESTRATOR_")
"""Both are read; the first one has precedence."""

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
"""The name after a prefix, and our setting. OPENAI_API_KEY without a prefix is not an alias: a key in the shell's
environment must not be sent to an endpoint that was configured for something else."""


REPLACED: Final[Mapping[str, str]] = {
    "COMPANY_SIM_ROOT": "documents are in a collection: `stepgate ingest FOLDER --collection company`",
    "RAG_INDEX_PATH": "issues are in a collection: `stepgate corpus build FILE.jsonl --collection issues`",
    "CHROMA_PERSIST_PATH": "vectors are in the database, or in Qdrant (AGENT_QDRANT_URL, AGENT_QDRANT_PATH)",
    "CHROMA_COLLECTION": "every collection has its own vectors; no name is needed",
    "LLM_MAX_RETRIES": "how often a model call is retried depends on the failure; see docs/failures.md",
    "PLANNER_ANSWER": "how a model plans and answers follows from AGENT_MODEL_PROFILE",
    "LLM_BACKOFF_S": "the wait before a retry is fixed, or as long as the provider asks",
}
"""Names that have no setting here, and what replaces them."""


STANDARD: Final[Mapping[str, tuple[str, ...]]] = {
    "objects_endpoint": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"),
    "objects_region": ("AWS_REGION", "AWS_DEFAULT_REGION"),
    "objects_key_id": ("AWS_ACCESS_KEY_ID",),
    "objects_secret": ("AWS_SECRET_ACCESS_KEY",),
    "otel_endpoint": ("OTEL_EXPORTER_OTLP_ENDPOINT",),
}
"""Settings that have no name of ours: the variables, as all programs of their field read them; the first one wins."""

REMOVED: Final[Mapping[str, str]] = {
    **{field.upper(): f"set {names[0]}" for field, names in STANDARD.items()},
    "OBJECTS_SECRET_FILE": "set AWS_SECRET_ACCESS_KEY_FILE",
    "PLANNER_ANSWER": REPLACED["PLANNER_ANSWER"],
    "EXECUTOR_MODE": "AGENT_PLANNER_MODE covers skills and answers too",
    "TASK_ROOM": "tasks run in the room `incident`; a file `incident.yaml` in AGENT_ROOMS_DIR replaces it",
    "MCP_SERVERS": "move the file to `mcp_servers.json` in AGENT_DATA_DIR",
    "MCP_VIEWS_DIR": "move its files to the folder `mcp_views` in AGENT_DATA_DIR",
    "CREDENTIALS_PATH": "move the file to `credentials.json` in AGENT_DATA_DIR",
    "JWT_KEYS_URL": "the metadata of AGENT_JWT_ISSUER names its keys",
    "JWT_OWNER_CLAIM": "the owner is the token's `sub`; AGENT_TOKEN_VERIFIER can choose another one",
    "TRUST_PROJECT_SKILLS": "name the folders .agents/skills and .claude/skills in AGENT_SKILLS_DIRS",
    "SKILLS_USER_DIR": "AGENT_SKILLS_DIRS names every folder besides the shipped one, or none",
}
"""Former settings of the kernel, without the prefix, and what replaces them. Constants are not repeated here; features
declare theirs."""


def list_removed_names() -> dict[str, str]:
    """The full name of every former setting of the kernel, with what replaces it."""
    constants = {
        name.upper(): f"it is fixed at {field.default:,}" for name, field in ConstantSettings.model_fields.items()
    }
    return {f"{OWN_PREFIX}{name}": instead for name, instead in {**constants, **REMOVED}.items()}


def list_replaced_names() -> dict[str, str]:
    """Every foreign name that has no setting here, with what replaces it."""
    return {prefix + name: instead for name, instead in REPLACED.items() for prefix in PREFIXES}


def get_variable(field: str) -> str:
    """The name of the environment variable of a setting."""
    return STANDARD[field][0] if field in STANDARD else f"{OWN_PREFIX}{field.upper()}"


def list_alias_names() -> dict[str, str]:
    """Every alias with the setting it stands for."""
    return {prefix + name: field for name, field in ALIASES.items() for prefix in PREFIXES}


@cache
def _list_aliases() -> dict[str, list[str]]:
    """The aliases of each setting that has any."""
    aliases: dict[str, list[str]] = {}
    for alias, field in list_alias_names().items():
        aliases.setdefault(field, []).append(alias)
    return aliases


class AliasSource(PydanticBaseSettingsSource):
    """Reads settings under their aliases, from the environment first, then from `.env`."""

    def __init__(self, settings: type[BaseSettings], *sources: PydanticBaseSettingsSource) -> None:
        super().__init__(settings)
        self._sources = [source for source in sources if isinstance(source, EnvSettingsSource)]

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        """The value of the first alias that is set."""
        for name in (*STANDARD.get(field_name, ()), *_list_aliases().get(field_name, ())):
            for source in self._sources:
                value = source.env_vars.get(name.lower())
                if value is not None and value.strip():
                    return value, field_name, False
        return None, field_name, False

    def __call__(self) -> dict[str, Any]:
        """Every setting that has an alias set."""
        values = {name: self.get_field_value(field, name)[0] for name, field in self.settings_cls.model_fields.items()}
        return {name: value for name, value in values.items() if value is not None}
