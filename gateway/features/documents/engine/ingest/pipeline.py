"""`PipelineDAG`: how documents are read, as data: source -> parser by type -> chunker -> embedder -> index.

It is stored with its collection. `pipeline_check.py` decides whether a pipeline is valid.
"""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, get_args

from pydantic import Field

from agent.core.models import FrozenModel, JsonObject
from gateway.features.documents.engine.search.models import FileType

NodeKind = Literal["source", "parser", "chunker", "embedder", "index"]
STAGES: tuple[NodeKind, ...] = get_args(NodeKind)
"""In the order that a document passes them."""


class PipelineNode(FrozenModel):
    """A stage, its plugin and the plugin's options."""

    id: str = Field(pattern=r"^[a-z][a-z0-9_-]{0,39}$", description="name of the node within its pipeline")
    kind: NodeKind
    plugin: str = Field(min_length=1, max_length=100, description="name of a plugin of this kind")
    options: JsonObject = Field(default_factory=dict, description="options of the plugin; its schema says which")
    file_types: tuple[FileType, ...] = Field(
        default=(), description="which files a parser is given; empty: those that no other parser names"
    )


class PipelineEdge(FrozenModel):
    """Leads from one node to the next."""

    from_node: str
    to_node: str


@dataclass(frozen=True, slots=True)
class Route:
    """The nodes that a file of one type passes."""

    parser: PipelineNode
    chunker: PipelineNode
    embedder: PipelineNode
    index: PipelineNode

    @property
    def nodes(self) -> tuple[PipelineNode, ...]:
        """The nodes in order."""
        return (self.parser, self.chunker, self.embedder, self.index)

    @property
    def wants_vectors(self) -> bool:
        """Whether passages get vectors if there is an embedder."""
        return self.embedder.plugin != "none" and self.index.plugin != "lexical"


class PipelineDAG(FrozenModel):
    """A pipeline. The limits keep a hostile one from costing anything."""

    nodes: tuple[PipelineNode, ...] = Field(max_length=100)
    edges: tuple[PipelineEdge, ...] = Field(max_length=500)
    template: str = Field(default="", max_length=100, description="name of the template it was made from, if any")

    def list_nodes(self, kind: NodeKind) -> list[PipelineNode]:
        """The nodes of a kind, in order."""
        return [node for node in self.nodes if node.kind == kind]

    def get_node(self, node_id: str) -> PipelineNode:
        """The node with this id. Raises KeyError."""
        for node in self.nodes:
            if node.id == node_id:
                return node
        raise KeyError(node_id)

    def list_successors(self, node_id: str) -> list[PipelineNode]:
        """The nodes that follow a node."""
        following = {edge.to_node for edge in self.edges if edge.from_node == node_id}
        return [node for node in self.nodes if node.id in following]

    def with_node(self, node: PipelineNode) -> "PipelineDAG":
        """The same pipeline with the node of this id replaced. The result is not checked."""
        return self.model_copy(update={"nodes": tuple(node if one.id == node.id else one for one in self.nodes)})

    def with_options(self, node_id: str, **options: object) -> "PipelineDAG":
        """The pipeline with some options of a node changed."""
        changed = {**self.get_node(node_id).options, **options}
        nodes = [node.model_copy(update={"options": changed}) if node.id == node_id else node for node in self.nodes]
        return PipelineDAG.model_validate({**self.model_dump(), "nodes": [node.model_dump() for node in nodes]})


def build_chain(nodes: Iterable[PipelineNode], *, template: str = "") -> PipelineDAG:
    """Builds a pipeline of these nodes, each stage joined with the next; several parsers lead to one chunker."""
    listed = tuple(nodes)
    stages = [[node for node in listed if node.kind == kind] for kind in STAGES]
    edges = [
        PipelineEdge(from_node=one.id, to_node=other.id)
        for before, after in pairwise(stages)
        for one in before
        for other in after
    ]
    return PipelineDAG(nodes=listed, edges=tuple(edges), template=template)


def compute_fingerprint(*parts: object) -> str:
    """A short hash of what decides how a document is split and indexed."""
    text = json.dumps(parts, sort_keys=True, ensure_ascii=True)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
