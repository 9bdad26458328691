"""Checks what goes in and out of a run, and redacts it. Imports `agent.core` and `agent.text` only.

Beside the detectors: `egress` (which reads may carry words out), `message_labels` (which messages are the user's words)
and `plain_text` (words of models inside our own Markdown).
`GuardrailPipeline` runs the detectors under a policy. `PlaceholderMap`, `SecretScanner` and `LinkFilter` each work on
whole texts and on streams. `quote_untrusted` shows outside text to models, `reveal_hidden_text` to people.
"""

from agent.policy.guardrails.guardrail_pipeline import GuardrailPipeline
from agent.policy.guardrails.links import LinkFilter, LinkStream
from agent.policy.guardrails.models import (
    Detector,
    Finding,
    Guardrail,
    GuardrailsInput,
    GuardrailsOutput,
    GuardrailsPolicy,
)
from agent.policy.guardrails.placeholders import PlaceholderMap, StreamRestorer
from agent.policy.guardrails.quoting import (
    RevealedText,
    attach_untrusted,
    quote_untrusted,
    reveal_hidden_text,
    strip_invisible,
)
from agent.policy.guardrails.secrets import SecretScanner

__all__ = [
    "Detector",
    "Finding",
    "Guardrail",
    "GuardrailPipeline",
    "GuardrailsInput",
    "GuardrailsOutput",
    "GuardrailsPolicy",
    "LinkStream",
    "LinkFilter",
    "StreamRestorer",
    "SecretScanner",
    "RevealedText",
    "PlaceholderMap",
    "attach_untrusted",
    "quote_untrusted",
    "reveal_hidden_text",
    "strip_invisible",
]
