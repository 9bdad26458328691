"""Prompt injection: rules, then the classifier, over the text and over everything that is hidden or encoded in it.

Detection is a signal, never the defence: what keeps a fooled model harmless is the structure around it.
"""

# ruff: noqa: RUF001 - words and punctuation of many scripts are the point here

import re
from collections.abc import Iterator
from itertools import islice
from typing import Final

from agent.guardrails.classifier import Model, Suspicion, carries, shipped, suspect
from agent.guardrails.models import Finding, Guarded, GuardrailsInput
from agent.guardrails.rules import matches
from agent.guardrails.segments import shape
from agent.guardrails.views import COMMENT, TAGGED, UNSEEN, Piece, View, parted, pieces, plain, tagged

SURE: Final = 0.95
"""What a rule that fits counts as; none fitted a harmless text of the development data."""
PROSE: Final = 0.9
"""How sure a request must be in a page or a paper from outside: their sentences ask questions of their readers. Mails
and tool results are stricter."""
MOST: Final = 100
"""Rules that fit are reported so often at most; a text made of nothing else is clear enough by then."""
_TO_MACHINES: Final = re.compile(
    r"\b(?:ai|a\.i\.|llms?|language models?|chat ?bots?|assistants?|(?:ai|coding) agents?|agents"
    r"|chatgpt|gpt|claude|gemini|copilots?|ki|ki-\w{1,20}|sprachmodelle?|ai-\w{1,20}|språkmodell(?:er)?)\b",
    re.IGNORECASE,
)
"""Who is spoken to in what people do not see: a request to them is none to those who keep the page."""
_SAYS: Final = {
    "attack": "reads like an attempt to turn the assistant",
    "addressed": "gives orders to whatever machine reads the text",
    "request": "asks something of an assistant, in a text that comes from somebody else",
}
_OPENED: Final = re.compile(r"(?:^|[\s(:])[\"'“„«‘‚`「『][^\n\"“”„«»`「」『』]{0,80}\Z")
_CLOSED: Final = re.compile(r"[^\n\"“”„«»`「」『』]{0,80}[\"'“”»’`」』]")


class InjectionDetector:
    """Reports attempts to turn the assistant, and requests inside texts in which nobody should ask it anything."""

    categories: frozenset[Guarded] = frozenset({"injection"})

    def __init__(self, model: Model | None = None) -> None:
        self._model = model

    def find(self, request: GuardrailsInput) -> list[Finding]:
        """The findings. Answers on their way out are not looked at: to quote an attack is not to make one."""
        if request.check_type != "input_validation":
            return []
        model = self._model or shipped()
        tainted = (request.metadata or {}).get("tainted")
        view = plain(request.content)
        found = list(_by_rule(view))
        carrier = tainted if isinstance(tainted, bool) else None
        prose = carrier is True and shape(view.text) == "chat"
        for suspicion in suspect(view.text, model, carrier=carrier):
            if suspicion.probability > (PROSE if prose and suspicion.kind == "request" else 0.5):
                found.append(_finding(view, suspicion))  # noqa: PERF401 - as a comprehension it hides the threshold
        apart = parted(request.content)
        if apart is not None:
            found += _in_words(plain(apart), model)
        carried = carries(shape(view.text)) if carrier is None else carrier
        for piece in pieces(view.text):
            found += _in_piece(piece, *view.span(piece.start, piece.end), model, carried=carried)
        for piece in tagged(request.content):
            found += _in_piece(piece, piece.start, piece.end, model, carried=carried)
        return found


def _by_rule(view: View) -> Iterator[Finding]:
    for match in islice(matches(view.text), MOST):
        if not _quoted(view.text, match.start, match.end):
            start, end = view.span(match.start, match.end)
            yield Finding(
                category="injection", kind=match.name, start=start, end=end, score=SURE, detail=f"the text {match.says}"
            )


def _quoted(text: str, start: int, end: int) -> bool:
    """Whether someone speaks of these words rather than says them: quotation marks right around them. The classifier
    still reads them."""
    return _OPENED.search(text[max(0, start - 90) : start]) is not None and _CLOSED.match(text, end) is not None


def _finding(view: View, suspicion: Suspicion) -> Finding:
    start, end = view.span(suspicion.start, suspicion.end)
    return Finding(
        category="injection", kind=suspicion.kind, start=start, end=end, score=suspicion.probability,
        detail=f"this part {_SAYS[suspicion.kind]}",
    )  # fmt: skip


def _in_words(view: View, model: Model) -> Iterator[Finding]:
    """What the text says with blanks where invisible characters stand."""
    yield from _by_rule(view)
    for suspicion in suspect(view.text, model, carrier=False):
        if suspicion.probability > 0.5:
            yield _finding(view, suspicion)


def _in_piece(piece: Piece, start: int, end: int, model: Model, *, carried: bool) -> Iterator[Finding]:
    """Comments are for those who keep the page, unless they speak to machines; whoever encodes a request in a text that
    others read means nobody else."""
    inner = plain(piece.text).text
    rule = next(matches(inner), None)
    seen = piece.how in (COMMENT, UNSEEN)
    asked = _TO_MACHINES.search(inner) is not None if seen else carried
    worst = next(iter(suspect(inner, model, carrier=asked)), None)
    if piece.how == TAGGED or rule is not None:
        says = f"{piece.how} that {rule.says}" if rule is not None else piece.how
        yield Finding(category="injection", kind="hidden", start=start, end=end, score=SURE, detail=f"there is {says}")
    elif worst is not None and worst.probability > 0.5:
        yield Finding(
            category="injection", kind="hidden", start=start, end=end, score=worst.probability,
            detail=f"there is {piece.how} that reads like an attempt to turn the assistant",
        )  # fmt: skip
