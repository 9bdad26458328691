"""Detects prompt injection: rules, then the classifier, on the text and on everything hidden or encoded in it.

Detection is a signal, not the defence: the structure around a model limits what a manipulated model can do.
"""

# ruff: noqa: RUF001 - punctuation and letters of many languages are meant

import re
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from operator import itemgetter
from typing import Final

from agent.policy.guardrails.classifier import (
    InjectionModel,
    Suspicion,
    classify_shape,
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
from agent.policy.guardrails.lexicon import CONCEPTS, find_concepts
from agent.policy.guardrails.models import Finding, GuardedCategory, GuardrailsInput

MAX_RULE_WORDS: Final = 6
"""Maximum number of words between the first and the last concept of a rule."""
MAX_OPENING_WORDS: Final = 2
"""Words that may stand before the opening word of a sentence: "please", "and now"."""

_WORD = re.compile(r"\w+(?:['’\-]\w+)*|[.!?;:\n]")
_SENTENCE_ENDS: Final = frozenset(".!?;\n")


@dataclass(frozen=True, slots=True)
class Rule:
    """Concepts that are an attack if they occur together, the first one first."""

    name: str
    first_concept: str
    other_concepts: tuple[tuple[str, ...], ...]
    """One concept of each group must follow."""
    description: str
    must_open_sentence: bool = False
    """Whether it must be among the first words of a sentence: an order, not a report."""


RULES: Final = (
    Rule("override", "override", (("orders",), ("prior",)), "asks to set aside what was said before"),
    Rule(
        "override",
        "override",
        (("orders",), ("all",)),
        "asks to set aside what was said before",
        must_open_sentence=True,
    ),
    Rule("override", "override", (("all",), ("prior",)), "asks to set aside what was said before"),
    Rule("override", "override", (("orders",), ("you",)), "asks to set aside the assistant's orders"),
)
"""Further rules would raise false alarms: "show me the rules" and "act as a guide" are everyday requests."""

_FIRST_WORDS: Final = tuple(
    word for rule in {rule.first_concept for rule in RULES} for word in CONCEPTS[rule].replace("*", "").split()
)

_THIRD_PERSON: Final = frozenset(("its", "their", "his", "her", "ses", "leurs", "sus", "loro", "jego", "их", "его"))
"""Possessives of the third person: the orders of somebody else are only reported."""
_CODE_LISTING: Final = re.compile(r"```.*?(?:```|\Z)|`[^`\n]{1,200}`", re.DOTALL)

_CJK = re.compile(
    r"(?:忽略|无视|無視|忘记|忘掉|忘れ)[^。！？\n]{0,12}(?:指示|指令|规则|規則|命令|提示|要求|内容)"
    r"|(?:指示|指令|规则|規則|命令|プロンプト)[^。！？\n]{0,8}(?:忽略|无视|無視|忘れ)"
    r"|(?:이전|위의|모든)[^.!?\n]{0,12}(?:지시|명령|규칙)[^.!?\n]{0,8}(?:무시|잊어)"
)
_SYNTAX_RULES: Final = (
    (
        "control_tokens",
        re.compile(r"<\|(?:im_start|im_end|system|assistant|user|endoftext|eot_id|start_header_id)\|>|\[/?INST\]"
        r"|<</?SYS>>"),
        "holds the control tokens of a chat model",
    ),
    (
        "false_turn",
        # Behind a line's number, as tools show files.
        re.compile(r"(?:^|\n)\s{0,9}(?:\d{1,7}[:|\t] ?)?(?:#{2,3} ?|\[|<)/?"
        r"(?:system|instruction|(?:\w{1,20} ){0,2}system (?:prompt|message))(?:\]|>|:)", re.IGNORECASE),
        "pretends to be a turn of the conversation",
    ),
    (
        "false_result",
        re.compile(r"</(?:tool|function)_?(?:results?|responses?|outputs?|calls?)>|<(?:tool|function)_calls?>"
        r"|</(?:system|user|assistant|untrusted|document|context)>\s{0,9}<(?:system|user|assistant|tool_call)\b",
        re.IGNORECASE),
        "pretends that the result of a tool ends, or that a tool is called",
    ),
)  # fmt: skip
_SYNTAX_SIGN: Final = re.compile(r"[<\[#]")
"""Every match of these rules contains one of these signs. Most texts contain none."""


@dataclass(frozen=True, slots=True)
class RuleMatch:
    """Where a rule found what it looks for, and what that is, for a person."""

    name: str
    start: int
    end: int
    description: str


def find_rule_matches(text: str) -> Iterator[RuleMatch]:
    """Yields every match of a rule, the first one in each sentence."""
    yield from _find_concept_matches(text)
    for matches in _CJK.finditer(text) if not text.isascii() else ():
        yield RuleMatch("override", matches.start(), matches.end(), RULES[0].description)
    listings = [match.span() for match in _CODE_LISTING.finditer(text)] if "`" in text else []
    for name, pattern, says in _SYNTAX_RULES if _SYNTAX_SIGN.search(text) else ():
        for matches in pattern.finditer(text):
            before = bisect_right(listings, matches.start(), key=itemgetter(0))
            if before and matches.start() < listings[before - 1][1]:
                continue  # a code listing shows such tokens; the classifier still reads it
            yield RuleMatch(name, matches.start(), matches.end(), says)


def _find_concept_matches(text: str) -> Iterator[RuleMatch]:
    low = text.lower()
    if not any(map(low.__contains__, _FIRST_WORDS)):
        return
    recent: deque[tuple[int, int, tuple[str, ...]]] = deque()
    begin = 0
    for at, word in enumerate(_WORD.finditer(text)):
        if word[0] in _SENTENCE_ENDS:
            recent.clear()
            begin = at + 1
            continue
        if word[0].lower() in _THIRD_PERSON:
            recent.clear()
            continue
        ideas = find_concepts(word[0].lower())
        if not ideas:
            continue
        while recent and at - recent[0][0] > MAX_RULE_WORDS:
            recent.popleft()
        recent.append((at, word.start(), ideas))
        for rule in RULES:
            if any(idea in ideas for choice in rule.other_concepts for idea in choice):
                start = _find_rule_start(rule, recent, begin)
                if start is not None:
                    yield RuleMatch(rule.name, start, word.end(), rule.description)
                    recent.clear()
                    break


def _find_rule_start(rule: Rule, recent: deque[tuple[int, int, tuple[str, ...]]], begin: int) -> int | None:
    """The start of a match if all concepts occur in different words, or None."""
    for place, (at, start, ideas) in enumerate(recent):
        if rule.first_concept not in ideas or (rule.must_open_sentence and at - begin > MAX_OPENING_WORDS):
            continue
        rest = [later for number, (_, _, later) in enumerate(recent) if number > place]
        used: set[int] = set()
        for choice in rule.other_concepts:
            fits = next((n for n, later in enumerate(rest) if n not in used and any(i in later for i in choice)), None)
            if fits is None:
                break
            used.add(fits)
        else:
            return start
    return None


RULE_SCORE: Final = 0.95
"""The score of a rule match. No rule matched a harmless text of the development data."""
MIN_PROSE_PROBABILITY: Final = 0.9
"""Minimum probability of a request in prose from outside, which addresses questions to its readers. Mails and tool
results use 0.5."""
MAX_RULE_MATCHES: Final = 100
"""At most this many rule matches are reported per text."""
ADDRESSES_MACHINE: Final = re.compile(
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
    addresses_machine = ADDRESSES_MACHINE.search(plain_text) is not None if is_hidden else from_outside
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
