"""What a message of a conversation asks, as far as rules read it, and answers that need no look at a source. Pure."""

import re
from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from agent.builder.acceptance import ORDINALS, numbered
from agent.builder.records import Doubt
from agent.core.models import JsonObject
from agent.knowledge.dry_run_report import FailureCategory
from agent.knowledge.pipeline import NodeKind
from agent.knowledge.plugins import PluginInfo, plugins
from agent.knowledge.templates import list_templates

_VAGUE = frozenset({
    "a", "again", "all", "also", "and", "any", "anything", "be", "better", "can", "change", "could", "different",
    "do", "done", "else", "er", "fix", "for", "go", "good", "hello", "help", "hey", "hi", "hm", "hmm", "i",
    "improve", "is", "it", "just", "kind", "let", "like", "make", "maybe", "me", "more", "my", "need", "nice", "of",
    "ok", "okay", "on", "one", "other", "please", "really", "should", "so", "some", "somehow", "something", "stuff",
    "sure", "thank", "thanks", "that", "the", "them", "these", "they", "thing", "things", "this", "those", "to",
    "um", "want", "we", "well", "with", "work", "would", "yeah", "yes", "you", "your",
})  # fmt: skip
"""Words that do not say what is wanted, whatever their number."""
_WORD = re.compile(r"[^\W_]+")
ASK_WHAT_FOR = "What would you like to be able to find in these documents once they are indexed?"
ASK_WHAT_ELSE = "What should be different: another template, other sizes, or shall `apply NAME` use it as it is?"
_ASKS = re.compile(r"\b(?:what|which|list|show|are there|available|exist)\b", re.IGNORECASE)
_ABOUT: Mapping[str, NodeKind | None] = {
    "chunker": "chunker", "parser": "parser", "embedder": "embedder", "index": "index", "source type": "source",
    "plugin": None,
}  # fmt: skip
_TEMPLATES = re.compile(r"\btemplates?\b", re.IGNORECASE)
_STATE = re.compile(
    r"^\s*(?:show|what is|what's|status|state)\b.{0,40}\b(?:pipeline|status|state)?\s*\??\s*$", re.IGNORECASE
)
_STATE_TOO = re.compile(
    r"^\W*(?:what (?:did you|have you) (?:find|found)|what do you (?:know|propose)|what(?:'s| is) "
    r"(?:the proposal|doubtful|known|proposed)|where are we|how (?:is it|does it look)|"
    r"(?:give me |show me )?(?:the |a )?summary|summari[sz]e)\b",
    re.IGNORECASE,
)
_FAILURES = re.compile(
    r"\b(?:why|what|which|how many|list|show)\b.{0,60}\b(?:fail\w*|wrong|errors?|problems?|unread(?:able)?|"
    r"blocking|blocks?|(?:not|n't) (?:be )?read)\b",
    re.IGNORECASE | re.DOTALL,
)
_AGREES = re.compile(
    r"^\W*(?:(?:yes|ok|okay|great|fine|good|perfect|thanks|looks? (?:good|fine|great)|"
    r"that(?:'s| is) (?:good|fine)|please|go ahead|go for it|do it|do that|use it|make it|create it|apply|"
    r"it|this|that|the pipeline|the collection|now|anyway|and|then|as it is|everything)\b\W*)+$",
    re.IGNORECASE,
)
_ACTS = re.compile(
    r"\b(?:apply|go ahead|go for it|do (?:it|that)|use it|(?:make|create) (?:it|the collection))\b", re.IGNORECASE
)
_RESET = re.compile(
    r"^\W*(?:please )?(?:start (?:over|afresh|again|from scratch)|"
    r"reset(?: (?:it|everything|the (?:pipeline|proposal)))?|"
    r"(?:forget|undo|drop) (?:all(?: of)? )?(?:my|the|these|everything|all)(?: changes| wishes)?)(?:\W+please)?\W*$",
    re.IGNORECASE,
)
_AGAIN = re.compile(r"\banaly[sz]e\b.{0,40}\b(?:again|anew)\b|\bre-?analy[sz]e\b", re.IGNORECASE)


_ONE_TEMPLATE = "|".join(re.escape(one.name) for one in list_templates())
_TAKE = r"(?:(?:let's |i(?:'d| would) )?(?:use|take|try|pick|choose|prefer|like|go with|switch to) )?(?:the )?"
_TEMPLATE_ALONE = re.compile(
    rf"{_TAKE}[\"'`]?(?P<name>{_ONE_TEMPLATE})[\"'`]?(?: one)?(?:,? please| then| instead)*[\s.!]*", re.IGNORECASE
)
_PLACE_ALONE = re.compile(
    rf"{_TAKE}(?:(?P<ordinal>{'|'.join(ORDINALS)}|last)(?: one| template)?|(?:number |#)(?P<number>\d{{1,2}}))"
    r"(?:,? please| then| instead)*[\s.!]*",
    re.IGNORECASE,
)
_NAME_ALONE = re.compile(r"[\"'`]?(?P<name>\w[\w.-]{0,198}\w|\w)[\"'`]?[\s.!]*")
_NO_NAMES = frozenset({
    "no", "nope", "not", "none", "never", "nothing", "stop", "cancel", "abandon", "abort", "quit", "exit", "skip",
    "back", "undo", "delete", "wrong", "later", "wait", "why", "what", "which", "how",
})  # fmt: skip
ASK_NAME = "Say `apply NAME`, with what the collection is to be called; you are asked once more before it is made."


