"""What goes into a guardrail and what comes out, field for field as the agents' contract has it, and the policy."""

from typing import Literal, Protocol

from pydantic import Field, JsonValue

from agent.core.models import Frozen

CheckType = Literal["input_validation", "output_safety"]
RiskCategory = Literal["injection", "pii", "hate_speech", "malicious_code", "none"]
Guarded = Literal["injection", "pii", "secret", "hate_speech", "malicious_code"]
"""What a policy speaks of. Secrets have a policy of their own; in `risk_category` they count as `pii`."""
PolicyAction = Literal["off", "flag", "redact", "block"]
"""`off`: not looked for. `flag`: reported, left as it is. `redact`: taken out. `block`: nothing of the text goes on."""


class Finding(Frozen):
    """Something found in a text. The value itself is not kept: findings go into logs."""

    category: Guarded
    kind: str = Field(min_length=1)
    """What it is, e.g. `EMAIL`, `AWS_ACCESS_KEY`, `override`."""
    start: int = Field(ge=0)
    """In characters of the text that was checked; `text[start:end]` is what was found."""
    end: int = Field(ge=0)
    score: float = Field(default=1.0, ge=0, le=1)
    """How sure the detector is."""
    detail: str = ""
    """Why, in words for a person."""


class GuardrailsInput(Frozen):
    """A text to check: a request on its way in, or an answer (or a tool's result) on its way out."""

    content: str
    check_type: CheckType
    metadata: dict[str, JsonValue] | None = None
    """`{"tainted": true}` says that the text comes from outside: a request in it is addressed to nobody here."""


class GuardrailsOutput(Frozen):
    """What was found, and the text that may go on."""

    is_safe: bool
    """Whether nothing was found, whatever the policy does about it."""
    sanitized_content: str
    """The text with everything taken out that the policy wants out; empty if the policy blocks."""
    risk_category: RiskCategory | None
    """Of what was found, the worst: injection, malicious code, hate speech, pii; else `none`."""
    reasoning: str
    findings: tuple[Finding, ...] = ()
    action: Literal["pass", "flag", "redact", "block"] = "pass"
    """The hardest thing the policy asks for."""


class GuardrailsPolicy(Frozen):
    """What to do about each category."""

    injection: PolicyAction = "flag"
    pii: PolicyAction = "redact"
    secret: PolicyAction = "redact"  # noqa: S105 - what to do, no password
    hate_speech: PolicyAction = "flag"
    malicious_code: PolicyAction = "flag"

    def action(self, category: Guarded) -> PolicyAction:
        """What to do about a finding of this category."""
        actions: dict[Guarded, PolicyAction] = {
            "injection": self.injection,
            "pii": self.pii,
            "secret": self.secret,
            "hate_speech": self.hate_speech,
            "malicious_code": self.malicious_code,
        }
        return actions[category]


class Guardrail(Protocol):
    """Anything that checks a text: our own agent, a model, a service. May wait; must bound its own waiting."""

    async def check(self, request: GuardrailsInput) -> GuardrailsOutput:
        """Check one text. Raise an `AgentError` if no verdict can be given; never guess one."""
        ...


class Detector(Protocol):
    """Finds one kind of thing in a text, here and now, without waiting: what our own agent is composed of."""

    categories: frozenset[Guarded]
    """What it may report; a detector none of whose categories is wanted is not asked."""

    def find(self, request: GuardrailsInput) -> list[Finding]:
        """What it finds, in any order; spans may overlap. Takes time linear in the text's length."""
        ...
