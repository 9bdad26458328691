"""The input, output and policy of guardrails; the fields follow the agent contract."""

from typing import Literal, Protocol

from pydantic import Field, JsonValue

from agent.core.models import FrozenModel, GuardAction

CheckType = Literal["input_validation", "output_safety"]
RiskCategory = Literal["injection", "pii", "hate_speech", "malicious_code", "none"]
GuardedCategory = Literal["injection", "pii", "secret", "hate_speech", "malicious_code"]
"""The categories of a policy. Secrets have a policy of their own; `risk_category` reports them as `pii`."""


class Finding(FrozenModel):
    """Something found in a text. It does not contain the value, because findings are logged."""

    category: GuardedCategory
    kind: str = Field(min_length=1)
    """The kind of finding, such as `EMAIL`, `AWS_ACCESS_KEY` or `override`."""
    start: int = Field(ge=0)
    """Start in characters: `text[start:end]` was found."""
    end: int = Field(ge=0)
    score: float = Field(default=1.0, ge=0, le=1)
    """The confidence of the detector, from 0 to 1."""
    detail: str = ""
    """The reason, for people."""


class GuardrailsInput(FrozenModel):
    """A text to check: a request on its way in, or an answer or tool result on its way out."""

    content: str
    check_type: CheckType
    metadata: dict[str, JsonValue] | None = None
    """`{"tainted": true}` marks a text from outside, in which nobody should make requests."""


class GuardrailsOutput(FrozenModel):
    """The findings, and the text that may go on."""

    is_safe: bool
    """Whether there are no findings, whatever the policy does."""
    sanitized_content: str
    """The text after redaction; empty if the policy blocks it."""
    risk_category: RiskCategory | None
    """The worst category found: injection, malicious code, hate speech, pii; else `none`."""
    reasoning: str
    findings: tuple[Finding, ...] = ()
    action: Literal["pass", "flag", "redact", "block"] = "pass"
    """The strictest action of the policy for these findings."""


class GuardrailsPolicy(FrozenModel):
    """The action for each category."""

    injection: GuardAction = "flag"
    pii: GuardAction = "redact"
    secret: GuardAction = "redact"  # noqa: S105 - what to do, no password
    hate_speech: GuardAction = "flag"
    malicious_code: GuardAction = "flag"

    def get_action(self, category: GuardedCategory) -> GuardAction:
        """The action for a finding of this category."""
        action: GuardAction = getattr(self, category)
        return action


class Guardrail(Protocol):
    """Checks a text and may wait for it: a model or a service, with a time limit of its own.

    Unlike a `Detector`, it is asynchronous and gives a whole verdict. `GuardrailPipeline` is one and takes others as
    `services`: it uses their findings and applies its own policy to them.
    """

    async def check(self, request: GuardrailsInput) -> GuardrailsOutput:
        """Checks one text. Raises an `AgentError` if it cannot give a verdict."""
        ...


class Detector(Protocol):
    """Finds one kind of thing in a text, without waiting. Unlike a `Guardrail`, it gives no verdict."""

    categories: frozenset[GuardedCategory]
    """The categories it can report. It is not called if the policy of all of them is `off`."""

    def find(self, request: GuardrailsInput) -> list[Finding]:
        """The findings in any order; spans may overlap. Takes time linear in the text's length."""
        ...
