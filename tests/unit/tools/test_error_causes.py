"""Errors of tools and the chain of their causes, which decides whether a call is repeated."""

from typing import Any, cast

import pytest

from agent.core.errors import ToolInputError
from agent.execution.broken_connections import is_broken_connection
from gateway.features.pipeline_builder.tools.pipelines import BuildInput, BuildPipelineTool


def test_a_cycle_of_causes_ends_the_search_for_a_broken_connection() -> None:
    own, first, second = ValueError("own"), ValueError("first"), ValueError("second")
    own.__cause__ = own
    first.__cause__, second.__cause__ = second, first
    assert not is_broken_connection(own)
    assert not is_broken_connection(first)
    second.__cause__ = ConnectionResetError()
    assert is_broken_connection(first)


@pytest.mark.row("S000-28")
async def test_a_pipeline_without_template_and_nodes_is_refused_with_what_to_give() -> None:
    tool = BuildPipelineTool(cast("Any", None))  # it is refused before anything is asked of the conversation
    with pytest.raises(ToolInputError, match="give a template or a pipeline") as caught:
        await tool.run(BuildInput(), cast("Any", None))
    assert caught.value.__cause__ is None
