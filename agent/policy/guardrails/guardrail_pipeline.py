"""The guardrails agent: runs every detector, applies the policy, and gives the reason."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, Literal

from agent.core.event_loop import compute_beside_loop
from agent.core.models import GuardAction
from agent.policy.guardrails.harm import HarmDetector
from agent.policy.guardrails.injection import InjectionDetector
from agent.policy.guardrails.models import (
    Detector,
    Finding,
    GuardedCategory,
    Guardrail,
    GuardrailsInput,
    GuardrailsOutput,
    GuardrailsPolicy,
    RiskCategory,
)
from agent.policy.guardrails.pii import PiiDetector
from agent.policy.guardrails.placeholders import PlaceholderMap
from agent.policy.guardrails.secrets import SecretScanner
from agent.policy.guardrails.spans import replace_spans

_CATEGORIES_BY_SEVERITY: Final[tuple[GuardedCategory, ...]] = (
    "injection",
    "malicious_code",
    "hate_speech",
    "secret",
    "pii",
)
_RISK_BY_CATEGORY: Final[dict[GuardedCategory, RiskCategory]] = {
    "injection": "injection", "malicious_code": "malicious_code", "hate_speech": "hate_speech", "secret": "pii",
    "pii": "pii",
}  # fmt: skip
AppliedAction = Literal["pass", "flag", "redact", "block"]
_ACTIONS_BY_SEVERITY: Final[tuple[AppliedAction, ...]] = ("pass", "flag", "redact", "block")
_ACTION_WORDS: Final[dict[GuardAction, str]] = {
    "off": "reported", "flag": "reported", "redact": "taken out", "block": "the text was blocked",
}  # fmt: skip
"""What was done about a finding, for people."""


class GuardrailPipeline:
    """Checks texts under one policy.

    `detectors` compute at once; `services` are guardrails that wait for a model or a service. Findings of both count
    alike; an error of a service is raised.
    """

    def __init__(
        self,
        policy: GuardrailsPolicy | None = None,
        detectors: Sequence[Detector] | None = None,
        services: Sequence[Guardrail] = (),
    ) -> None:
        self.policy = policy or GuardrailsPolicy()
        chosen = (
            detectors
            if detectors is not None
            else (InjectionDetector(), HarmDetector(), SecretScanner(), PiiDetector())
        )
        self._detectors = tuple(d for d in chosen if any(self.policy.get_action(c) != "off" for c in d.categories))
        self._services = tuple(services)

    async def check(self, request: GuardrailsInput, placeholders: PlaceholderMap | None = None) -> GuardrailsOutput:
        """Checks one text.

        Personal data of a request is replaced by `placeholders`, which can be restored, or by temporary ones.
        Personal data of an answer is removed.
        """
        findings = await self.collect_findings(request)
        mapping = (placeholders or PlaceholderMap()) if request.check_type == "input_validation" else None
        return await compute_beside_loop(
            len(request.content), lambda: self.apply_policy(request.content, findings, mapping)
        )

    async def collect_findings(self, request: GuardrailsInput) -> list[Finding]:
        """The findings of the detectors and of the services."""
        findings = await compute_beside_loop(len(request.content), lambda: self.run_detectors(request))
        for service in self._services:
            findings += [finding for finding in (await service.check(request)).findings if self._is_enabled(finding)]
        return findings

    def run_detectors(self, request: GuardrailsInput) -> list[Finding]:
        """The findings of the detectors, without waiting for the services."""
        return [
            finding for detector in self._detectors for finding in detector.find(request) if self._is_enabled(finding)
        ]

    def apply_policy(
        self, text: str, findings: Sequence[Finding], placeholders: PlaceholderMap | None
    ) -> GuardrailsOutput:
        """The result of the policy for these findings. Without `placeholders`, personal data is removed."""
        if not findings:
            if placeholders is not None:
                placeholders.reserve_existing(text)
            return GuardrailsOutput(
                is_safe=True, sanitized_content=text, risk_category="none", reasoning="nothing was found"
            )
        ordered = sorted(findings, key=lambda finding: (finding.start, finding.end))
        actions = [self.policy.get_action(finding.category) for finding in ordered]
        strictest: AppliedAction = "pass"
        for action in actions:
            if action != "off" and _ACTIONS_BY_SEVERITY.index(action) > _ACTIONS_BY_SEVERITY.index(strictest):
                strictest = action
        categories = {finding.category for finding in ordered}
        worst = next(name for name in _CATEGORIES_BY_SEVERITY if name in categories)
        return GuardrailsOutput(
            is_safe=False,
            sanitized_content="" if strictest == "block" else self._redact(text, ordered, placeholders),
            risk_category=_RISK_BY_CATEGORY[worst],
            reasoning=_format_reasoning(list(zip(ordered, actions, strict=True)), strictest),
            findings=tuple(ordered),
            action=strictest,
        )

    def _is_enabled(self, finding: Finding) -> bool:
        return self.policy.get_action(finding.category) != "off"

    def _redact(self, text: str, findings: Sequence[Finding], placeholders: PlaceholderMap | None) -> str:
        """Redacts removed spans first; placeholders are only for what is left."""
        redacted = [finding for finding in findings if self.policy.get_action(finding.category) == "redact"]
        restorable = select_placeholder_findings(redacted) if placeholders is not None else []
        spans = [
            (f.start, f.end, f"[removed: {f.kind}]") for f in redacted if placeholders is None or not _is_restorable(f)
        ]
        if placeholders is None:
            return replace_spans(text, spans)
        placeholders.reserve_existing(text)
        remaining = restorable
        if spans:
            removed = bytearray(len(text))
            for start, end, _ in spans:
                removed[start:end] = b"\x01" * (end - start)
            remaining = [f for f in restorable if not any(removed[f.start : f.end])]
        spans += [
            (f.start, f.end, f"<{placeholders.assign_placeholder(f.kind, text[f.start : f.end])}>") for f in remaining
        ]
        return replace_spans(text, spans)


def select_placeholder_findings(findings: Iterable[Finding]) -> list[Finding]:
    """The findings that get placeholders, personal data and the caller's own credentials, without overlaps.

    A credential wins over findings inside it; overlapping credentials become one.
    """
    credentials: list[Finding] = []
    for finding in sorted((f for f in findings if f.category == "secret" and _is_restorable(f)), key=lambda f: f.start):
        last = credentials[-1] if credentials else None
        if last is not None and finding.start < last.end:
            credentials[-1] = last.model_copy(update={"end": max(last.end, finding.end)})
        else:
            credentials.append(finding.model_copy(update={"kind": "CREDENTIAL"}))
    starts = [credential.start for credential in credentials]

    def overlaps(finding: Finding) -> bool:
        before = bisect_left(starts, finding.end)  # credentials do not overlap: only the last of these can
        return before > 0 and finding.start < credentials[before - 1].end

    personal = [finding for finding in findings if finding.category == "pii" and not overlaps(finding)]
    return sorted([*credentials, *personal], key=lambda finding: finding.start)


def _is_restorable(finding: Finding) -> bool:
    """Whether a finding may be restored: not a secret of this gateway."""
    return finding.category == "pii" or (finding.category == "secret" and finding.kind != "CONFIGURED_SECRET")


def _format_reasoning(findings: Sequence[tuple[Finding, GuardAction]], strictest: AppliedAction) -> str:
    """What was found and what was done about it: of a text that is blocked as a whole, else by what is done."""
    kinds: dict[str, Counter[str]] = {}
    for finding, action in findings:
        done = _ACTION_WORDS["block" if strictest == "block" else action]
        kinds.setdefault(done, Counter())[f"{finding.category} ({finding.kind})"] += 1
    parts = (
        f"{', '.join(name if count == 1 else f'{count} times {name}' for name, count in names.items())}: {done}"
        for done, names in kinds.items()
    )
    surest = max((finding for finding, _ in findings), key=lambda finding: finding.score)
    return f"found {'; '.join(parts)}" + (f"; {surest.detail}" if surest.detail else "")
