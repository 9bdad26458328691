"""The guardrails agent: asks every detector, does what the policy says, and tells why."""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final, Literal

from agent.guardrails.harm import HarmDetector
from agent.guardrails.injection import InjectionDetector
from agent.guardrails.models import (
    Detector,
    Finding,
    Guarded,
    Guardrail,
    GuardrailsInput,
    GuardrailsOutput,
    GuardrailsPolicy,
    RiskCategory,
)
from agent.guardrails.pii import PiiDetector
from agent.guardrails.secrets import Secrets
from agent.guardrails.spans import replaced
from agent.guardrails.vault import Vault

LONG: Final = 20_000
"""Longer texts are checked in a thread: about 40 ms of work that other requests should not wait for."""
_WORST: Final[tuple[Guarded, ...]] = ("injection", "malicious_code", "hate_speech", "secret", "pii")
_RISK: Final[dict[Guarded, RiskCategory]] = {
    "injection": "injection", "malicious_code": "malicious_code", "hate_speech": "hate_speech", "secret": "pii",
    "pii": "pii",
}  # fmt: skip
Taken = Literal["pass", "flag", "redact", "block"]
_HARDER: Final[tuple[Taken, ...]] = ("pass", "flag", "redact", "block")


class Guardrails:
    """Checks texts under one policy. `others` are further guardrails (a model, a service); what they find counts as our
    own finding does, and their failure is not ours to hide: it is raised."""

    def __init__(
        self,
        policy: GuardrailsPolicy | None = None,
        detectors: Sequence[Detector] | None = None,
        others: Sequence[Guardrail] = (),
    ) -> None:
        self.policy = policy or GuardrailsPolicy()
        chosen = detectors if detectors is not None else (InjectionDetector(), HarmDetector(), Secrets(), PiiDetector())
        self._detectors = tuple(d for d in chosen if any(self.policy.action(c) != "off" for c in d.categories))
        self._others = tuple(others)

    async def check(self, request: GuardrailsInput, vault: Vault | None = None) -> GuardrailsOutput:
        """Check one text. Personal data of a request gets placeholders: those of `vault`, which can turn them back, or
        some that are forgotten with this call. From an answer it is taken out, for nobody is to turn it back."""
        found = await self.look(request)
        kept = (vault or Vault()) if request.check_type == "input_validation" else None
        return self.decide(request.content, found, kept)

    async def look(self, request: GuardrailsInput) -> list[Finding]:
        """What the detectors and the other guardrails find."""
        long = len(request.content) > LONG
        found = await asyncio.to_thread(self.find, request) if long else self.find(request)
        for other in self._others:
            found += [finding for finding in (await other.check(request)).findings if self._wanted(finding)]
        return found

    def find(self, request: GuardrailsInput) -> list[Finding]:
        """What the detectors find, without waiting for anybody."""
        return [finding for detector in self._detectors for finding in detector.find(request) if self._wanted(finding)]

    def decide(self, text: str, found: Sequence[Finding], vault: Vault | None) -> GuardrailsOutput:
        """What the policy makes of findings; without a `vault` personal data gets no placeholder to turn back."""
        ordered = sorted(found, key=lambda finding: (finding.start, finding.end))
        actions = [self.policy.action(finding.category) for finding in ordered]
        hardest: Taken = "pass"
        for action in actions:
            if action != "off" and _HARDER.index(action) > _HARDER.index(hardest):
                hardest = action
        worst = next((name for name in _WORST if any(finding.category == name for finding in ordered)), None)
        return GuardrailsOutput(
            is_safe=not ordered,
            sanitized_content="" if hardest == "block" else self._redacted(text, ordered, vault),
            risk_category="none" if worst is None else _RISK[worst],
            reasoning=_reasoning(ordered, hardest),
            findings=tuple(ordered),
            action=hardest,
        )

    def _wanted(self, finding: Finding) -> bool:
        return self.policy.action(finding.category) != "off"

    def _redacted(self, text: str, found: Sequence[Finding], vault: Vault | None) -> str:
        """What gets a placeholder last: it is for what is left."""
        out = [finding for finding in found if self.policy.action(finding.category) == "redact"]
        signed = private(out) if vault is not None else []
        spans = [(f.start, f.end, f"[removed: {f.kind}]") for f in out if vault is None or not _has_sign(f)]
        if vault is None:
            return replaced(text, spans)
        gone = bytearray(len(text))
        for start, end, _ in spans:
            gone[start:end] = b"\x01" * (end - start)
        vault.avoid(text)
        left = [f for f in signed if not any(gone[f.start : f.end])]
        spans += [(f.start, f.end, f"<{vault.sign(f.kind, text[f.start : f.end])}>") for f in left]
        return replaced(text, spans)


def private(found: Iterable[Finding]) -> list[Finding]:
    """The findings that get placeholders, personal data and a caller's own credentials, without overlaps: a credential
    goes before what is found in it, and those that touch are one."""
    credentials: list[Finding] = []
    for finding in sorted((f for f in found if f.category == "secret" and _has_sign(f)), key=lambda f: f.start):
        last = credentials[-1] if credentials else None
        if last is not None and finding.start < last.end:
            credentials[-1] = last.model_copy(update={"end": max(last.end, finding.end)})
        else:
            credentials.append(finding.model_copy(update={"kind": "CREDENTIAL"}))
    personal = [
        finding
        for finding in found
        if finding.category == "pii" and not any(c.start < finding.end and finding.start < c.end for c in credentials)
    ]
    return sorted([*credentials, *personal], key=lambda finding: finding.start)


def _has_sign(finding: Finding) -> bool:
    """Whether somebody may get it back: not what is a secret of this gateway."""
    return finding.category == "pii" or (finding.category == "secret" and finding.kind != "CONFIGURED_SECRET")


def _reasoning(found: Sequence[Finding], action: Taken) -> str:
    if not found:
        return "nothing was found"
    kinds: dict[str, int] = {}
    for finding in found:
        name = f"{finding.category} ({finding.kind})"
        kinds[name] = kinds.get(name, 0) + 1
    listed = ", ".join(name if count == 1 else f"{count} times {name}" for name, count in kinds.items())
    done = {"flag": "reported", "redact": "taken out", "block": "the text was blocked", "pass": "nothing to do"}[action]
    surest = max(found, key=lambda finding: finding.score)
    return f"found {listed}: {done}" + (f"; {surest.detail}" if surest.detail else "")
