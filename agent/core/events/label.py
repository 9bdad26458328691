"""Labels of texts and of the steps of a plan: whose words they are, and whether anything from outside chose them."""

from typing import Literal

from pydantic import Field

from agent.core.models import ArgumentRole, FrozenModel

TextSource = Literal["user", "instructions", "attachment", "answer", "unknown_answer", "tool"]
"""Where a message of a request comes from: the user; the client's or operator's instructions; either of them with text
that a client attached; an answer that this gateway wrote; an assistant message that it did not write, or no longer
knows; a call or a result of the client's own tools."""


class TextLabel(FrozenModel):
    """Whether a text may instruct (`trusted`) and whether it may leave unasked (not `private`)."""

    source: TextSource
    trusted: bool
    private: bool = False


class StepLabel(FrozenModel):
    """The parts of a step that are not the user's, in a plan that was made after untrusted text was in the prompt."""

    step_id: str
    tool_trusted: bool = Field(description="whether the user's words, or a plan from before, ask for this tool")
    untrusted_args: tuple[str, ...] = Field(
        default=(), description="arguments with a literal that is not in the user's words"
    )
    roles: dict[str, ArgumentRole] = Field(default_factory=dict, description="the roles of these arguments")

    @property
    def is_trusted(self) -> bool:
        """Whether the step is what the user asked for."""
        return self.tool_trusted and not self.untrusted_args
