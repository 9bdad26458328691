"""`EntityGraph`: rooms, tools, skills with their files, MCP servers, collections with their documents, and prompts; how
they are linked. Pure.

A graph has some hundred entities, with many documents some thousand, so that a search breadth first over dictionaries
answers in milliseconds; a graph library would add its start-up time and nothing that is used.
"""

import difflib
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from agent.text.terms import extract_query_terms, extract_terms
from agent.tools.catalogue import split_name

EntityType = Literal["room", "tool", "skill", "server", "collection", "document", "file", "prompt"]
LinkKind = Literal[
    "uses", "requires", "may use", "is handled by", "has", "offers", "reads", "may read", "contains", "prompts"
]
"""What a link says of its source: a room `uses` the tools and skills it names and `may use` all if it names none;
`requires` tools; `is handled by` a skill; `has` servers of its own; `reads` collections. A server `offers` tools, a
skill `uses` them. A collection `contains` documents, a skill files. A prompt `prompts` the rooms with its text, and the
skill that it is the instructions of."""
_BACKWARD: dict[LinkKind, str] = {
    "uses": "is used by",
    "requires": "is required by",
    "may use": "may be used by",
    "is handled by": "handles",
    "has": "belongs to",
    "offers": "is offered by",
    "reads": "is read by",
    "may read": "may be read by",
    "contains": "is contained in",
    "prompts": "has the prompt",
}
_GENERAL: frozenset[LinkKind] = frozenset({"may use", "may read"})
"""Links that say little: they hold because a room names nothing."""


@dataclass(frozen=True, slots=True)
class Entity:
    """A thing of the gateway. `id` is `TYPE:NAME`. `is_tainted`: its texts come from outside. `source` is where it is
    read from: a file with the line, an address, or a table with the name in it."""

    id: str
    type: EntityType
    name: str
    title: str = ""
    description: str = ""
    origin: str = ""
    is_tainted: bool = False
    source: str = ""

    @property
    def label(self) -> str:
        """What people call it: a document by the name of its file, not by its number."""
        return self.title if self.type == "document" and self.title else self.name

    @property
    def spoken_names(self) -> frozenset[str]:
        """What people may call it, in lower case."""
        names = {self.name.casefold(), self.title.casefold()} - {""}
        return frozenset(names | {f"{self.type}:{name}" for name in names})


@dataclass(frozen=True, slots=True)
class Link:
    """`source` and `target` are ids of entities."""

    source: str
    target: str
    kind: LinkKind


def make_entity_id(kind: EntityType, name: str) -> str:
    """The id of the entity with this type and name."""
    return f"{kind}:{name}"


class EntityGraph:
    """The entities by id and their links. Links to what is not there are left out."""

    def __init__(self, entities: Iterable[Entity], links: Iterable[Link]) -> None:
        self.entities = {entity.id: entity for entity in entities}
        self.links = tuple(dict.fromkeys(link for link in links if {link.source, link.target} <= self.entities.keys()))
        self._around: dict[str, list[Link]] = {entity_id: [] for entity_id in self.entities}
        for link in self.links:
            self._around[link.source].append(link)
            self._around[link.target].append(link)

    def search(self, query: str, entity_type: EntityType | None = None, limit: int = 10) -> list[Entity]:
        """The entities that match the query, best first; all of the type, in order of id, for an empty one."""
        candidates = [entity for entity in self.entities.values() if entity_type in (None, entity.type)]
        if not query.strip():
            return sorted(candidates, key=lambda entity: entity.id)[:limit]
        wanted, query_terms = query.strip().casefold(), frozenset(extract_query_terms(split_name(query)))
        scored = [(_score(entity, wanted, query_terms), entity) for entity in candidates]
        pairs = sorted((pair for pair in scored if pair[0] > 0), key=lambda pair: (-pair[0], pair[1].id))
        return [entity for _, entity in pairs][:limit]

    def find(self, name: str) -> Entity | None:
        """The entity with this id, or the only one with this name or title; None for none or several."""
        if name in self.entities:
            return self.entities[name]
        matching = self._list_called(name)
        return matching[0] if len(matching) == 1 else None

    def suggest(self, name: str) -> list[str]:
        """The ids that `name` may mean: those with this name, else the nearest ones."""
        folded = name.strip().casefold()
        same = [one.id for one in self._list_called(name)]
        by_name = {entity.name.casefold(): entity.id for entity in self.entities.values()}
        plain = folded.partition(":")[2] or folded
        return same or [by_name[near] for near in difflib.get_close_matches(plain, by_name, n=3)]

    def _list_called(self, name: str) -> list[Entity]:
        """The entities with this name or title, in any case, with their type before it or without."""
        wanted = name.strip().casefold()
        return [one for one in self.entities.values() if wanted in one.spoken_names]

    def list_links(self, entity_id: str) -> list[Link]:
        """The links from and to an entity."""
        return list(self._around[entity_id])

    def find_path(self, start: str, end: str) -> list[Link] | None:
        """The shortest chain of links between two entities, in either direction; None if there is none.

        Prefers chains without links that hold only because a room names nothing.
        """
        telling = self._find_shortest(start, end, with_general=False)
        return telling if telling is not None else self._find_shortest(start, end, with_general=True)

    def _find_shortest(self, start: str, end: str, *, with_general: bool) -> list[Link] | None:
        came: dict[str, Link | None] = {start: None}
        waiting = deque([start])
        while waiting and end not in came:
            here = waiting.popleft()
            for link in self._around[here]:
                there = _get_other_end(link, here)
                if there not in came and (with_general or link.kind not in _GENERAL):
                    came[there] = link
                    waiting.append(there)
        if end not in came:
            return None
        path, here = list[Link](), end
        while (step := came[here]) is not None:
            path.append(step)
            here = _get_other_end(step, here)
        return path[::-1]

    def describe_path(self, start: str, path: Sequence[Link]) -> list[str]:
        """A sentence for each link of a path that begins at `start`."""
        lines, here = [], start
        for link in path:
            there = _get_other_end(link, here)
            verb = link.kind if link.source == here else _BACKWARD[link.kind]
            lines.append(f"T{self.describe(here)[1:]} {verb} {self.describe(there)}.")
            here = there
        return lines

    def describe(self, entity_id: str) -> str:
        """An entity in words: `the tool calculator`."""
        entity = self.entities[entity_id]
        return f"the {'MCP server' if entity.type == 'server' else entity.type} {entity.label}"


def _get_other_end(link: Link, here: str) -> str:
    return link.target if link.source == here else link.source


def _score(entity: Entity, wanted: str, asked: frozenset[str]) -> float:
    """Scores how well an entity matches, from 0: its whole name counts most, then parts of it, then its words."""
    names = {entity.id.casefold(), entity.name.casefold(), entity.title.casefold()} - {""}
    score = 10.0 if wanted in names else 5.0 if any(wanted in name for name in names) else 0.0
    named = frozenset(extract_terms(split_name(f"{entity.name} {entity.title}")))
    score += 2.0 * len(asked & named) + len(asked & (frozenset(extract_terms(entity.description)) - named))
    if not score and difflib.get_close_matches(wanted, names, n=1, cutoff=0.8):
        score = 0.5
    return score
