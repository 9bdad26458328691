"""The studio's part of the composition root: the rooms as they are served, and who may change them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from agent.core.errors import ConfigError, NotFoundError, ToolDeniedError
from agent.core.models import LOCAL_OWNER, Room
from agent.core.settings import Settings
from agent.execution.gates import GATES
from agent.ingest.collections import Library
from agent.rooms import Rooms, load_rooms, parse_room
from agent.run_context.extensions import Extensions
from agent.skills import SkillLibrary
from agent.storage.api_keys import KeyStore
from agent.storage.audit import AuditLog
from agent.storage.credentials import Credentials
from agent.storage.sql import SqlClient
from agent.studio.graph_builder import GraphBuilder, GraphSources
from agent.studio.live_rooms import LiveRooms
from agent.studio.prompt_library import PromptLibrary
from agent.studio.room_checks import RoomRegistries
from agent.studio.room_editor import Editor, RoomEditor
from agent.studio.room_files import FileRoomStore
from agent.studio.room_store import RoomStore
from agent.studio.secret_names import SecretNames
from agent.tools import ToolContext, ToolRegistry
from gateway.bootstrap_pipeline_builder import allow_room_without_model
from gateway.foreign_servers import ForeignServers
from gateway.packaged_files import PACKAGE_ROOT
from mcp_tools.builtin.entity_graph import make_graph_tools
from mcp_tools.builtin.mcp_servers import make_server_tools
from mcp_tools.builtin.prompts import make_prompt_tools
from mcp_tools.builtin.rooms import AuthorizeEditor, make_room_tools
from mcp_tools.builtin.secrets import ListSecretsTool

SHIPPED_ROOMS = PACKAGE_ROOT / "config" / "rooms"


def build_room_store(settings: Settings) -> RoomStore:
    """Returns the store of the operator's rooms. Raises `ConfigError` if it needs a database that is not set."""
    if settings.room_store == "files":
        return FileRoomStore(settings.rooms_path, settings.data_dir / "managed_rooms.json")
    if settings.database_url is None:
        raise ConfigError("AGENT_ROOM_STORE: set AGENT_DATABASE_URL to keep rooms in the database, or choose `files`")
    from agent.studio.room_database import PostgresRoomStore  # noqa: PLC0415 - its driver is not needed for files

    return PostgresRoomStore(settings.database_url.get_secret_value())


def load_configured_rooms(
    settings: Settings, store: RoomStore, report_fault: Callable[[ConfigError], None] | None
) -> Rooms:
    """Returns the rooms as they are at the start. Raises `ConfigError` for a broken room, unless faults are
    reported, and `StoreError`.
    """
    is_in_files = settings.room_store == "files"
    if settings.rooms_dir is not None and not settings.rooms_dir.is_dir():
        raise ConfigError(f"AGENT_ROOMS_DIR: {settings.rooms_dir} is not a folder")
    rooms = load_rooms(
        SHIPPED_ROOMS,
        *([settings.rooms_path] if is_in_files and settings.rooms_path.is_dir() else []),
        default=settings.default_room,
        texts={} if is_in_files else _read_texts(store),
        guard_input=_default_guards(settings)["guard_input"],
        guard_output=_default_guards(settings)["guard_output"],
        report_fault=report_fault,
    )
    rooms.replace([allow_room_without_model(room, settings) for room in rooms])
    return rooms


@dataclass(frozen=True, slots=True)
class Studio:
    """What people and programs make in a running gateway, beside rooms."""

    prompts: PromptLibrary
    graphs: GraphBuilder
    secrets: SecretNames


