"""What the feature `pipeline_builder` has built, for its own doors and commands."""

from typing import TYPE_CHECKING

from gateway.feature import Parts

if TYPE_CHECKING:
    from gateway.features.pipeline_builder.engine.builder import PipelineBuilder
    from gateway.features.pipeline_builder.engine.conversations import BuilderConversations


def get_builder(parts: Parts) -> "PipelineBuilder":
    """The pipeline builder. Raises `ConfigError` if the feature is off."""
    builder: PipelineBuilder = parts.get_part("pipeline_builder")
    return builder


def get_conversations(parts: Parts) -> "BuilderConversations":
    """The conversations that build pipelines. Raises `ConfigError` if the feature is off."""
    conversations: BuilderConversations = parts.get_services("pipeline_builder")
    return conversations
