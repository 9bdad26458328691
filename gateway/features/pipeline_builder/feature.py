"""The feature `pipeline_builder`: conversations that build document pipelines."""

from gateway.feature import Door, Feature

FEATURE = Feature(
    name="pipeline_builder",
    needs=("documents",),
    routes=(Door("gateway.features.pipeline_builder.doors.conversations:router", place=180),),
)