def said_in_full(request: str, last: str) -> str:
    """A reply that is short because of what was answered before it (`last`), as it would be said without that: the
    name that was asked for, a template, or its place in the list of them. Every other request is returned as it is."""
    text = " ".join(request.replace("\u2019", "'").split())
    asked_name = last.startswith(ASK_NAME)
    if asked_name and (named := _NAME_ALONE.fullmatch(text)) is not None:
        words = {word.lower() for word in _WORD.findall(text)}
        if not words <= _VAGUE | _NO_NAMES and not _AGREES.match(text) and not asks_state(text):
            return f"call it {named['name']}"
    if (chosen := _TEMPLATE_ALONE.fullmatch(text)) is not None:
        return f"use the template {chosen['name'].lower()}"
    place = _PLACE_ALONE.fullmatch(text) if last == templates_told() else None
    if place is not None:
        names = [one.name for one in list_templates()]
        said = (place["ordinal"] or "").lower()
        at = len(names) if said == "last" else ORDINALS.index(said) + 1 if said else int(place["number"])
        if 1 <= at <= len(names):
            return f"use the template {names[at - 1]}"
    return request


def templates_told() -> str:
    """The list of the templates, as it is answered."""
    return "\n".join(f"- {one.name}: {one.description} For {', '.join(one.suggested_for)}." for one in list_templates())


def agrees(request: str) -> bool:
    """Whether the proposal is called good, and that is all that is said."""
    return _AGREES.match(request) is not None


def wants_again(request: str) -> bool:
    """Whether the source is to be analysed although it was."""
    return _AGAIN.search(request) is not None


def wants_reset(request: str) -> bool:
    """Whether the proposal is to be made anew, without what was changed in it."""
    return _RESET.match(request) is not None


def clarifying(request: str, *, proposed: bool) -> str | None:
    """The one question to ask where nothing in the request says what is wanted; None where something does."""
    words = [word.lower() for word in _WORD.findall(request)]
    if words in (["go", "on"], ["do", "it"]) or any(word not in _VAGUE for word in words):
        return None
    return ASK_WHAT_ELSE if proposed else ASK_WHAT_FOR


def plain_answer(request: str) -> str | None:
    """The answer to a question about what pipelines are made of; None for everything else. No source is looked at."""
    if not _ASKS.search(request):
        return None
    if _TEMPLATES.search(request):
        return templates_told()
    for word, kind in _ABOUT.items():
        if re.search(rf"\b{word}(?:e?s)?\b", request, re.IGNORECASE):
            return "\n".join(_described(one) for one in plugins(kind))
    return None


def asks_state(request: str) -> bool:
    """Whether only the state is asked for."""
    return _STATE.match(request) is not None or _STATE_TOO.match(request) is not None


def asks_failures(request: str) -> bool:
    """Whether it is asked which files cannot be read, or why."""
    return _FAILURES.search(request) is not None


def wants_applied(request: str) -> bool:
    """Whether the proposal is agreed to, and no collection named: that is all that is said."""
    return _AGREES.match(request) is not None and _ACTS.search(request) is not None


def failures(validation: JsonObject | None, doubts: Sequence[Doubt]) -> str:
    """Which files of the sample cannot be read, why, and what can be done; and what keeps the pipeline back."""
    if validation is None:
        return "Nothing was validated yet: say `validate`."
    categories = validation.get("failure_categories")
    lines = [_category(name, one) for name, one in categories.items()] if isinstance(categories, dict) else []
    blocking = [f"- #{number} {one.message}" for number, one in numbered(doubts) if one.blocks]
    told = ["No file of the sample failed."] if not lines else ["What could not be read of the sample:", *lines]
    return "\n".join([*told, *(["", "What blocks:", *blocking] if blocking else [])])


def how_to_apply(named: str, doubts: Sequence[Doubt] = ()) -> str:
    """What to say to have the proposal applied; `named` where the user has said what to call the collection. Where one
    of these doubts blocks it, what to say first."""
    asked = f"The collection gets its name when it is made: say `apply {named}`." if named else ASK_NAME
    blocked = what_blocks(doubts, named)
    return f"{asked}\n\n{blocked}" if blocked else asked


def what_blocks(doubts: Sequence[Doubt], named: str) -> str:
    """What can be done about the blocking issues among these doubts; empty where there are none."""
    blocking = [number for number, one in numbered(doubts) if one.blocks]
    if not blocking:
        return ""
    first, *more = blocking
    listed = ", ".join(f"#{one}" for one in blocking)
    is_open = "Blocking issues are open" if more else "A blocking issue is open"
    return (
        f"{is_open} ({listed}): say what to change, mend the files and say `analyse again`, settle it by your word "
        f"(`doubt {first} is fine`), or `apply {named or 'NAME'} anyway`."
    )


def _category(name: str, told: JsonValue) -> str:
    """Failures of one kind: how many, what can be done, which files."""
    one = FailureCategory.model_validate(told)
    fix = f"; {one.suggested_fix}" if one.suggested_fix else ""
    more = ", ..." if one.count > len(one.examples) else ""
    return f"- {one.count} {name.replace('_', ' ')}{fix}: {', '.join(one.examples)}{more}"


def _described(info: PluginInfo) -> str:
    return f"- {info.name} ({info.kind}): {info.description}. Good for: {info.good_for}."
