"""Detects prompt injection: rules, then the classifier, on the text and on everything hidden or encoded in it.

Detection is a signal, not the defence: the structure around a model limits what a manipulated model can do.
"""

# ruff: noqa: RUF001 - words and punctuation of many scripts are the point here

import re
from collections.abc import Iterator
from itertools import islice
from typing import Final

from agent.policy.guardrails.classifier import (
    InjectionModel,
    Suspicion,
    find_suspicions,
    is_carrier,
    load_shipped_model,
)
from agent.policy.guardrails.deobfuscation import (
    COMMENT,
    HIDDEN_TEXT,
    TAG_CHARACTERS,
    DecodedPiece,
    DeobfuscatedText,
    decode_pieces,
    decode_tag_characters,
    normalize_disguises,
    split_at_invisible,
)
from agent.policy.guardrails.models import Finding, GuardedCategory, GuardrailsInput
from agent.policy.guardrails.rules import find_rule_matches
from agent.policy.guardrails.segments import classify_shape

RULE_SCORE: Final = 0.95
"""The score of a rule match. No rule matched a harmless text of the development data."""
MIN_PROSE_PROBABILITY: Final = 0.9
"""Minimum probability of a request in prose from outside, which addresses questions to its readers. Mails and tool
results use 0.5."""
MAX_RULE_MATCHES: Final = 100
"""At most this many rule matches are reported per text."""
_ADDRESSES_MACHINE: Final = re.compile(
    r"\b(?:ai|a\.i\.|llms?|language models?|chat ?bots?|assistants?|(?:ai|coding) agents?|agents"
    r"|chatgpt|gpt|claude|gemini|copilots?|ki|ki-\w{1,20}|sprachmodelle?|ai-\w{1,20}|språkmodell(?:er)?)\b",
    re.IGNORECASE,
)
"""Addressees that are machines. In hidden text, a request to them is not meant for the maintainers of the page."""
_DESCRIPTIONS: Final = {
    "attack": "looks like an attempt to manipulate the assistant",
    "addressed": "gives orders to any machine that reads the text",
    "request": "asks something of an assistant, in a text that comes from somebody else",
}
_OPENING_QUOTE: Final = re.compile(r"(?:^|[\s(:])[\"'“„«‘‚`「『][^\n\"“”„«»`「」『』]{0,80}\Z")
_CLOSING_QUOTE: Final = re.compile(r"[^\n\"“”„«»`「」『』]{0,80}[\"'“”»’`」』]")


class InjectionDetector:
    """Reports attempts to manipulate the assistant, and requests in texts in which nobody should make any."""

    categories: frozenset[GuardedCategory] = frozenset({"injection"})

    def __init__(self, model: InjectionModel | None = None) -> None:
        self._model = model

    def find(self, request: GuardrailsInput) -> list[Finding]:
        """The findings of a request or tool result. Answers may quote attacks and are not checked."""
        if request.check_type != "input_validation":
            return []
        model = self._model or load_shipped_model()
        tainted = (request.metadata or {}).get("tainted")
        view = normalize_disguises(request.content)
        findings = list(_find_by_rule(view))
        form = classify_shape(view.text)
        from_outside = tainted if isinstance(tainted, bool) else is_carrier(form)
        prose = tainted is True and form == "chat"
        for suspicion in find_suspicions(view.text, model, carrier=from_outside):
            if suspicion.probability > (MIN_PROSE_PROBABILITY if prose and suspicion.kind == "request" else 0.5):
                findings.append(_to_finding(view, suspicion))  # noqa: PERF401 - as a comprehension it hides the threshold
        split_text = split_at_invisible(request.content)
        if split_text is not None:
            findings += _find_in_split_words(normalize_disguises(split_text), model)
        for piece in decode_pieces(view.text):
            findings += _find_in_piece(
                piece, *view.to_original_span(piece.start, piece.end), model, from_outside=from_outside
            )
        for piece in decode_tag_characters(request.content):
            findings += _find_in_piece(piece, piece.start, piece.end, model, from_outside=from_outside)
        return findings


def _find_by_rule(view: DeobfuscatedText) -> Iterator[Finding]:
    for match in islice(find_rule_matches(view.text), MAX_RULE_MATCHES):
        if not _is_quoted(view.text, match.start, match.end):
            start, end = view.to_original_span(match.start, match.end)
            yield Finding(
                category="injection",
                kind=match.name,
                start=start,
                end=end,
                score=RULE_SCORE,
                detail=f"the text {match.description}",
            )


def _is_quoted(text: str, start: int, end: int) -> bool:
    """Whether quotation marks enclose these words, so that they are mentioned and not used.

    The classifier still reads them.
    """
    return (
        _OPENING_QUOTE.search(text[max(0, start - 90) : start]) is not None
        and _CLOSING_QUOTE.match(text, end) is not None
    )


def _to_finding(view: DeobfuscatedText, suspicion: Suspicion) -> Finding:
    start, end = view.to_original_span(suspicion.start, suspicion.end)
    return Finding(
        category="injection", kind=suspicion.kind, start=start, end=end, score=suspicion.probability,
        detail=f"this part {_DESCRIPTIONS[suspicion.kind]}",
    )  # fmt: skip


def _find_in_split_words(view: DeobfuscatedText, model: InjectionModel) -> Iterator[Finding]:
    """Yields findings in the text with spaces instead of invisible characters."""
    yield from _find_by_rule(view)
    for suspicion in find_suspicions(view.text, model, carrier=False):
        if suspicion.probability > 0.5:
            yield _to_finding(view, suspicion)


def _find_in_piece(
    piece: DecodedPiece, start: int, end: int, model: InjectionModel, *, from_outside: bool
) -> Iterator[Finding]:
    """Yields findings in a decoded piece.

    Comments address the maintainers of a page unless they mention a machine; an encoded request in a text for other
    readers addresses a machine.
    """
    plain_text = normalize_disguises(piece.text).text
    rule = next(find_rule_matches(plain_text), None)
    is_hidden = piece.disguise in (COMMENT, HIDDEN_TEXT)
    addresses_machine = _ADDRESSES_MACHINE.search(plain_text) is not None if is_hidden else from_outside
    worst = next(iter(find_suspicions(plain_text, model, carrier=addresses_machine)), None)
    if piece.disguise == TAG_CHARACTERS or rule is not None:
        says = f"{piece.disguise} that {rule.description}" if rule is not None else piece.disguise
        yield Finding(
            category="injection", kind="hidden", start=start, end=end, score=RULE_SCORE, detail=f"there is {says}"
        )
    elif worst is not None and worst.probability > 0.5:
        yield Finding(
            category="injection", kind="hidden", start=start, end=end, score=worst.probability,
            detail=f"there is {piece.disguise} that looks like an attempt to manipulate the assistant",
        )  # fmt: skip
