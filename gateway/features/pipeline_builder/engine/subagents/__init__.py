"""The sub-agents of the builder: the source analyzer, and the pipeline validator."""

from gateway.features.pipeline_builder.engine.subagents.pipeline_validator import PipelineValidator, ValidationTask
from gateway.features.pipeline_builder.engine.subagents.source_analyzer import SourceAnalyzer
from gateway.features.pipeline_builder.engine.subagents.source_context import find_by_address
from gateway.features.pipeline_builder.engine.subagents.source_resources import FindSource, SourceResources
from gateway.features.pipeline_builder.engine.subagents.source_uncertainties import SCANNED

__all__ = [
    "FindSource",
    "PipelineValidator",
    "SCANNED",
    "SourceAnalyzer",
    "SourceResources",
    "ValidationTask",
    "find_by_address",
]
