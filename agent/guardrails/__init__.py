"""The shield: what is checked on the way in and out, and how it is made harmless. Uses `agent.core` only.

`Guardrails` composes the detectors by a policy; `Vault`, `Secrets` and `Links` each have a form for whole texts and one
for streams; `quoted` and `reveal` show text from outside to models and to people.
"""

from agent.guardrails.links import Links, LinkStream
from agent.guardrails.models import (
    Detector,
    Finding,
    Guardrail,
    GuardrailsInput,
    GuardrailsOutput,
    GuardrailsPolicy,
)
from agent.guardrails.quoting import Shown, quoted, reveal, without_invisible
from agent.guardrails.secrets import Secrets
from agent.guardrails.sentinel import Guardrails
from agent.guardrails.vault import Restorer, Vault

__all__ = [
    "Detector",
    "Finding",
    "Guardrail",
    "Guardrails",
    "GuardrailsInput",
    "GuardrailsOutput",
    "GuardrailsPolicy",
    "LinkStream",
    "Links",
    "Restorer",
    "Secrets",
    "Shown",
    "Vault",
    "quoted",
    "reveal",
    "without_invisible",
]
