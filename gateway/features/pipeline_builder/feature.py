"""The feature `pipeline_builder`: conversations that build document pipelines."""

from gateway.feature import Door, Feature

FEATURE = Feature(
    name="pipeline_builder",
    needs=("documents",),
    rooms=("pipelines",),
    tools="gateway.features.pipeline_builder.hooks:list_tools",
    subagents="gateway.features.pipeline_builder.hooks:list_subagents",
    request_handlers="gateway.features.pipeline_builder.hooks:list_request_handlers",
    routes=(Door("gateway.features.pipeline_builder.doors.conversations:router", place=180),),
)
