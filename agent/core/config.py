"""`Settings`: every knob of the gateway, read once from the environment and `.env`, validated, passed down."""

import json
import re
from functools import cache
from pathlib import Path
from typing import Annotated, Literal, get_args

from pydantic import Field, NonNegativeFloat, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict

from agent.core.config_aliases import AliasSource
from agent.core.models import GuardAction, RetrievalMode

PREFIX = "AGENT_"

PathList = Annotated[tuple[Path, ...], NoDecode]
NameList = Annotated[tuple[str, ...], NoDecode]
WorkMode = Literal["auto", "llm", "rules"]
_ADDRESS = re.compile(r"\s*\[[0-9a-fA-F]*:[^],]*\]")
"""An IPv6 address as hosts are written."""


class Settings(BaseSettings):
    """Each field is the setting `AGENT_<FIELD>`. Lists are separated by commas, or JSON."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_file=".env", env_file_encoding="utf-8", extra="ignore", frozen=True
    )

    host: str = Field(default="127.0.0.1", description="address the gateway binds")
    port: int = Field(default=8080, ge=0, le=65535, description="port the gateway binds; 0 picks a free one")
    allowed_hosts: NameList = Field(
        default=(), description="further Host names /mcp answers to, e.g. stepgate.example.org; others get 421"
    )
    public_url: str | None = Field(
        default=None,
        description="address at which browsers reach the gateway, for links to cited documents; unset: this machine's, "
        "where the gateway serves only it",
    )
    data_dir: Path = Field(default=Path("data"), description="folder of everything the gateway keeps")
    database_url: SecretStr | None = Field(
        default=None, description="postgresql://... to keep runs there; unset: SQLite in the data folder"
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(default="info", description="least level logged")

    llm_base_url: str | None = Field(
        default=None, description="any OpenAI-compatible endpoint, e.g. http://127.0.0.1:11434/v1"
    )
    llm_api_key: SecretStr | None = Field(default=None, description="bearer key of that endpoint")
    model_fast: str | None = Field(
        default=None,
        description="model that plans, supervises, runs skills (unset: the endpoint's first); without a URL LiteLLM's",
    )
    model_high: str | None = Field(default=None, description="model of demanding answers; the fast one when unset")
    llm_timeout_s: float = Field(default=60, gt=0, description="time limit of a model call in seconds")
    model_prices: dict[str, tuple[NonNegativeFloat, NonNegativeFloat]] = Field(
        default={},
        description="USD a million tokens, of prompts and of replies, where an endpoint tells no cost, as JSON: "
        '{"gpt-5-mini": [0.25, 2]}; * stands for any other model',
    )
    llm_max_tokens: int = Field(default=4096, ge=16, description="longest reply asked of a model, in tokens")

    embedder_url: str | None = Field(
        default=None, description="OpenAI-style embeddings endpoint of the memory; unset: local word vectors"
    )
    embedder_model: str | None = Field(
        default=None,
        description="model asked of that endpoint; without a URL LiteLLM's, as openai/text-embedding-3-small",
    )
    embedder_model_dir: Path | None = Field(
        default=None, description="folder of an embedding model run here (an extra; `stepgate embedder build`)"
    )
    embedder_api_key: SecretStr | None = Field(default=None, description="bearer key of that endpoint or provider")
    embedder_timeout_s: float = Field(default=10, gt=0, description="time limit of a call to it in seconds")
    qdrant_url: str | None = Field(default=None, description="Qdrant server that keeps the vectors; unset: the store")
    qdrant_api_key: SecretStr | None = Field(default=None, description="its key")
    qdrant_path: str | None = Field(
        default=None, description="folder of qdrant-client's local mode (one process only), if no server is set"
    )

    retrieval_mode: RetrievalMode = Field(
        default="hybrid_rerank",
        description="how documents are searched where neither room nor request says it: by words, by vectors, by both, "
        "by both and reranked; without usable vectors the words alone, which is told",
    )
    planner_mode: WorkMode = Field(
        default="auto",
        description="who plans: auto and llm ask a model and fall back to the rules, which is told; rules, or "
        "deterministic, asks none",
    )
    executor_mode: WorkMode = Field(
        default="auto", description="who carries out skills and writes answers and summaries: as AGENT_PLANNER_MODE"
    )
    incident_knowledge: str = Field(
        default="company", description="collection of policies, runbooks and documents the incident tools search"
    )
    incident_issues: str = Field(
        default="issues", description="collection of earlier tickets and incidents they search"
    )
    task_room: str = Field(default="incident", description="room the tasks of /tasks are carried out in")

    require_key: Literal["auto", "always", "never"] = Field(
        default="auto", description="who needs an API key: auto demands one unless only this machine can call"
    )
    token_verifier: str | None = Field(
        default=None, description="who verifies bearer tokens that are no keys of ours, as package.module:factory"
    )
    jwt_issuer: str | None = Field(default=None, description="issuer whose signed tokens callers may send as bearers")
    jwt_audience: str | None = Field(default=None, description="whom those tokens must be for")
    jwt_keys_url: str | None = Field(
        default=None, description="where the issuer publishes its keys (JWKS); below the issuer by default"
    )
    jwt_owner_claim: str = Field(default="sub", description="claim of those tokens that names the owner")
    log_format: Literal["text", "json"] = Field(
        default="text", description="how log lines are written: for people, or one JSON object each"
    )
    metrics: bool = Field(default=True, description="serve Prometheus metrics at /metrics")
    otel_endpoint: str | None = Field(
        default=None, description="OTLP endpoint (HTTP) that gets a trace of every run; unset: none (extra `otel`)"
    )
    otel_content: bool = Field(
        default=False, description="put requests, arguments and answers into those traces, not only names and numbers"
    )

    guard_pii: GuardAction = Field(
        default="redact",
        description="personal data in a prompt, where the room's file says nothing: not looked for, reported, kept "
        "from models by placeholders (answers and tools get it back), or the prompt refused",
    )
    guard_injection: GuardAction = Field(
        default="flag",
        description="an attempt to take over the agent, where the room's file says nothing: not looked for, reported, "
        "the attempt taken out, or the prompt refused",
    )

    translate: Literal["auto", "off"] = Field(
        default="auto",
        description="auto: other languages are planned in English and answered in their own; off: the models know them",
    )

    workflow: Literal["loop", "langgraph"] = Field(
        default="loop", description="who walks a run through its stages: our own loop, or LangGraph (an extra)"
    )

    default_room: str = Field(default="stepgate", description="room of requests that name none")
    rooms_dir: Path | None = Field(default=None, description="folder of room files that join or replace the shipped")
    skills_dirs: PathList = Field(default=(), description="further folders of skills, first wins")
    trust_project_skills: bool = Field(
        default=False, description="also load .agents/skills and .claude/skills of the working directory"
    )
    skills_user_dir: bool = Field(default=True, description="also load ~/.agents/skills")
    mcp_views_dir: Path | None = Field(
        default=None, description="folder of view files, each a choice of tools served at /mcp/NAME"
    )
    mcp_servers: Path | None = Field(
        default=None,
        description="file of other people's MCP servers; unset: <data_dir>/mcp_servers.json, and where there is none "
        "config/mcp_servers.json in the working folder",
    )
    mcp_pin: Literal["first_use", "review", "off"] = Field(
        default="first_use",
        description="tools of other people's MCP servers are used as they were accepted: by themselves on first use, "
        "or only after `stepgate mcp-servers review`; off: as they are offered",
    )
    credentials_path: Path | None = Field(
        default=None, description="file of named credentials of sources; <data_dir>/credentials.json when unset"
    )
    file_roots: PathList = Field(default=(), description="folders the file tools may read; <data_dir>/files when empty")
    fetcher_url: str | None = Field(default=None, description="a fetcher service web_fetch goes through")
    fetch_allow_hosts: NameList = Field(
        default=(), description="host[:port] names web_fetch may reach although they are private"
    )
    fetch_timeout_s: float = Field(default=20, gt=0, description="time limit of one fetch in seconds")
    fetch_max_bytes: int = Field(default=5_000_000, gt=0, description="largest page read, in bytes")
    tool_timeout_s: float = Field(default=60, gt=0, description="time limit of a tool call in seconds")
    tool_max_retries: int = Field(
        default=1, ge=0, le=5, description="further tries of a harmless tool call whose connection broke"
    )
    tool_retry_backoff_s: float = Field(
        default=0.2, ge=0, le=60, description="wait before the first of them in seconds; doubled for each further one"
    )
    tool_output_chars: int = Field(default=200_000, ge=1000, description="longest tool result kept, in characters")
    tool_content_bytes: int = Field(
        default=5_000_000,
        ge=0,
        description="most of the pictures, sound and files of one tool result that its caller over MCP gets, in bytes "
        "as they are sent (base64)",
    )

    max_body_bytes: int = Field(default=5_000_000, gt=0, description="largest request body in bytes")
    max_upload_bytes: int = Field(
        default=104_857_600, gt=0, description="largest file taken by POST /v1/documents, in bytes"
    )
    max_messages: int = Field(default=2000, gt=0, description="most messages in one request")
    max_message_chars: int = Field(default=1_000_000, gt=0, description="longest prompt or message, in characters")
    max_header_bytes: int = Field(
        default=32_768, ge=1024, description="largest request line with its headers, in bytes; more gets 431"
    )
    header_seconds: float = Field(
        default=10, gt=0, description="how long a client may take to send a request's headers, in seconds"
    )
    body_seconds: float = Field(
        default=30,
        gt=0,
        description="how long a client may take to send a body, in seconds; one more for every 10,000 bytes of it",
    )
    stall_seconds: float = Field(
        default=30, gt=0, description="how long a client may leave an answer unread until it is cut off, in seconds"
    )
    max_open_streams: int = Field(
        default=200, gt=0, description="event streams open at a time for one API key, or for all callers without one"
    )
    heartbeat_seconds: float = Field(
        default=15, gt=0, description="silence in seconds after which a stream is sent a comment, so that it stays open"
    )
    max_concurrent_runs: int = Field(default=100, gt=0, description="runs carried out at a time")
    max_queued_runs: int = Field(default=1000, ge=0, description="runs waiting before new ones get 503")
    redis_url: SecretStr | None = Field(
        default=None,
        description="redis://... for messages of conversations and limits of keys, shared by gateways; unset: here",
    )
    redis_prefix: str = Field(default="stepgate", min_length=1, description="what our keys in that Redis begin with")
    conversations_require_llm: bool = Field(
        default=True, description="refuse conversations about pipelines without a model; false: rules carry them"
    )
    conversation_message_seconds: float = Field(
        default=86_400, gt=0, description="how long their messages are kept after the last one, in seconds"
    )
    conversation_archive_days: float = Field(
        default=30, gt=0, description="days after which applied and abandoned conversations are archived"
    )
    conversation_messages_per_minute: int = Field(
        default=30, ge=1, description="messages one user may send to conversations in a minute"
    )
    approval_seconds: float = Field(
        default=604_800, gt=0, description="how long a run waits for a person's approval, in seconds"
    )
    drain_seconds: float = Field(default=15, ge=0, description="how long SIGTERM waits for running runs, in seconds")
    lease_seconds: float = Field(default=15, gt=0.2, description="how long a silent worker keeps its runs, in seconds")
    stream_coalesce_ms: int = Field(default=200, ge=0, description="text deltas are stored in pieces of this length")
    web: bool = Field(default=True, description="serve the web page at / to browsers, and its files at /web/")
    open_webui: Literal["auto", "always", "never"] = Field(
        default="auto", description="who gets the rich view: callers that show to be Open WebUI, all, none"
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
        """Arguments, the environment, `.env`; then the names that others have for our settings."""
        aliases = AliasSource(settings_cls, env_settings, dotenv_settings)
        return init_settings, env_settings, dotenv_settings, file_secret_settings, aliases

    @model_validator(mode="before")
    @classmethod
    def _empty_is_unset(cls, values: dict[str, object]) -> dict[str, object]:
        """An empty value is the default, whatever `.env` says: `AGENT_MODEL_FAST= stepgate ask ...`."""
        return {name: value for name, value in values.items() if not isinstance(value, str) or value.strip()}

    @field_validator("skills_dirs", "file_roots", "fetch_allow_hosts", "allowed_hosts", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        if value.lstrip().startswith("["):  # as other programs want their lists
            try:
                return json.loads(value)
            except ValueError:
                if _ADDRESS.match(value) is None:
                    raise ValueError("is no JSON list; separate what is in it by commas, without brackets") from None
        return tuple(part.strip() for part in value.split(",") if part.strip())

    @field_validator("planner_mode", "executor_mode", mode="before")
    @classmethod
    def _deterministic(cls, value: object) -> object:
        return "rules" if isinstance(value, str) and value.strip().lower() == "deterministic" else value

    @field_validator("llm_base_url", "fetcher_url", "embedder_url", "qdrant_url", "public_url")
    @classmethod
    def _http_url(cls, value: str | None) -> str | None:
        if value is not None and not value.startswith(("http://", "https://")):
            raise ValueError("must begin with http:// or https://")
        return value.rstrip("/") if value else None

    @field_validator(
        "data_dir",
        "rooms_dir",
        "skills_dirs",
        "file_roots",
        "mcp_servers",
        "mcp_views_dir",
        "credentials_path",
        "embedder_model_dir",
    )
    @classmethod
    def _expand_home(cls, value: Path | tuple[Path, ...] | None) -> Path | tuple[Path, ...] | None:
        if isinstance(value, tuple):
            return tuple(path.expanduser() for path in value)
        return value.expanduser() if value is not None else None

    def secret_values(self) -> tuple[str, ...]:
        """Every secret among these settings: what must not stand in a prompt, an answer or a log."""
        values = (getattr(self, name) for name in _secret_fields())
        return tuple(value.get_secret_value() for value in values if isinstance(value, SecretStr))

    @property
    def llm_configured(self) -> bool:
        """Whether models are to be asked; without any the gateway works in rules mode."""
        return self.model_fast is not None or self.llm_base_url is not None

    @property
    def browser_url(self) -> str | None:
        """Where a browser finds this gateway; None where that cannot be known."""
        if self.public_url is not None:
            return self.public_url
        return f"http://{self.host}:{self.port}" if self.port and self.host in ("127.0.0.1", "localhost") else None

    @property
    def readable_roots(self) -> tuple[Path, ...]:
        """The folders the file tools may read."""
        return self.file_roots or (self.data_dir / "files",)

    @property
    def mcp_servers_path(self) -> Path:
        """The file of other people's MCP servers: the one that is set, else that of the data folder, else the working
        folder's. Where there is none, the data folder's is the one to make."""
        own, shared = self.data_dir / "mcp_servers.json", Path("config/mcp_servers.json")
        return self.mcp_servers or (shared if shared.is_file() and not own.exists() else own)

    @property
    def credentials_file(self) -> Path:
        """The file of named credentials."""
        return self.credentials_path or self.data_dir / "credentials.json"

    @property
    def database_path(self) -> Path:
        """The embedded database."""
        return self.data_dir / "stepgate.db"


@cache
def _secret_fields() -> tuple[str, ...]:
    """The settings that are secrets; every answer is held against them, so they are found once."""
    fields = Settings.model_fields.items()
    return tuple(name for name, field in fields if SecretStr in (field.annotation, *get_args(field.annotation)))
