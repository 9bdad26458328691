"""Builds the graph of what an owner may see from the registries, and again when one of them has changed."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from agent.core.errors import NotFoundError
from agent.core.models import Room
from agent.runs.rooms import Rooms
from agent.skills import Skill, SkillLibrary
from agent.tools import Tool, ToolRegistry, ToolSpec
from agent.tools.catalogue import get_server_name, is_foreign
from gateway.features.documents.engine.ingest.library import FoundDocument
from gateway.features.studio.engine.entity_graph import Entity, EntityGraph, EntityType, Link, LinkKind, make_entity_id
from gateway.features.studio.engine.entity_sources import find_skill_source, find_tool_source
from gateway.features.studio.engine.prompt import Prompt
from gateway.features.studio.engine.prompt_library import PromptLibrary

MAX_CACHED = 32
"""Graphs that are kept, one for each owner."""
MAX_DOCUMENTS = 1000
"""Documents of an owner in the graph, those that were read last: it is kept in memory and sent whole."""
_DESCRIPTION_CHARS = 500


@dataclass(frozen=True, slots=True)
class GraphSources:
    """The registries. `list_collections` returns an owner's collections with document counts, `stamp_documents` what
    differs once an owner's documents have changed, `list_newest` at most so many of them, `list_servers` the status of
    the MCP servers that an owner sees, by name. `find_room_source` says where a room is stored.
    """

    rooms: Rooms
    registry: ToolRegistry
    skills: SkillLibrary
    prompts: PromptLibrary
    list_collections: Callable[[str], Awaitable[Mapping[str, int]]]
    stamp_documents: Callable[[str], Awaitable[tuple[int, float]]]
    list_newest: Callable[[str, int], Awaitable[Sequence[FoundDocument]]]
    list_servers: Callable[[str], Mapping[str, str]]
    servers_source: str
    find_room_source: Callable[[str], str]


@dataclass(frozen=True, slots=True)
class _State:
    """The state that a graph was built from. Two equal states have the same graph."""

    rooms: tuple[Room, ...]
    registry_version: int
    skills: tuple[str, ...]
    prompts: tuple[Prompt, ...]
    collections: tuple[tuple[str, int], ...]
    documents: tuple[int, float]
    servers: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class _Contents:
    """The parts that are read only when a graph is built. `files` are the files of each skill, `prompt_texts` the texts
    that each prompt has had: a room keeps the version that it was given.
    """

    tools: Sequence[Tool]
    skills: Sequence[Skill]
    files: Mapping[str, Sequence[str]]
    prompt_texts: Mapping[str, frozenset[str]]
    documents: Sequence[FoundDocument]
    room_sources: Mapping[str, str]
    servers_source: str

    @property
    def specs(self) -> list[ToolSpec]:
        """The tools as planners see them."""
        return [tool.spec for tool in self.tools]


class GraphBuilder:
    """The graphs of owners."""

    def __init__(self, sources: GraphSources) -> None:
        self._sources = sources
        self._built: dict[str, tuple[_State, EntityGraph]] = {}

    async def get_graph(self, owner: str) -> EntityGraph:
        """The graph of what this owner may see, as it is now. Raises `StoreError`."""
        sources = self._sources
        state = _State(
            tuple(sources.rooms.list_visible(owner)),
            sources.registry.version,
            tuple(skill.name for skill in sources.skills),
            tuple(await sources.prompts.list_prompts(owner)),
            tuple((await sources.list_collections(owner)).items()),
            await sources.stamp_documents(owner),
            tuple(sources.list_servers(owner).items()),
        )
        built = self._built.pop(owner, None)
        if built is None or built[0] != state:
            contents = await self._read_contents(state, owner)
            built = (state, EntityGraph(_list_entities(state, contents), _list_links(state, contents)))
        self._built[owner] = built
        while len(self._built) > MAX_CACHED:
            del self._built[next(iter(self._built))]
        return built[1]

    async def _read_contents(self, state: _State, owner: str) -> _Contents:
        sources = self._sources
        rooms = {room.id for room in state.rooms}
        skills = list(sources.skills)

        def read_folders() -> tuple[dict[str, list[str]], dict[str, str]]:
            return {one.name: one.list_files() for one in skills}, {one: sources.find_room_source(one) for one in rooms}

        files, room_sources = await asyncio.to_thread(read_folders)
        tools = [
            tool
            for tool in sources.registry
            if tool.spec.is_visible_to(owner) and (tool.spec.room is None or tool.spec.room in rooms)
        ]
        documents = await sources.list_newest(owner, MAX_DOCUMENTS)
        texts = {one.name: await self._list_texts(one, owner) for one in state.prompts}
        return _Contents(tools, skills, files, texts, documents, room_sources, sources.servers_source)

    async def _list_texts(self, prompt: Prompt, owner: str) -> frozenset[str]:
        versions: Sequence[Prompt] = (prompt,)
        if prompt.version > 1:
            with suppress(NotFoundError):  # it was removed in between
                versions = await self._sources.prompts.list_versions(owner, prompt.name)
        return frozenset(one.text.strip() for one in versions)


def _list_entities(state: _State, contents: _Contents) -> Iterator[Entity]:
    for room in state.rooms:
        place = contents.room_sources[room.id]
        text, outside = room.description, room.from_outside
        yield _make_entity("room", room.id, text, title=room.name, is_tainted=outside, source=place)
    for tool in contents.tools:
        spec, place = tool.spec, find_tool_source(tool)
        foreign = is_foreign(spec)
        yield _make_entity("tool", spec.name, spec.description, origin=spec.origin, is_tainted=foreign, source=place)
    for skill in contents.skills:
        yield from _list_skill_entities(skill, contents.files[skill.name])
    for name, status in state.servers:
        room_id = name.rpartition("@")[2] if "@" in name else ""
        place = contents.room_sources.get(room_id, contents.servers_source)
        yield _make_entity("server", name, status, source=place)
    for name, count in state.collections:
        text = f"{count} {'document' if count == 1 else 'documents'}"
        yield _make_entity("collection", name, text, source=f"table collections, name {name}")
    for document in contents.documents:
        yield _make_document_entity(document)
    for prompt in state.prompts:
        place = f"table prompts, name {prompt.name}, version {prompt.version}"
        outside = prompt.from_outside
        yield _make_entity("prompt", prompt.name, prompt.description, is_tainted=outside, source=place)


def _list_skill_entities(skill: Skill, files: Sequence[str]) -> Iterator[Entity]:
    """Yields a skill, its instructions as a prompt, and its other files."""
    place = find_skill_source(skill)
    yield _make_entity("skill", skill.name, skill.description, origin=skill.origin, source=place)
    instructions = f"the instructions of the skill {skill.name}"
    yield _make_entity("prompt", _name_instructions(skill), instructions, origin=skill.origin, source=place)
    folder = place.rpartition("/")[0]
    for path in files:
        yield _make_entity("file", f"{skill.name}/{path}", "", origin=skill.origin, source=f"{folder}/{path}")


def _make_document_entity(found: FoundDocument) -> Entity:
    """Makes the entity of a document. Its name and title are those of its file: text from outside."""
    document = found.document
    pages = f"{document.pages} {'page' if document.pages == 1 else 'pages'}" if document.pages else ""
    text = ", ".join(part for part in (document.title, document.file_type, pages) if part)
    return _make_entity(
        "document", document.document_id, text, title=document.name, is_tainted=True,
        origin=document.source_type, source=document.url or document.source,
    )  # fmt: skip


def _name_instructions(skill: Skill) -> str:
    return f"{skill.name}/{skill.path.name}"


def _make_entity(
    kind: EntityType,
    name: str,
    description: str,
    *,
    title: str = "",
    origin: str = "",
    is_tainted: bool = False,
    source: str = "",
) -> Entity:
    text = " ".join(description.split())[:_DESCRIPTION_CHARS]
    return Entity(make_entity_id(kind, name), kind, name, title, text, origin, is_tainted, source)


def _list_links(state: _State, contents: _Contents) -> Iterator[Link]:
    tools, skills = contents.specs, contents.skills
    for document in contents.documents:
        yield from _iter_links(
            "collection", document.collection, "contains", "document", [document.document.document_id]
        )
    for spec in tools:
        if is_foreign(spec):
            yield Link(make_entity_id("server", get_server_name(spec)), make_entity_id("tool", spec.name), "offers")
    for skill in skills:
        yield from _iter_links("skill", skill.name, "uses", "tool", skill.select_tools([spec.name for spec in tools]))
        names = [f"{skill.name}/{path}" for path in contents.files[skill.name]]
        yield from _iter_links("skill", skill.name, "contains", "file", names)
        yield from _iter_links("prompt", _name_instructions(skill), "prompts", "skill", [skill.name])
    servers = [name for name, _ in state.servers]
    for room in state.rooms:
        yield from _list_room_links(room, tools, skills, [name for name, _ in state.collections], servers)
        for prompt in state.prompts:
            if room.system_prompt.strip() in contents.prompt_texts[prompt.name]:
                yield from _iter_links("prompt", prompt.name, "prompts", "room", [room.id])


def _list_room_links(
    room: Room, tools: Sequence[ToolSpec], skills: Sequence[Skill], collections: Sequence[str], servers: Sequence[str]
) -> Iterator[Link]:
    """Yields the links of a room. A tool of another room's server is not a tool of this one."""
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
