"""The studio's part of the composition root: what people and programs make in a running gateway, and who may."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from agent.core.errors import AuthError, ToolDeniedError
from agent.core.events import RunCreated
from agent.core.models import LOCAL_OWNER, JsonObject, Room
from agent.execution.gates import GATES
from agent.runs.rooms import parse_room
from agent.storage.api_keys import KeyStore
from agent.storage.credentials import Credentials
from agent.storage.journal import Journal
from agent.tools import Tool, ToolContext, ToolRegistry
from gateway.bootstrap_rooms import allow_room_without_model, get_default_guards, list_required_rooms, list_room_files
from gateway.feature_host import FeatureHost
from gateway.features.documents.parts import get_documents
from gateway.features.studio.bootstrap_generated_tools import build_generated_tools, build_maker_authorizer
from gateway.features.studio.engine.generated_tools.service import GeneratedTools
from gateway.features.studio.engine.graph_builder import GraphBuilder, GraphSources
from gateway.features.studio.engine.live_rooms import LiveRooms
from gateway.features.studio.engine.prompt_library import PromptLibrary
from gateway.features.studio.engine.room_checks import RoomRegistries
from gateway.features.studio.engine.room_editor import RoomEditor
from gateway.features.studio.engine.room_files import FileRoomStore
from gateway.features.studio.engine.room_store import RoomStore
from gateway.features.studio.engine.room_view import Editor, Right
from gateway.features.studio.engine.secret_names import SecretNames
from gateway.features.studio.parts import get_studio
from gateway.features.studio.room_stores import build_room_store
from gateway.features.studio.tools import (
    AuthorizeEditor,
    ListSecretsTool,
    RoomProgramsTool,
    make_generated_tool_tools,
    make_graph_tools,
    make_prompt_tools,
    make_room_tools,
    make_server_tools,
)


@dataclass(frozen=True, slots=True)
class Studio:
    """The stores and services of the studio."""

    room_editor: RoomEditor
    generated_tools: GeneratedTools
    prompts: PromptLibrary
    graphs: GraphBuilder
    secrets: SecretNames


def build_studio(host: FeatureHost) -> Studio:
    """The studio. Raises `ConfigError` if the store of rooms cannot be used."""
    context, settings, rooms, foreign = host.context, host.settings, host.rooms.rooms, host.tools.foreign
    store = build_room_store(settings)
    context.stack.callback(store.close)
    editor = _build_room_editor(host, store)
    prompts = PromptLibrary(context.statements, context.audit, context.store.clock)

    def list_servers(owner: str) -> Mapping[str, str]:
        visible = {room.id for room in rooms.list_visible(owner)}
        servers = foreign.servers.items() if foreign is not None else ()
        return {
            name: server.status
            for name, server in servers
            if server.config.room is None or server.config.room in visible
        }

    library = get_documents(host).library
    graphs = GraphBuilder(
        GraphSources(
            rooms,
            host.registry,
            host.rooms.skills,
            prompts,
            library.list_collections,
            library.stamp_documents,
            library.list_newest_documents,
            list_servers,
            settings.mcp_servers_path.name,
            partial(_find_room_source, store),
        )
    )
    secrets = SecretNames(settings.list_secret_settings(), Credentials(settings.credentials_file), lambda: rooms)
    return Studio(editor, build_generated_tools(host), prompts, graphs, secrets)


def list_tools(host: FeatureHost) -> list[Tool]:
    """The tools over rooms, generated tools, prompts, servers and the graph."""
    context, studio = host.context, get_studio(host)
    authorize = build_room_authorizer(context.keys, allow_programs=host.settings.allow_programs)
    editor = studio.room_editor
    return [
        *make_room_tools(editor, authorize),
        *make_generated_tool_tools(studio.generated_tools, build_maker_authorizer(context.keys, authorize)),
        *make_graph_tools(studio.graphs),
        *make_prompt_tools(studio.prompts, editor, authorize),
        ListSecretsTool(studio.secrets, authorize),
        *make_server_tools(editor, host.registry, authorize, host.tools.foreign),
        RoomProgramsTool(editor, authorize, partial(_read_withheld, context.store.journal)),
    ]


def _build_room_editor(host: FeatureHost, store: RoomStore) -> RoomEditor:
    """The editor of the rooms, which changes them while the gateway runs."""
    settings, registry, skills = host.settings, host.registry, host.rooms.skills
    context, foreign = host.context, host.tools.foreign

    def read(text: str, room_id: str) -> Room:
        return allow_room_without_model(parse_room(text, room_id, get_default_guards(settings)), settings)

    missing = context.features.list_missing_rooms()
    shipped = (path for path in list_room_files(context.features) if path.stem not in missing)
    texts = {path.stem: path.read_text("utf-8") for path in shipped}
    registries = RoomRegistries(
        tools=lambda owner: set(registry.list_visible_names(None if owner == LOCAL_OWNER else owner)),
        skills=lambda: [skill.name for skill in skills],
        gates=lambda: (*GATES, *host.context.extensions.gates),
        topics=lambda: (*host.context.extensions.topics,),
        has_skill=lambda name: name in skills,
        server_prefixes=lambda owner: None if foreign is None else foreign.list_tool_prefixes(owner),
        open_tools=lambda room: _list_open_tools(registry, room),
    )
    live = LiveRooms(
        host.rooms.rooms,
        [read(text, room_id) for room_id, text in texts.items()],
        texts,
        store,
        read,
        registries,
        required=list_required_rooms(settings, context.features),
        after_change=None if foreign is None else foreign.refresh_after_change,
    )
    return RoomEditor(live, context.audit, Credentials(settings.credentials_file).find_place)


def _list_open_tools(registry: ToolRegistry, room: Room) -> list[str]:
    """The tools of a room that lists none. Those of its own servers are in no list: it always has them."""
    allowed = registry.list_allowed(room.model_copy(update={"tools": None}), room.owner, None, ())
    return [name for name in allowed if registry.get(name).spec.room != room.id]


def _find_room_source(store: RoomStore, room_id: str) -> str:
    """Says where a room is stored: the operator's folder or table if it is there, else among the shipped ones."""
    if room_id in (store.list_stamps() or {}):
        return f"rooms/{room_id}.yaml" if isinstance(store, FileRoomStore) else f"table room_versions, room {room_id}"
    return f"config/rooms/{room_id}.yaml"


