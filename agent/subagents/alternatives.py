"""A pipeline with one type of files read another way; the ways of all others stay as they are."""

from agent.core.models import JsonObject
from agent.knowledge.models import FileType
from agent.knowledge.pipeline import PipelineDAG, PipelineEdge, PipelineNode
from agent.knowledge.pipeline_check import checked, given_types, left_out, route, source_types


def read_otherwise(
    pipeline: PipelineDAG, file_type: FileType, *, parser: str = "", options: JsonObject | None = None
) -> PipelineDAG:
    """The pipeline whose files of this type are read by `parser`, or by the one it has, with these options over those
    it has. A type the pipeline leaves out is taken. Raises `PipelineInvalidError` for what cannot be carried out."""
    if file_type not in source_types(pipeline):
        (source,) = pipeline.of_kind("source")
        others = [one for one in left_out(pipeline) if one != file_type]
        kept_out = {"left_out": others} if left_out(pipeline) else {}
        types = [*source_types(pipeline), *others, file_type]
        pipeline = pipeline.with_options(source.id, file_types=types, **kept_out)
        if not parser and not options:
            return checked(pipeline)
    owner = next((node for node in pipeline.of_kind("parser") if file_type in given_types(pipeline, node)), None)
    base = owner or pipeline.of_kind("parser")[0]
    merged = {**(base.options if parser in ("", base.plugin) else {}), **(options or {})}
    plugin = parser or base.plugin
    if owner is not None and given_types(pipeline, owner) == (file_type,):
        changed = owner.model_copy(update={"plugin": plugin, "options": merged})
        return checked(_replaced(pipeline, changed))
    own = PipelineNode(
        id=_free(pipeline, f"{file_type}-parser"), kind="parser", plugin=plugin, options=merged, file_types=(file_type,)
    )
    if owner is not None and owner.file_types:
        left = tuple(one for one in owner.file_types if one != file_type)
        pipeline = _replaced(pipeline, owner.model_copy(update={"file_types": left}))
    (source,) = pipeline.of_kind("source")
    (chunker,) = pipeline.after(base.id)
    edges = (PipelineEdge(from_node=source.id, to_node=own.id), PipelineEdge(from_node=own.id, to_node=chunker.id))
    return checked(
        PipelineDAG(nodes=(*pipeline.nodes, own), edges=(*pipeline.edges, *edges), template=pipeline.template)
    )


def cut_otherwise(
    pipeline: PipelineDAG, file_type: FileType, *, chunker: str = "", options: JsonObject | None = None
) -> PipelineDAG:
    """The pipeline with another chunker, or other options of it, where files of this type go through. Raises
    `PipelineInvalidError`."""
    way = route(pipeline, file_type)
    if way is None:
        return checked(pipeline)
    kept = way.chunker.options if chunker in ("", way.chunker.plugin) else {}
    update = {"plugin": chunker or way.chunker.plugin, "options": {**kept, **(options or {})}}
    return checked(_replaced(pipeline, way.chunker.model_copy(update=update)))


def _replaced(pipeline: PipelineDAG, node: PipelineNode) -> PipelineDAG:
    nodes = tuple(node if one.id == node.id else one for one in pipeline.nodes)
    return pipeline.model_copy(update={"nodes": nodes})


def _free(pipeline: PipelineDAG, name: str) -> str:
    taken = {node.id for node in pipeline.nodes}
    return next(one for one in (name, *(f"{name}-{number}" for number in range(2, 102))) if one not in taken)
