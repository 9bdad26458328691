"""`Settings`: every option of the gateway, read once from the environment and `.env`, validated and passed down."""

import json
import re
import zoneinfo
from functools import cache
from pathlib import Path
from typing import Annotated, Literal, get_args

from pydantic import Field, NonNegativeFloat, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict

from agent.core.model_endpoints import ModelEndpoint, read_endpoint_keys
from agent.core.models import AnswerPiiAction, GuardAction, RetrievalMode
from agent.core.settings_aliases import AliasSource
from agent.core.settings_secret_files import SecretFileSource

PREFIX = "AGENT_"

PathList = Annotated[tuple[Path, ...], NoDecode]
NameList = Annotated[tuple[str, ...], NoDecode]
WorkMode = Literal["auto", "llm", "rules"]
_IPV6_LITERAL = re.compile(r"\s*\[[0-9a-fA-F]*:[^],]*\]")
"""An IPv6 address in brackets, as in `[::1]`."""


class Settings(BaseSettings):
    """Each field is the setting `AGENT_<FIELD>`. Lists are separated by commas or written as JSON.

    A secret can also be read from a file: `AGENT_<FIELD>_FILE` names it.
    """

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_file=".env", env_file_encoding="utf-8", extra="ignore", frozen=True
    )

    host: str = Field(default="127.0.0.1", description="address the gateway binds")
    port: int = Field(default=8080, ge=0, le=65535, description="port the gateway binds; 0 picks a free one")
    allowed_hosts: NameList = Field(
        default=(), description="further host names that /mcp answers to, e.g. stepgate.example.org; others get 421"
    )
    public_url: str | None = Field(
        default=None,
        description=(
            "address at which browsers reach the gateway, for links to cited documents; unset: this "
            "machine's, if only this machine can reach the gateway"
        ),
    )
    data_dir: Path = Field(default=Path("data"), description="folder of everything the gateway stores")
    database_url: SecretStr | None = Field(
        default=None, description="postgresql://... stores runs there; unset: SQLite in the data folder"
    )
    objects_url: str | None = Field(
        default=None,
        description=(
            "store of uploaded files, which several machines share: s3://bucket/prefix (needs the extra `scale`) or "
            "file:///folder; unset: the data folder"
        ),
    )
    objects_endpoint: str | None = Field(
        default=None, description="address of an S3-compatible store other than Amazon's, e.g. http://minio:9000"
    )
    objects_region: str | None = Field(default=None, description="region of that bucket; unset: AWS_REGION")
    objects_key_id: str | None = Field(
        default=None, description="id of its access key; unset: AWS_ACCESS_KEY_ID, or the role of the machine"
    )
    objects_secret: SecretStr | None = Field(default=None, description="secret of its access key")
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="lowest level that is logged"
    )

    llm_base_url: str | None = Field(
        default=None, description="any OpenAI-compatible endpoint, e.g. http://127.0.0.1:11434/v1"
    )
    llm_api_key: SecretStr | None = Field(default=None, description="bearer key of that endpoint")
    model_fast: str | None = Field(
        default=None,
        description=(
            "model that plans, supervises and runs skills, or a list of models that are tried in order; unset: the "
            "endpoint's first model; without a URL, a LiteLLM name"
        ),
    )
    model_high: str | None = Field(default=None, description="model for demanding answers; unset: the fast model")
    model_endpoints: dict[str, ModelEndpoint] = Field(
        default={},
        description=(
            "further endpoints, as JSON: "
            '{"backup": {"base_url": "https://models.example.org/v1", "key": "BACKUP_API_KEY"}}, where `key` names the '
            "environment variable with the bearer key; AGENT_MODEL_FAST and AGENT_MODEL_HIGH may be lists such as "
            "small,large@backup, tried in order; `cache_markers: true` sends `cache_control`"
        ),
    )
    llm_timeout_s: float = Field(default=60, gt=0, description="time limit of a model call, in seconds")
    model_prices: dict[str, tuple[NonNegativeFloat, NonNegativeFloat]] = Field(
        default={},
        description=(
            "USD per million tokens, of prompts and of replies, for endpoints that report no cost, as "
            'JSON: {"gpt-5-mini": [0.25, 2]}; * stands for any other model'
        ),
    )
    llm_max_tokens: int | None = Field(
        default=None, ge=16, description="longest reply requested from a model, in tokens; unset: the model's own limit"
    )

    embedder_url: str | None = Field(
        default=None,
        description="OpenAI-style embeddings endpoint; unset: memories and documents are found by their words",
    )
    embedder_model: str | None = Field(
        default=None,
        description="model of that endpoint; without a URL, a LiteLLM name such as openai/text-embedding-3-small",
    )
    embedder_model_dir: Path | None = Field(
        default=None,
        description="folder with an exported ONNX sentence encoder that runs in this process (extra `local-embedder`)",
    )
    embedder_api_key: SecretStr | None = Field(default=None, description="bearer key of that endpoint or provider")
    embedder_timeout_s: float = Field(default=10, gt=0, description="time limit of a call to the embedder, in seconds")
    qdrant_url: str | None = Field(default=None, description="Qdrant server that stores the vectors; unset: the store")
    qdrant_api_key: SecretStr | None = Field(default=None, description="API key of that server")
    qdrant_path: str | None = Field(
        default=None, description="folder for qdrant-client's local mode (one process only), if no server is set"
    )

    retrieval_mode: RetrievalMode = Field(
        default="hybrid_rerank",
        description=(
            "how documents are searched if neither the request nor the room says it: by words, by "
            "vectors, by both, or by both with reranking; without usable vectors, by words, and the "
            "result says so"
        ),
    )
    planner_mode: WorkMode = Field(
        default="auto",
        description=(
            "who makes plans: auto and llm use a model and fall back to rules, which the trace reports; "
            "rules (or deterministic) uses no model"
        ),
    )
    planner_answer: Literal["text", "json", "off"] = Field(
        default="text",
        description=(
            "how the planner's model answers what needs no tool, in its one call: as plain text after a line ANSWER, "
            "as a JSON object (json_schema is sent where the endpoint takes it), or off: it only plans, and a second "
            "call writes the answer"
        ),
    )
    timezone: str = Field(
        default="UTC", description="time zone of the date that the planner is told, as an IANA name: Europe/Stockholm"
    )
    executor_mode: WorkMode = Field(
        default="auto", description="who runs skills and writes answers and summaries; values as for AGENT_PLANNER_MODE"
    )
    incident_knowledge: str = Field(
        default="company", description="collection of policies, runbooks and documents that the incident tools search"
    )
    incident_issues: str = Field(
        default="issues", description="collection of earlier tickets and incidents that the incident tools search"
    )
    task_room: str = Field(default="incident", description="room that executes the tasks of /tasks")

    require_key: Literal["auto", "always", "never"] = Field(
        default="auto", description="whether callers need an API key; auto: unless only this machine can call"
    )
    token_verifier: str | None = Field(
        default=None,
        description="factory of a verifier for bearer tokens that are not API keys, as package.module:factory",
    )
    jwt_issuer: str | None = Field(default=None, description="issuer whose signed tokens are accepted as bearer tokens")
    jwt_audience: str | None = Field(default=None, description="audience that those tokens must have")
    jwt_keys_url: str | None = Field(
        default=None,
        description="where the issuer publishes its keys (JWKS); unset: /.well-known/jwks.json below the issuer",
    )
    jwt_owner_claim: str = Field(default="sub", description="claim of those tokens that names the owner")
    log_format: Literal["text", "json"] = Field(
        default="text", description="format of log lines: text for people, or one JSON object a line"
    )
    metrics: bool = Field(default=True, description="serve Prometheus metrics at /metrics")
    otel_endpoint: str | None = Field(
        default=None,
        description=("OTLP endpoint (HTTP) that receives a trace of every run; unset: none (needs the extra `otel`)"),
    )
    otel_content: bool = Field(
        default=False, description="include requests, arguments and answers in those traces, not only names and numbers"
    )

    guard_pii: GuardAction = Field(
        default="redact",
        description=(
            "personal data in a prompt, if the room's file says nothing: not searched, reported, hidden "
            "from models by placeholders (answers and tools get the original), or the prompt refused"
        ),
    )
    guard_answer_pii: AnswerPiiAction = Field(
        default="redact_answer",
        description=(
            "personal data of others in an answer, if the room's file says nothing: not searched, reported, removed "
            "from the answer, removed from the answer and the results of tools, or the answer refused"
        ),
    )
    guard_injection: GuardAction = Field(
        default="flag",
        description=(
            "prompt injection, if the room's file says nothing: not searched, reported, removed from the "
            "prompt, or the prompt refused"
        ),
    )

    translate: Literal["auto", "off"] = Field(
        default="auto",
        description=(
            "auto: requests in other languages are planned in English and answered in their language; "
            "off: the model handles languages itself"
        ),
    )

    workflow: Literal["loop", "langgraph"] = Field(
        default="loop",
        description=(
            "what drives a run through its stages: the built-in loop, or LangGraph (needs the extra `langgraph`)"
        ),
    )

    default_room: str = Field(default="stepgate", description="room of requests that name none")
    rooms_dir: Path | None = Field(
        default=None,
        description="folder of room files that add to or replace the shipped ones; unset: <data_dir>/rooms",
    )
    room_store: Literal["files", "database"] = Field(
        default="files",
        description="where the operator's rooms are kept: files in the folder above, or AGENT_DATABASE_URL, which "
        "several gateways share",
    )
    skills_dirs: PathList = Field(default=(), description="further folders of skills; the first one with a name wins")
    trust_project_skills: bool = Field(
        default=False, description="also load .agents/skills and .claude/skills of the working directory"
    )
    skills_user_dir: bool = Field(default=True, description="also load ~/.agents/skills")
    mcp_views_dir: Path | None = Field(
        default=None, description="folder of view files; each is a choice of tools served at /mcp/NAME"
    )
    mcp_servers: Path | None = Field(
        default=None,
        description=(
            "file of foreign MCP servers; unset: <data_dir>/mcp_servers.json, or config/mcp_servers.json "
            "in the working folder if that does not exist"
        ),
    )
    mcp_pin: Literal["first_use", "review", "off"] = Field(
        default="first_use",
        description=(
            "when the tools of foreign MCP servers are accepted: on first use, only after `stepgate "
            "mcp-servers review`, or off: always as they are offered"
        ),
    )
    credentials_path: Path | None = Field(
        default=None,
        description="file of named credentials of sources and webhooks, mode 600; unset: <data_dir>/credentials.json",
    )
    file_roots: PathList = Field(
        default=(), description="folders that the file tools may read; unset: <data_dir>/files"
    )
    fetcher_url: str | None = Field(default=None, description="fetcher service that web_fetch uses")
    fetch_allow_hosts: NameList = Field(
        default=(),
        description="host[:port] names that web_fetch, connectors and webhooks may reach although they are private",
    )
    fetch_timeout_s: float = Field(default=20, gt=0, description="time limit of one fetch, in seconds")
    fetch_max_bytes: int = Field(default=5_000_000, gt=0, description="largest page that is read, in bytes")
    tool_timeout_s: float = Field(default=60, gt=0, description="time limit of a tool call, in seconds")
    tool_max_retries: int = Field(
        default=1, ge=0, le=5, description="further attempts of a tool call without side effects whose connection broke"
    )
    tool_retry_backoff_s: float = Field(
        default=0.2,
        ge=0,
        le=60,
        description="wait before the first of these attempts, in seconds; doubled for each further one",
    )
    tool_output_chars: int = Field(
        default=200_000, ge=1000, description="longest tool result that is stored, in characters"
    )
    tool_content_bytes: int = Field(
        default=5_000_000,
        ge=0,
        description=(
            "most bytes of pictures, sound and files of one tool result that are kept for its caller, counted as base64"
        ),
    )

    run_python: Literal["auto", "off"] = Field(
        default="auto", description="whether plans may run Python programs: auto: where the machine can sandbox them"
    )
    run_python_timeout_s: float = Field(default=10, gt=0, le=60, description="time limit of a program, in seconds")
    run_python_memory_mb: int = Field(
        default=512, ge=64, le=65_536, description="memory (address space) of a program, in MB"
    )
    run_python_parallel: int = Field(
        default=2, ge=1, le=64, description="programs that run at the same time; further ones wait"
    )

    generated_tools: Literal["auto", "off"] = Field(
        default="auto",
        description="whether models may write tools, which people apply: auto: where the machine can sandbox them",
    )

    max_body_bytes: int = Field(default=5_000_000, gt=0, description="largest request body, in bytes")
    max_upload_bytes: int = Field(
        default=104_857_600, gt=0, description="largest file accepted by POST /v1/documents, in bytes"
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
        description=("how long a client may take to send a body, in seconds, plus one second for every 10,000 bytes"),
    )
    stall_seconds: float = Field(
        default=30,
        gt=0,
        description="how long a client may leave an answer unread before it is disconnected, in seconds",
    )
    max_open_streams: int = Field(
        default=200, gt=0, description="open event streams of one API key, or of all callers without one"
    )
    heartbeat_seconds: float = Field(
        default=15,
        gt=0,
        description="seconds of silence after which a stream sends a comment, to keep the connection open",
    )
    serve_workers: int = Field(
        default=1, gt=0, le=64, description="processes behind the port; more than 1 needs Linux and AGENT_REDIS_URL"
    )
    dispatch: Literal["local", "queue"] = Field(
        default="local",
        description="who executes runs: the process that accepts them, or any process of a fleet, through a queue in "
        "AGENT_DATABASE_URL (needs the extra `scale`; docs/scale.md)",
    )
    queue_lanes: NameList = Field(
        default=("runs", "batch", "ingest"),
        description="with AGENT_DISPATCH=queue, the lanes from which this process takes work: runs, batch, ingest",
    )
    queue_slots: int = Field(
        default=15,
        ge=0,
        le=1000,
        description="with AGENT_DISPATCH=queue, runs of each lane that this process executes at the same time; 0: "
        "none, all is left to workers",
    )
    queue_adopt_seconds: float = Field(
        default=60,
        ge=0,
        description="with AGENT_DISPATCH=queue, how long runs wait for a process with the rooms, file roots, MCP "
        "servers and skills of the one that accepted them, once none is left, before others take them, in seconds; "
        "0: for ever",
    )
    worker_port: int | None = Field(
        default=None,
        ge=0,
        le=65535,
        description="port of `stepgate worker` for /health and /metrics, at AGENT_HOST; unset: none",
    )
    max_concurrent_runs: int = Field(default=100, gt=0, description="runs that execute in parallel")
    max_queued_runs: int = Field(default=1000, ge=0, description="runs that wait before new ones get 503")
    schedules_per_owner: int = Field(default=100, ge=0, description="most schedules of one owner; 0 allows no new ones")
    webhook_timeout_s: float = Field(
        default=20, gt=0, le=300, description="time limit of one attempt to deliver a webhook, in seconds"
    )
    redis_url: SecretStr | None = Field(
        default=None,
        description=(
            "redis://... shares conversation messages and limits of keys between gateways; unset: each "
            "process has its own"
        ),
    )
    redis_prefix: str = Field(
        default="stepgate", min_length=1, description="prefix of the gateway's keys in that Redis"
    )
    conversations_require_llm: bool = Field(
        default=True, description="refuse pipeline conversations without a model; false: rules lead them"
    )
    conversation_message_seconds: float = Field(
        default=86_400, gt=0, description="how long conversation messages are stored after the last one, in seconds"
    )
    conversation_archive_days: float = Field(
        default=30, gt=0, description="days after which applied and abandoned conversations are archived"
    )
    keep_days: float = Field(
        default=0,
        ge=0,
        description=(
            "days after which ended runs, idle conversations and tasks are deleted (docs/retention.md); 0: they are "
            "kept for ever"
        ),
    )
    conversation_messages_per_minute: int = Field(
        default=30, ge=1, description="messages that one user may send to conversations in a minute"
    )
    approval_seconds: float = Field(
        default=604_800, gt=0, description="how long a run waits for a person's approval, in seconds"
    )
    drain_seconds: float = Field(
        default=15, ge=0, description="how long the gateway waits for running runs after SIGTERM, in seconds"
    )
    lease_seconds: float = Field(
        default=15, gt=0.2, description="how long a worker may be silent before another one takes its runs, in seconds"
    )
    stream_coalesce_ms: int = Field(
        default=200, ge=0, description="text deltas are stored in pieces of this many milliseconds"
    )
    web: bool = Field(default=True, description="serve the web page at / to browsers, and its files at /web/")
    open_webui: Literal["auto", "always", "never"] = Field(
        default="auto", description="who gets the rich view: callers recognised as Open WebUI, all callers, or none"
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
        files = SecretFileSource(settings_cls, PREFIX, env_settings, dotenv_settings)
        aliases = AliasSource(settings_cls, env_settings, dotenv_settings)
        return init_settings, env_settings, files, dotenv_settings, file_secret_settings, aliases

    @model_validator(mode="before")
    @classmethod
    def _drop_empty_values(cls, values: dict[str, object]) -> dict[str, object]:
        """Treats an empty value as unset, so that `AGENT_MODEL_FAST= stepgate ask ...` overrides `.env` with the
        default.
        """
        return {name: value for name, value in values.items() if not isinstance(value, str) or value.strip()}

    @field_validator("skills_dirs", "file_roots", "fetch_allow_hosts", "allowed_hosts", "queue_lanes", mode="before")
    @classmethod
    def _split_list(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        if value.lstrip().startswith("["):  # a JSON list, as other programs expect
            try:
                return json.loads(value)
            except ValueError:
                if _IPV6_LITERAL.match(value) is None:
                    raise ValueError("is not a JSON list; separate the items by commas, without brackets") from None
        return tuple(part.strip() for part in value.split(",") if part.strip())

    @field_validator("planner_mode", "executor_mode", mode="before")
    @classmethod
    def _map_deterministic(cls, value: object) -> object:
        return "rules" if isinstance(value, str) and value.strip().lower() == "deterministic" else value

    @field_validator("queue_lanes")
    @classmethod
    def _check_lanes(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        unknown = sorted(set(value) - {"runs", "batch", "ingest"})
        if unknown or not value:
            raise ValueError(f"{unknown[0] if unknown else 'nothing'!r} is no lane; they are runs, batch, ingest")
        return tuple(dict.fromkeys(value))

    @field_validator("timezone")
    @classmethod
    def _check_timezone(cls, value: str) -> str:
        try:
            zoneinfo.ZoneInfo(value)
        except (ValueError, OSError, KeyError) as error:
            raise ValueError("must be an IANA time zone, such as Europe/Stockholm") from error
        return value

    @field_validator("model_endpoints")
    @classmethod
    def _read_endpoint_keys(cls, value: dict[str, ModelEndpoint]) -> dict[str, ModelEndpoint]:
        return read_endpoint_keys(value)

    @field_validator("llm_base_url", "fetcher_url", "embedder_url", "qdrant_url", "public_url", "objects_endpoint")
    @classmethod
    def _check_http_url(cls, value: str | None) -> str | None:
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

    def list_secrets(self) -> tuple[str, ...]:
        """Returns every secret among the settings. None of them may appear in a prompt, an answer or a log."""
        values = (getattr(self, name) for name in _list_secret_fields())
        keys = (endpoint.api_key for endpoint in self.model_endpoints.values())
        return tuple(value.get_secret_value() for value in (*values, *keys) if isinstance(value, SecretStr))

    def list_secret_names(self) -> tuple[str, ...]:
        """Returns the names of the secrets that are set."""
        return tuple(name for name in _list_secret_fields() if getattr(self, name) is not None)

    def list_secret_settings(self) -> tuple[tuple[str, bool], ...]:
        """Returns the name of every setting that holds a secret, and whether it is set."""
        return tuple((f"{PREFIX}{name.upper()}", getattr(self, name) is not None) for name in _list_secret_fields())

    @property
    def is_llm_configured(self) -> bool:
        """Whether a model is configured. Without one the gateway works in rules mode."""
        return self.model_fast is not None or self.llm_base_url is not None

    @property
    def takes_ingestion(self) -> bool:
        """Whether this process ingests documents."""
        return self.dispatch == "local" or ("ingest" in self.queue_lanes and self.queue_slots > 0)

    @property
    def browser_url(self) -> str | None:
        """The URL at which a browser reaches this gateway, or None if it is unknown."""
        if self.public_url is not None:
            return self.public_url
        return f"http://{self.host}:{self.port}" if self.port and self.host in ("127.0.0.1", "localhost") else None

    @property
    def readable_roots(self) -> tuple[Path, ...]:
        """The folders that the file tools may read."""
        return self.file_roots or (self.data_dir / "files",)

    @property
    def rooms_path(self) -> Path:
        """The folder of the operator's room files. The one in the data folder is created with its first room."""
        return self.rooms_dir or self.data_dir / "rooms"

    @property
    def mcp_servers_path(self) -> Path:
        """The file that lists foreign MCP servers: the configured one, else the data folder's, else the working
        folder's. If none exists, the path in the data folder is where to create it.
        """
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
def _list_secret_fields() -> tuple[str, ...]:
    """Returns the names of the settings that hold secrets. Cached, because every answer is compared with them."""
    fields = Settings.model_fields.items()
    return tuple(name for name, field in fields if SecretStr in (field.annotation, *get_args(field.annotation)))