async def _read_withheld(journal: Journal, run_id: str) -> JsonObject:
    """The values that the log of a run withholds from its readers. Raises `StoreError`."""
    events = await journal.read_events(run_id, limit=1)
    return next((event.body.withheld for event in events if isinstance(event.body, RunCreated)), {})


def build_room_authorizer(keys: KeyStore, *, allow_programs: bool) -> AuthorizeEditor:
    """The check of who edits rooms by tools: callers without a key on this machine, and keys with the scope
    `rooms` as they are when the tool is called. `allow_programs`: the former may add programs after a question.
    """
    without_key: Right = "ask" if allow_programs else "refused"

    async def authorize(context: ToolContext) -> Editor:
        if context.api_key_id is None and context.owner == LOCAL_OWNER:
            name = f"{LOCAL_OWNER} (run {context.run_id})"
            return Editor(LOCAL_OWNER, name, False, without_key, context.tainted, pairings="ask")
        try:
            key = None if context.api_key_id is None else await keys.get_valid(context.api_key_id)
        except AuthError:
            key = None
        if key is None or not key.has_scope("rooms"):
            raise ToolDeniedError("rooms are listed and changed only by API keys with the scope 'rooms'")
        right: Right = "ask" if key.has_scope("admin") else "refused"
        name = f"{key.owner} (key {key.id}, run {context.run_id})"
        return Editor(key.owner, name, False, right, context.tainted, right)

    return authorize
