"""`search_entities`, `get_entity_details`, `explain_relationship`: what there is in this gateway and how it is linked.

Callers see what they may use; the tools ask no model.
"""

from dataclasses import replace
from typing import ClassVar

from pydantic import Field

from agent.core.errors import ToolInputError
from agent.core.models import DeferredModel
from agent.core.record_item import RecordItem
from agent.tools import READ_ONLY, Tool, ToolContext
from agent.tools.stored_things import OUTSIDE_TEXT, Arguments, StoredThingTool
from agent.tools.tool import In, Out
from gateway.features.studio.engine.entity_graph import Entity, EntityGraph, EntityType, LinkKind
from gateway.features.studio.engine.graph_builder import GraphBuilder

_KEYWORDS = ("room", "rooms", "tool", "skill", "server", "collection", "prompt", "which", "uses", "studio")


class EntityItem(RecordItem):
    """An entity. `id` is `TYPE:NAME`."""

    id: str
    type: EntityType
    name: str
    title: str = ""
    description: str = ""
    origin: str = ""
    source: str = Field(default="", description="a file with the line, an address, or a table with the name in it")


class GraphOutput(DeferredModel):
    """The base class of results. `from_outside`: some texts are those of foreign servers, or were saved as such."""

    from_outside: bool = False


class GraphTool(StoredThingTool[In, Out]):
    """The base class of the tools over the graph of the caller."""

    keywords: ClassVar[tuple[str, ...]] = _KEYWORDS
    annotations = READ_ONLY

    def __init__(self, graphs: GraphBuilder) -> None:
        super().__init__()
        self._graphs = graphs


class SearchEntitiesInput(Arguments):
    """Arguments of `search_entities`."""

    query: str = Field(default="", max_length=500, description="words of a name or description; empty lists all")
    entity_type: EntityType | None = Field(default=None, description="only entities of this type")
    limit: int = Field(default=10, ge=1, le=100)


class SearchEntitiesOutput(GraphOutput):
    """The entities that match, best first."""

    entities: list[EntityItem]


class SearchEntitiesTool(GraphTool[SearchEntitiesInput, SearchEntitiesOutput]):
    name = "search_entities"
    description = "Find rooms, tools, skills, files, MCP servers, collections, documents and prompts by words."

    async def run(self, args: SearchEntitiesInput, context: ToolContext) -> SearchEntitiesOutput:
        graph = await self._graphs.get_graph(context.owner)
        entities = [_omit_saved_text(entity) for entity in graph.search(args.query, args.entity_type, args.limit)]
        return SearchEntitiesOutput(
            entities=EntityItem.from_records(entities), from_outside=any(entity.is_tainted for entity in entities)
        )

    def format_text(self, output: SearchEntitiesOutput) -> str:
        lines = [f"- {one.id}{f': {one.description}' if one.description else ''}" for one in output.entities]
        return "\n".join(lines) or "Nothing matches."


def _omit_saved_text(entity: Entity) -> Entity:
    """An entity of a list: a room and a prompt that were saved as text from outside are listed by their ids."""
    if not entity.is_tainted or entity.type not in ("room", "prompt"):
        return entity
    return replace(entity, title="", description=OUTSIDE_TEXT, is_tainted=False)


class EntityDetailsInput(Arguments):
    """Arguments of `get_entity_details`."""

    entity_id: str = Field(max_length=300, description="an id such as room:support, or a name that only one entity has")


class LinkItem(RecordItem):
    """A link; `source` and `target` are ids."""

    source: str
    kind: LinkKind
    target: str


class EntityDetailsOutput(EntityItem, GraphOutput):
    """An entity with its links, both those that go out and those that come in."""

    links: list[LinkItem]


class EntityDetailsTool(GraphTool[EntityDetailsInput, EntityDetailsOutput]):
    name = "get_entity_details"
    description = "Show a room, tool, skill, MCP server, collection, document or prompt: its source and its links."

    async def run(self, args: EntityDetailsInput, context: ToolContext) -> EntityDetailsOutput:
        graph = await self._graphs.get_graph(context.owner)
        return describe_entity(graph, require_entity(graph, args.entity_id))

    def format_text(self, output: EntityDetailsOutput) -> str:
        links = [f"- {link.source} {link.kind} {link.target}" for link in output.links]
        head = f"{output.id}{f' ({output.title})' if output.title else ''}: {output.description or 'no description'}"
        source = [f"Source: {output.source}"] if output.source else []
        return "\n".join([head, *source, *(links or ["It is linked to nothing."])])


class ExplainRelationshipInput(Arguments):
    """Arguments of `explain_relationship`."""

    entity_a: str = Field(max_length=300, description="an id such as room:support, or a name that only one entity has")
    entity_b: str = Field(max_length=300, description="the other one")


class ExplainRelationshipOutput(GraphOutput):
    """The shortest chain of links between two entities; empty if there is none. `explanation` says it in words."""

    related: bool
    path: list[LinkItem]
    explanation: str


class ExplainRelationshipTool(GraphTool[ExplainRelationshipInput, ExplainRelationshipOutput]):
    name = "explain_relationship"
    description = "Say how two rooms, tools, skills, servers, collections, documents or prompts are related, by links."

    async def run(self, args: ExplainRelationshipInput, context: ToolContext) -> ExplainRelationshipOutput:
        graph = await self._graphs.get_graph(context.owner)
        one, other = require_entity(graph, args.entity_a), require_entity(graph, args.entity_b)
        return explain_relationship(graph, one, other)

    def format_text(self, output: ExplainRelationshipOutput) -> str:
        return output.explanation


def explain_relationship(graph: EntityGraph, one: Entity, other: Entity) -> ExplainRelationshipOutput:
    """The shortest path between two entities, and what it says."""
    path = graph.find_path(one.id, other.id)
    if path is None:
        explanation = f"There is no relation between {graph.describe(one.id)} and {graph.describe(other.id)}."
    else:
        explanation = " ".join(graph.describe_path(one.id, path)) or f"Both are {graph.describe(one.id)}."
    named = {one.id, other.id, *(end for link in path or () for end in (link.source, link.target))}
    return ExplainRelationshipOutput(
        related=path is not None,
        path=LinkItem.from_records(path or ()),
        explanation=explanation,
        from_outside=any(graph.entities[name].type == "document" for name in named),  # called as their files are
    )


def describe_entity(graph: EntityGraph, entity: Entity) -> EntityDetailsOutput:
    """An entity with its links."""
    links = LinkItem.from_records(graph.list_links(entity.id))
    return EntityDetailsOutput(**dict(EntityItem.model_validate(entity)), links=links, from_outside=entity.is_tainted)


def require_entity(graph: EntityGraph, name: str) -> Entity:
    """The entity with this id or unique name. Raises `ToolInputError` with those that may be meant."""
    entity = graph.find(name)
    if entity is None:
        near = graph.suggest(name)
        hint = f"; did you mean {', '.join(near)}?" if near else "; search_entities lists what there is"
        raise ToolInputError(f"there is no entity {name[:80]!r}{hint}", stage="identifier")
    return entity


def make_graph_tools(graphs: GraphBuilder) -> tuple[Tool, ...]:
    """The tools over the graph."""
    return (SearchEntitiesTool(graphs), EntityDetailsTool(graphs), ExplainRelationshipTool(graphs))
