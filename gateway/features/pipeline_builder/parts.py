"""What the feature `pipeline_builder` has built, for itself and for features that need it."""

from typing import TYPE_CHECKING

from gateway.feature import Part

if TYPE_CHECKING:
    from gateway.features.pipeline_builder.engine.builder import PipelineBuilder
    from gateway.features.pipeline_builder.engine.conversations import BuilderConversations

get_builder: Part["PipelineBuilder"] = Part("pipeline_builder")
"""The pipeline builder."""
get_conversations: Part["BuilderConversations"] = Part("pipeline_builder", is_services=True)
"""The conversations that build pipelines."""
