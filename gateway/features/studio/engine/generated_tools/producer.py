"""The model's part in making a tool: it writes tests, then code, then reviews. Replies are data of fixed schemas."""

from collections.abc import Sequence
from typing import TypeVar

from pydantic import BaseModel

from agent.core.models import JsonObject, Tier
from agent.execution.subagent_work import parse_final
from agent.llm.port import ResponseSchema
from agent.llm.prompts import format_block, quote_inline
from agent.tools import ToolModel, build_flat_schema
from gateway.features.studio.engine.generated_tools.models import CodeReview, GeneratedCode, Manifest, ToolTests
from gateway.features.studio.engine.generated_tools.source_rules import ALLOWED_IMPORTS
from gateway.features.studio.engine.prompts import render

Shape = TypeVar("Shape", bound=BaseModel)
_FEEDBACK_CHARS = 8_000


class UnreadableReplyError(Exception):
    """Raised for a reply that does not fit its schema; the message says where."""


class ToolProducer:
    """Asks one model for the parts of one tool. Methods raise `ModelError`, `BudgetError`, `UnreadableReplyError`."""

    def __init__(self, model: ToolModel, request: str) -> None:
        self._model = model
        self._request = request

    async def write_tests(
        self, name: str | None, earlier: str | None, permissions: Manifest | None, feedback: Sequence[str]
    ) -> ToolTests:
        """The interface and the tests. The model does not see any new code, only that of the version that is
        refined.
        """
        fixed = f"The function is named {name}." if name is not None else ""
        if permissions is not None:
            fixed += f"\nAllowed permissions, at most: {permissions.model_dump_json()}"
        parts = [format_block("user_request", self._request)]
        if earlier is not None:
            parts.append(format_block("result", earlier, source="the present code"))
        return await self._ask(ToolTests, render("tool_tests", name=fixed.strip()), parts, feedback, "high")

    async def write_code(self, tests: ToolTests, earlier: str | None, feedback: Sequence[str]) -> GeneratedCode:
        """The code for an interface and its tests. `feedback` lists what was wrong with the last one."""
        parts = [
            format_block("user_request", self._request),
            format_block("result", tests.interface, source="the interface"),
            *(format_block("result", case, source=f"test {n}") for n, case in enumerate(tests.test_cases, start=1)),
            f"Permissions: {tests.permissions.model_dump_json(include={'hosts', 'folders', 'tools'})}",
        ]
        if earlier is not None:
            parts.append(format_block("result", earlier, source="the present code"))
        modules = ", ".join(name for name in sorted(ALLOWED_IMPORTS) if name not in ("pydantic", "__future__"))
        return await self._ask(GeneratedCode, render("tool_code", imports=modules), parts, feedback, "high")

    async def review(self, code: str, tests: ToolTests, warnings: Sequence[str]) -> CodeReview:
        """The critic's opinion."""
        parts = [
            format_block("user_request", self._request),
            format_block("result", code, source="the code"),
            f"Permissions: {tests.permissions.model_dump_json(include={'hosts', 'folders', 'tools'})}",
            *(f"Noticed: {quote_inline(warning)}" for warning in warnings),
        ]
        return await self._ask(CodeReview, render("tool_review"), parts, (), "high")

    async def _ask(
        self, shape: type[Shape], system: str, parts: Sequence[str], feedback: Sequence[str], tier: Tier
    ) -> Shape:
        content = [*parts]
        if feedback:
            problems = "\n\n".join(feedback)[:_FEEDBACK_CHARS]
            content.append(format_block("result", problems, source="what was wrong with your last reply"))
            content.append("Correct this and reply with the whole object.")
        messages: tuple[JsonObject, ...] = (
            {"role": "system", "content": system},
            {"role": "user", "content": "\n".join(content)},
        )
        text = await self._model.ask(
            messages, tier=tier, schema=ResponseSchema(shape.__name__, build_flat_schema(shape))
        )
        read = parse_final(shape, text)
        if not isinstance(read, shape):
            raise UnreadableReplyError(f"the reply is not a valid {shape.__name__}: {read}")
        return read
