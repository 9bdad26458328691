"""The tools that build a document pipeline, in a conversation and by rule."""

from gateway.features.pipeline_builder.tools.pipelines import make_pipeline_tools
from gateway.features.pipeline_builder.tools.pipelines_by_rule import SuggestPipelineTool

__all__ = [
    "SuggestPipelineTool",
    "make_pipeline_tools",
]
