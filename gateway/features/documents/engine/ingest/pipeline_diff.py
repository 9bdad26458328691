"""The difference of two pipelines: shown to people, and applied when they agree."""

from collections.abc import Iterator

from pydantic import Field, JsonValue

from agent.core.errors import ConflictError
from agent.core.models import FrozenModel
from gateway.features.documents.engine.ingest.pipeline import PipelineDAG, PipelineEdge, PipelineNode

_OPTION = "options."


class NodeChange(FrozenModel):
    """One field of one node. None means that the option is not set."""

    node: str
    field: str = Field(description="`kind`, `plugin`, `file_types`, or `options.<name>`")
    before: JsonValue = None
    after: JsonValue = None


class PipelineDiff(FrozenModel):
    """The difference of two pipelines; empty for equal ones."""

    added: tuple[PipelineNode, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[NodeChange, ...] = ()
    added_edges: tuple[PipelineEdge, ...] = ()
    removed_edges: tuple[PipelineEdge, ...] = ()


def diff_pipelines(before: PipelineDAG, after: PipelineDAG) -> PipelineDiff:
    """The changes that turn `before` into `after`, ignoring node order and template name."""
    old = {node.id: node for node in before.nodes}
    new = {node.id: node for node in after.nodes}
    return PipelineDiff(
        added=tuple(node for node in after.nodes if node.id not in old),
        removed=tuple(name for name in old if name not in new),
        changed=tuple(
            change
            for name, node in old.items()
            if name in new
            for change in _iter_changes(name, _flatten_node(node), new[name])
        ),
        added_edges=tuple(edge for edge in after.edges if edge not in before.edges),
        removed_edges=tuple(edge for edge in before.edges if edge not in after.edges),
    )


def apply_diff(pipeline: PipelineDAG, diff: PipelineDiff) -> PipelineDAG:
    """Applies the difference. Raises `ConflictError` if the pipeline is not the one the difference was made from.

    The result is not checked; use `check_pipeline`.
    """
    known_node_ids = {node.id for node in pipeline.nodes}
    for name in {*diff.removed, *(change.node for change in diff.changed)} - known_node_ids:
        raise ConflictError(
            f"the pipeline has no node {name!r} to change; make the difference again", agent_id="pipeline"
        )
    nodes = [_change_node(node, diff) for node in pipeline.nodes if node.id not in diff.removed]
    edges = [edge for edge in pipeline.edges if edge not in diff.removed_edges]
    return PipelineDAG(nodes=(*nodes, *diff.added), edges=(*edges, *diff.added_edges), template=pipeline.template)


def _flatten_node(node: PipelineNode) -> dict[str, JsonValue]:
    """A node as one flat table."""
    options = {f"{_OPTION}{name}": value for name, value in node.options.items()}
    return {"kind": node.kind, "plugin": node.plugin, "file_types": list(node.file_types), **options}


def _iter_changes(name: str, before: dict[str, JsonValue], node: PipelineNode) -> Iterator[NodeChange]:
    after = _flatten_node(node)
    for field in [*before, *(field for field in after if field not in before)]:
        if before.get(field) != after.get(field):
            yield NodeChange(node=name, field=field, before=before.get(field), after=after.get(field))


def _change_node(node: PipelineNode, diff: PipelineDiff) -> PipelineNode:
    fields = _flatten_node(node)
    for change in diff.changed:
        if change.node != node.id:
            continue
        if fields.get(change.field) != change.before:
            raise ConflictError(
                f"{node.id}.{change.field} is no longer {change.before!r}; make the difference again",
                agent_id="pipeline",
            )
        fields[change.field] = change.after
    options = {
        field.removeprefix(_OPTION): value
        for field, value in fields.items()
        if field.startswith(_OPTION) and value is not None
    }
    plain = {field: value for field, value in fields.items() if not field.startswith(_OPTION)}
    return PipelineNode.model_validate({"id": node.id, **plain, "options": options})
