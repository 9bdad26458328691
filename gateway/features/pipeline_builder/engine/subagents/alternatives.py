"""Changes how a pipeline reads one file type, without changing other types."""

from agent.core.models import JsonObject
from gateway.features.documents.engine.ingest.pipeline import PipelineDAG, PipelineEdge, PipelineNode
from gateway.features.documents.engine.ingest.pipeline_check import (
    check_pipeline,
    find_route,
    get_source_options,
    list_included_types,
    list_parser_types,
)
from gateway.features.documents.engine.search.models import FileType


def with_parser_for_type(
    pipeline: PipelineDAG, file_type: FileType, *, parser: str = "", options: JsonObject | None = None
) -> PipelineDAG:
    """The pipeline that reads this type with another parser, or with these options added to the current ones.

    Includes a type that was excluded. Raises `PipelineInvalidError` if the result is invalid.
    """
    if file_type not in list_included_types(pipeline):
        (source,) = pipeline.list_nodes("source")
        excluded = get_source_options(pipeline).left_out
        others = [one for one in excluded if one != file_type]
        kept_out = {"left_out": others} if excluded else {}
        types = [*list_included_types(pipeline), *others, file_type]
        pipeline = pipeline.with_options(source.id, file_types=types, **kept_out)
        if not parser and not options:
            return check_pipeline(pipeline)
    owner = next(
        (node for node in pipeline.list_nodes("parser") if file_type in list_parser_types(pipeline, node)), None
    )
    base = owner or pipeline.list_nodes("parser")[0]
    merged = {**(base.options if parser in ("", base.plugin) else {}), **(options or {})}
    plugin = parser or base.plugin
    if owner is not None and list_parser_types(pipeline, owner) == (file_type,):
        changed = owner.model_copy(update={"plugin": plugin, "options": merged})
        return check_pipeline(pipeline.with_node(changed))
    own = PipelineNode(
        id=_free_node_id(pipeline, f"{file_type}-parser"),
        kind="parser",
        plugin=plugin,
        options=merged,
        file_types=(file_type,),
    )
    if owner is not None and owner.file_types:
        left = tuple(one for one in owner.file_types if one != file_type)
        pipeline = pipeline.with_node(owner.model_copy(update={"file_types": left}))
    (source,) = pipeline.list_nodes("source")
    (chunker,) = pipeline.list_successors(base.id)
    edges = (PipelineEdge(from_node=source.id, to_node=own.id), PipelineEdge(from_node=own.id, to_node=chunker.id))
    return check_pipeline(
        PipelineDAG(nodes=(*pipeline.nodes, own), edges=(*pipeline.edges, *edges), template=pipeline.template)
    )


def with_chunker_for_type(
    pipeline: PipelineDAG, file_type: FileType, *, chunker: str = "", options: JsonObject | None = None
) -> PipelineDAG:
    """The pipeline with another chunker, or other options, on this type's route. Raises
    `PipelineInvalidError`."""
    route = find_route(pipeline, file_type)
    if route is None:
        return check_pipeline(pipeline)
    chunker_options = route.chunker.options if chunker in ("", route.chunker.plugin) else {}
    update = {"plugin": chunker or route.chunker.plugin, "options": {**chunker_options, **(options or {})}}
    return check_pipeline(pipeline.with_node(route.chunker.model_copy(update=update)))


def _free_node_id(pipeline: PipelineDAG, name: str) -> str:
    used_ids = {node.id for node in pipeline.nodes}
    return next(one for one in (name, *(f"{name}-{number}" for number in range(2, 102))) if one not in used_ids)