def add_studio(
    settings: Settings,
    editor: RoomEditor,
    registry: ToolRegistry,
    skills: SkillLibrary,
    library: Library,
    keys: KeyStore,
    statements: SqlClient,
    audit: AuditLog,
    foreign: ForeignServers | None,
) -> Studio:
    """Returns the prompt library, the graph and the names of secrets, and registers their tools."""
    rooms = editor.live.rooms
    prompts = PromptLibrary(statements, audit)

    def list_servers(owner: str) -> Mapping[str, str]:
        visible = {room.id for room in rooms.list_visible(owner)}
        servers = foreign.servers.items() if foreign is not None else ()
        return {
            name: server.status
            for name, server in servers
            if server.config.room is None or server.config.room in visible
        }

    studio = Studio(
        prompts,
        GraphBuilder(GraphSources(rooms, registry, skills, prompts, library.list_collections, list_servers)),
        SecretNames(settings.list_secret_settings(), Credentials(settings.credentials_file), lambda: rooms),
    )
    authorize = build_room_authorizer(keys)
    registry.register(
        *make_graph_tools(studio.graphs),
        *make_prompt_tools(prompts, editor, authorize),
        ListSecretsTool(studio.secrets, authorize),
        *make_server_tools(editor, registry, authorize, foreign),
    )
    return studio


def add_room_editor(
    settings: Settings,
    rooms: Rooms,
    registry: ToolRegistry,
    skills: SkillLibrary,
    extensions: Extensions,
    keys: KeyStore,
    audit: AuditLog,
    foreign: ForeignServers | None,
    store: RoomStore,
    *,
    required: Sequence[str],
) -> RoomEditor:
    """Returns the editor of `rooms`, which changes them while the gateway runs, and registers its tools.

    `foreign` are the foreign MCP servers, None if they are unknown. `required` are the rooms that settings name.
    """

    def read(text: str, room_id: str) -> Room:
        return allow_room_without_model(parse_room(text, room_id, _default_guards(settings)), settings)

    texts = {path.stem: path.read_text("utf-8") for path in sorted(SHIPPED_ROOMS.glob("*.yaml"))}
    registries = RoomRegistries(
        tools=lambda: {spec.name for spec in registry.list_specs()},
        skills=lambda: [skill.name for skill in skills],
        gates=lambda: (*GATES, *extensions.gates),
        topics=lambda: (*extensions.topics,),
        has_skill=lambda name: name in skills,
        server_prefixes=lambda: None if foreign is None else foreign.list_tool_prefixes(),
    )
    live = LiveRooms(
        rooms,
        [read(text, room_id) for room_id, text in texts.items()],
        texts,
        store,
        read,
        registries,
        required=required,
    )
    editor = RoomEditor(live, audit)
    registry.register(*make_room_tools(editor, build_room_authorizer(keys)))
    return editor


def build_room_authorizer(keys: KeyStore) -> AuthorizeEditor:
    """Returns the check of who edits rooms by tools: callers without a key on this machine, and keys with the scope
    `admin` as they are when the tool is called.
    """

    async def authorize(context: ToolContext) -> Editor:
        if context.api_key_id is None and context.owner == LOCAL_OWNER:
            return Editor(LOCAL_OWNER, f"{LOCAL_OWNER} (run {context.run_id})", may_connect=False)
        try:
            key = None if context.api_key_id is None else await keys.get(context.api_key_id)
        except NotFoundError:
            key = None
        if key is None or key.revoked_at is not None or not key.has_scope("admin"):
            raise ToolDeniedError("rooms are listed and changed only by API keys with the scope 'admin'")
        return Editor(key.owner, f"{key.owner} (key {key.id}, run {context.run_id})", may_connect=False)

    return authorize


def _read_texts(store: RoomStore) -> dict[str, str]:
    """Returns the texts of a store by id. Raises `StoreError`."""
    stored = [store.read(room_id) for room_id in sorted(store.list_stamps() or ())]
    return {room.room_id: room.data.decode("utf-8", "replace") for room in stored if room is not None}


def _default_guards(settings: Settings) -> dict[str, dict[str, str]]:
    """Returns what rooms do with findings in prompts and answers if their file does not say so."""
    return {
        "guard_input": {"injection": settings.guard_injection, "pii": settings.guard_pii},
        "guard_output": {"pii": settings.guard_answer_pii},
    }
