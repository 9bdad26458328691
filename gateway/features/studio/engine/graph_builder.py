"""Builds the graph of what an owner may see from the registries, anew when one of them has changed."""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from agent.core.models import Room
from agent.rooms import Rooms
from agent.skills import Skill, SkillLibrary
from agent.tools import ToolRegistry, ToolSpec
from agent.tools.catalogue import get_server_name, is_foreign
from gateway.features.studio.engine.entity_graph import Entity, EntityGraph, EntityType, Link, LinkKind, make_entity_id
from gateway.features.studio.engine.prompt_library import Prompt, PromptLibrary

MAX_CACHED = 32
"""Graphs that are kept, one for each owner."""
_DESCRIPTION_CHARS = 500


@dataclass(frozen=True, slots=True)
class GraphSources:
    """The registries. `list_collections` returns an owner's collections with document counts, `list_servers` the status
    of the MCP servers that an owner sees, by name.
    """

    rooms: Rooms
    registry: ToolRegistry
    skills: SkillLibrary
    prompts: PromptLibrary
    list_collections: Callable[[str], Awaitable[Mapping[str, int]]]
    list_servers: Callable[[str], Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class _State:
    """What a graph was built from. Two equal states have the same graph."""

    rooms: tuple[Room, ...]
    registry_version: int
    skills: tuple[str, ...]
    prompts: tuple[Prompt, ...]
    collections: tuple[tuple[str, int], ...]
    servers: tuple[tuple[str, str], ...]


class GraphBuilder:
    """The graphs of owners."""

    def __init__(self, sources: GraphSources) -> None:
        self._sources = sources
        self._built: dict[str, tuple[_State, EntityGraph]] = {}

    async def get_graph(self, owner: str) -> EntityGraph:
        """Returns the graph of what this owner may see, as it is now. Raises `StoreError`."""
        sources = self._sources
        state = _State(
            tuple(sources.rooms.list_visible(owner)),
            sources.registry.version,
            tuple(skill.name for skill in sources.skills),
            tuple(await sources.prompts.list_prompts(owner)),
            tuple((await sources.list_collections(owner)).items()),
            tuple(sources.list_servers(owner).items()),
        )
        built = self._built.pop(owner, None)
        if built is None or built[0] != state:
            built = (state, self._build(state, owner))
        self._built[owner] = built
        while len(self._built) > MAX_CACHED:
            del self._built[next(iter(self._built))]
        return built[1]

    def _build(self, state: _State, owner: str) -> EntityGraph:
        rooms = {room.id for room in state.rooms}
        tools = [
            spec
            for spec in self._sources.registry.list_specs()
            if spec.is_visible_to(owner) and (spec.room is None or spec.room in rooms)
        ]
        skills = list(self._sources.skills)
        return EntityGraph(_list_entities(state, tools, skills), _list_links(state, tools, skills))


def _list_entities(state: _State, tools: Sequence[ToolSpec], skills: Sequence[Skill]) -> Iterator[Entity]:
    for room in state.rooms:
        yield _make_entity("room", room.id, room.description, title=room.name)
    for spec in tools:
        yield _make_entity("tool", spec.name, spec.description, origin=spec.origin, is_tainted=is_foreign(spec))
    for skill in skills:
        yield _make_entity("skill", skill.name, skill.description, origin=skill.origin)
    for name, status in state.servers:
        yield _make_entity("server", name, status)
    for name, count in state.collections:
        yield _make_entity("collection", name, f"{count} {'document' if count == 1 else 'documents'}")
    for prompt in state.prompts:
        yield _make_entity("prompt", prompt.name, prompt.description)


def _make_entity(
    kind: EntityType, name: str, description: str, *, title: str = "", origin: str = "", is_tainted: bool = False
) -> Entity:
    text = " ".join(description.split())[:_DESCRIPTION_CHARS]
    return Entity(make_entity_id(kind, name), kind, name, title, text, origin, is_tainted)


def _list_links(state: _State, tools: Sequence[ToolSpec], skills: Sequence[Skill]) -> Iterator[Link]:
    for spec in tools:
        if is_foreign(spec):
            yield Link(make_entity_id("server", get_server_name(spec)), make_entity_id("tool", spec.name), "offers")
    for skill in skills:
        yield from _iter_links("skill", skill.name, "uses", "tool", skill.select_tools([spec.name for spec in tools]))
    servers = [name for name, _ in state.servers]
    for room in state.rooms:
        yield from _list_room_links(room, tools, skills, [name for name, _ in state.collections], servers)
        for prompt in state.prompts:
            if prompt.text.strip() == room.system_prompt.strip():
                yield from _iter_links("prompt", prompt.name, "prompts", "room", [room.id])


def _list_room_links(
    room: Room, tools: Sequence[ToolSpec], skills: Sequence[Skill], collections: Sequence[str], servers: Sequence[str]
) -> Iterator[Link]:
    """Yields the links of a room. A tool of another room's server is no tool of this one."""
    usable = [spec for spec in tools if spec.room in (None, room.id)]
    own = [spec.name for spec in usable if spec.room == room.id]
    required = {*room.required_tools, *(name for names in room.tools_by_topic.values() for name in names)}
    yield from _iter_links("room", room.id, "requires", "tool", required)
    if room.tools is None:
        yield from _iter_links("room", room.id, "may use", "tool", (one.name for one in usable if not one.is_opt_in))
    yield from _iter_links("room", room.id, "uses", "tool", [*(room.tools or ()), *own])
    if room.skills is None:
        yield from _iter_links("room", room.id, "may use", "skill", (skill.name for skill in skills))
    yield from _iter_links("room", room.id, "uses", "skill", room.skills or ())
    yield from _iter_links("room", room.id, "is handled by", "skill", [room.skill] if room.skill else ())
    yield from _iter_links("room", room.id, "has", "server", (name for name in servers if name.endswith(f"@{room.id}")))
    if room.collections is not None:
        yield from _iter_links("room", room.id, "reads", "collection", room.collections)
    elif room.knowledge or room.citations:
        yield from _iter_links("room", room.id, "may read", "collection", collections)


def _iter_links(kind: EntityType, name: str, how: LinkKind, other: EntityType, names: Iterable[str]) -> Iterator[Link]:
    source = make_entity_id(kind, name)
    return (Link(source, make_entity_id(other, target), how) for target in names)
