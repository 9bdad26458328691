"""`RulePlanner`: a plan without a model. It knows links, sums, times and files, and says so when it knows nothing."""

import re
import zoneinfo
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from agent.core.models import JsonObject, Plan, PlanStep, ToolCallRequest
from agent.planning.request import PlanningRequest
from agent.planning.wire import COMPLETION, action_of
from agent.tools import ToolSpec

_URL = re.compile(r"https?://(?:\([^\s<>\"'`\]()}]*\)|[^\s<>\"'`\])}])+", re.IGNORECASE)
"""A link. Round brackets that are closed within it belong to it, as in Wikipedia's; one around it does not."""
_EXPRESSION = re.compile(
    r"(?<![\w./:])(?:(?:sqrt|round|abs|log|ln|exp|sin|cos|tan|factorial)\s*\(|[-(\d])[\d\s.()+*/%^-]*"
    r"(?:[-+*/%^]|\*\*)[\d\s.()+*/%^-]*[\d)](?![\w/:-])|(?<!\w)(?:sqrt|factorial|log10|ln)\s*\(\s*[\d.]+\s*\)"
)
_ARITHMETIC = re.compile(r"[\d\s.,()+*/%^-]+")
_DECIMAL_COMMA = re.compile(r"(?<![\d.,])(\d+),(\d{1,2}|\d{4,})(?![\d.,])")
_OPERATOR = re.compile(r"\d\s*[-+*/%^]")
_COMMA_NUMBER = re.compile(r"\d,\d")
_PERCENT = re.compile(
    r"(?<![\d.])(?P<rate>\d+(?:\.\d+)?)\s*(?:%|percent)\s+of\s+(?P<base>\d+(?:\.\d+)?)", re.IGNORECASE
)
_TIME = re.compile(
    r"\b(what(?:'s| is)? the (?:current )?(?:time|date)|what time is it|what day is (?:it|today)|what is today|"
    r"current (?:time|date)|time (?:is it )?in|today'?s date|date today|klockan|vilken dag)\b",
    re.IGNORECASE,
)
_NAME = r"[A-Z\u00c0-\u00de]\w+(?:[ _-][A-Z\u00c0-\u00de]\w+){0,2}"
_PLACE = re.compile(_NAME)
_PLACES = re.compile(rf"\b(?:in|i)\s+({_NAME}(?:(?:\s*,\s*|\s+(?:and|or|och)\s+)(?:(?:and|in|i)\s+)?{_NAME}){{0,9}})")
_FILE = re.compile(
    r"(?<![\w/.:@-])(?:[\w.-]+/)*[\w-][\w.-]*\.(?:txt|md|csv|tsv|json|ya?ml|toml|ini|log|py|js|ts|html?|xml|rst|tex|sql|sh)\b"
)
_LIST = re.compile(r"\b(?:list|show|which|what)\b(?:[^.?!]|\*\.){0,30}\b(?:files|documents|folders?)\b", re.IGNORECASE)
_SEARCH = re.compile(
    r"\b(?:search|find|look|grep)\b(?P<middle>[^?!]{0,300}?)\b(?:files?|documents?|notes|folders?)\b"
    r"(?P<tail>[^?!.]{0,300})",
    re.IGNORECASE,
)
_QUOTE = "\"'\u201c\u201d\u2018\u2019"
_QUOTED = re.compile(f"[{_QUOTE}]([^{_QUOTE}]{{1,200}})[{_QUOTE}]")
APPLY_CHARS = 500
"""A longer text is no command."""
_APPLY = re.compile(
    r"^(?:please )?apply(?: (?:it|this|the pipeline))?(?: (?:to|as|into))?(?: the collection)? "
    r"(?P<name>[\w.\"'-]{1,200})(?P<force> (?:anyway|by force))?[.!]?$",
    re.IGNORECASE,
)
_NO_COLLECTIONS = frozenset({"it", "this", "that", "them", "now", "please", "anyway", "again", "the", "everything"})
"""Behind "apply", these words do not name a collection."""
_SEARCH_FILLER = re.compile(
    r"\b(?:search|find|look|grep|for|in|inside|within|through|my|the|all|our|local|files?|documents?|notes|folders?|"
    r"where|that|which|mentions?|mentioning|contains?|containing|about|of|and|any|every|please|lines?|with)\b",
    re.IGNORECASE,
)
_REMEMBER = re.compile(
    r"^\W*(?:please |can you |could you )?(?:remember|memorize|kom ihåg)(?: that| this| to| att)?\s*[:,]?\s+"
    r"(?P<fact>.{1,4000})$",
    re.IGNORECASE | re.DOTALL,
)
_RECALL = re.compile(
    r"\b(?:what do you (?:remember|know)|do you remember|what did i (?:say|tell you)|recall|minns du|vad minns du|"
    r"vad vet du)\b(?:\s+(?:about|of|that|what|om|att))?(?P<about>.{0,1000})",
    re.IGNORECASE | re.DOTALL,
)
READ_CHARS = 10_000
"""How much of a text the rules read: some patterns take time with the square of its length."""
_ABBREVIATIONS = {"utc": "UTC", "gmt": "GMT"}
_CITIES = {
    "gothenburg": "Europe/Stockholm", "göteborg": "Europe/Stockholm", "malmö": "Europe/Stockholm",
    "sweden": "Europe/Stockholm", "sverige": "Europe/Stockholm", "köpenhamn": "Europe/Copenhagen",
    "munich": "Europe/Berlin", "hamburg": "Europe/Berlin", "frankfurt": "Europe/Berlin", "germany": "Europe/Berlin",
    "barcelona": "Europe/Madrid", "milan": "Europe/Rome", "geneva": "Europe/Zurich", "france": "Europe/Paris",
    "uk": "Europe/London", "england": "Europe/London", "japan": "Asia/Tokyo", "osaka": "Asia/Tokyo",
    "beijing": "Asia/Shanghai", "china": "Asia/Shanghai", "mumbai": "Asia/Kolkata", "delhi": "Asia/Kolkata",
    "india": "Asia/Kolkata", "california": "America/Los_Angeles", "san francisco": "America/Los_Angeles",
    "seattle": "America/Los_Angeles", "boston": "America/New_York", "washington": "America/New_York",
    "miami": "America/New_York", "texas": "America/Chicago",
}  # fmt: skip
"""Well-known places that have no time zone of their own name."""


@dataclass(frozen=True, slots=True)
class _RuleCall:
    """A tool call read off the request: where it stood, and what it does."""

    position: int
    tool: str
    args: JsonObject
    intent: str


class RulePlanner:
    """Plans by rules alone; deterministic."""

    def plan(self, request: PlanningRequest, *, has_model: bool = False) -> Plan:
        """The tool calls that can be read off the question, all at once, then a completion where one is due.

        On a replan, calls that have been made are not made again."""
        made = [(step.tool, step.args) for step in (*request.failed, *request.happened)]
        made += [(completed.step.tool, completed.step.args) for completed in request.completed]
        allowed = {spec.name: spec for spec in request.catalogue.tools}
        found = [call for call in read_calls(request.question, allowed) if (call.tool, call.args) not in made]
        found = found[: request.room.budgets.max_steps - 1 or 1]
        taken = request.used_ids | {completed.step.id for completed in request.completed}
        names = _names(taken)
        steps = [
            PlanStep(
                id=next(names),
                executor="agent",
                action=action_of(call.tool),
                tool=call.tool,
                args=call.args,
                intent=call.intent,
                effect=allowed[call.tool].effect,
            )
            for call in found
        ]
        kept = [completed.step for completed in request.completed]
        plan = Plan(goal=request.question[:300], steps=(*kept, *steps), origin="rules")
        if not steps or len(steps) + len(kept) > 1 or request.needs_completion or has_model:
            plan = plan.model_copy(update={"steps": (*plan.steps, _completion(plan.steps, taken))})
        version = request.previous.version + 1 if request.previous is not None else 0
        return plan.model_copy(update={"version": version})


def tool_calls_for(text: str, specs: Iterable[ToolSpec]) -> list[ToolCallRequest]:
    """The calls of these tools that can be read off a text, in order."""
    allowed = {spec.name: spec for spec in specs}
    return [ToolCallRequest(tool=call.tool, args=call.args) for call in read_calls(text, allowed)]


def read_calls(text: str, allowed: dict[str, ToolSpec]) -> list[_RuleCall]:
    """Every call a rule reads off the text (its first 10,000 characters), once each, in the order of the text."""
    if len(text) > READ_CHARS:
        cut = max(text.rfind(" ", 0, READ_CHARS), text.rfind("\n", 0, READ_CHARS))  # no link cut in half
        text = text[: cut if cut > 0 else READ_CHARS]
    found: list[_RuleCall] = []
    for reader in _READERS:
        found += reader(text)
    unique: dict[tuple[str, str], _RuleCall] = {}
    for call in sorted(found, key=lambda call: call.position):
        if call.tool in allowed:
            unique.setdefault((call.tool, str(call.args)), call)
    return list(unique.values())


def _urls(text: str) -> list[_RuleCall]:
    return [
        _RuleCall(match.start(), "web_fetch", {"url": match[0].rstrip(".,;:!?")}, f"read {match[0].rstrip('.,;:!?')}")
        for match in _URL.finditer(text)
    ]


def _sums(text: str) -> list[_RuleCall]:
    plain = _URL.sub(lambda match: " " * len(match[0]), text)
    plain = _ARITHMETIC.sub(_without_commas, plain)
    found = [
        _RuleCall(match.start(), "calculator", {"expression": f"{match['base']} * {match['rate']} / 100"}, match[0])
        for match in _PERCENT.finditer(plain)
    ]
    plain = _PERCENT.sub(lambda match: " " * len(match[0]), plain)
    for match in _EXPRESSION.finditer(plain):
        expression = match[0].strip()
        if is_expression(expression):
            found.append(_RuleCall(match.start(), "calculator", {"expression": expression}, f"calculate {expression}"))
    return found


def _without_commas(match: re.Match[str]) -> str:
    """Arithmetic with a point for a comma that can only be a decimal one ("17,5 * 240"); nothing where a comma inside a
    number stays: "1,000" means different things in different languages, and what stands after it alone would be another
    sum."""
    text = _DECIMAL_COMMA.sub(r"\1.\2", match[0]) if _OPERATOR.search(match[0]) else match[0]
    return " " * len(text) if _COMMA_NUMBER.search(text) else text


def is_expression(text: str) -> bool:
    """Whether a text is arithmetic and nothing else; a date (2026-11-20), a phone number or a version is not."""
    text = text.strip().rstrip("=?").strip()
    if not re.search(r"\d", text) or not re.fullmatch(r"(?:sqrt|round|abs|log|log10|ln|exp|[\d\s.()+*/%^x-])+", text):
        return False
    if re.search(r"\d\s+[\d.]|\d\.\d*\.", text):  # two numbers side by side ("1 000"), or dots as in 1.2.3
        return False
    if re.fullmatch(r"[\d\s().+-]*\d{2,4}-\d{1,4}(?:-\d{1,4})+", text) or re.fullmatch(r"\+?[\d\s()-]{7,}", text):
        return False
    return bool(re.search(r"\d\s*\)?\s*(?:[-+*/%^]|\*\*)\s*[-(\s]*(?:\d|sqrt|log|ln|abs)", text) or "(" in text)


def _times(text: str) -> list[_RuleCall]:
    """A call for each place named; one for the default zone where none is. A place without a zone goes to the tool as
    it is: an honest "there is no time zone 'Atlantis'" is better than the time of somewhere else."""
    match = _TIME.search(text)
    if match is None:
        return []
    wanted: list[JsonObject] = [{"timezone": zone} for zone in _zones_in(text)]
    return [
        _RuleCall(match.start() + index, "current_time", args, f"tell the time{' in ' + str(zone) if zone else ''}")
        for index, args in enumerate(wanted or [{}])
        for zone in [args.get("timezone", "")]
    ]


def _zones_in(text: str) -> list[str]:
    """The time zones of the places named in the text, in its order."""
    lowered = text.lower()
    zones = _zones()
    named = [zone for zone in zones.values() if zone.lower() in lowered]
    if named:
        return sorted(named, key=lambda zone: lowered.index(zone.lower()))
    named = [zone for name, zone in _ABBREVIATIONS.items() if re.search(rf"\b{re.escape(name)}\b", lowered)]
    for match in _PLACES.finditer(text):
        named += [_zone_of(place.strip()) for place in _PLACE.findall(match[1])]
    return list(dict.fromkeys(named))


def _zone_of(place: str) -> str:
    """The zone of a place, or of what its first words name ("Tokyo Tower"); else the place itself."""
    words = place.split()
    for count in range(len(words), 0, -1):
        name = " ".join(words[:count]).lower()
        zone = _CITIES.get(name) or _ABBREVIATIONS.get(name) or _zones().get(name.replace(" ", "_"))
        if zone is not None:
            return zone
    return place


@cache
def _zones() -> dict[str, str]:
    """City to zone; the shortest name wins (Europe/Stockholm, not posix/Europe/Stockholm)."""
    found: dict[str, str] = {}
    for zone in sorted(zoneinfo.available_timezones(), key=lambda name: (name.count("/"), name)):
        if "/" in zone and not zone.startswith("Etc/"):
            found.setdefault(zone.rpartition("/")[2].lower(), zone)
    return found


def _files(text: str) -> list[_RuleCall]:
    plain = _URL.sub(lambda match: " " * len(match[0]), text)
    return [_RuleCall(m.start(), "read_file", {"path": m[0]}, f"read {m[0]}") for m in _FILE.finditer(plain)]


def _lists(text: str) -> list[_RuleCall]:
    match = _LIST.search(text)
    if match is None or _search_query(text):
        return []
    pattern = re.search(r"\*\.\w+", text)
    args: JsonObject = {"pattern": pattern[0]} if pattern else {}
    return [_RuleCall(match.start(), "list_files", args, "list the files")]


def _searches(text: str) -> list[_RuleCall]:
    query = _search_query(text)
    match = _SEARCH.search(text)
    return (
        [_RuleCall(match.start(), "search_files", {"query": query}, f"search the files for {query}")]
        if match and query
        else []
    )


def _search_query(text: str) -> str:
    match = _SEARCH.search(text)
    if match is None:
        return ""
    quoted = _QUOTED.search(match[0])
    if quoted is not None:
        return quoted[1].strip()
    return " ".join(_SEARCH_FILLER.sub(" ", f"{match['middle']} {match['tail']}").split())[:200]


def _memories(text: str) -> list[_RuleCall]:
    """ "Remember that ..." saves; "what do you remember about ..." searches."""
    asked = _RECALL.search(text)
    if asked is not None:
        about = asked["about"].strip(" ?.!") or text.strip()
        return [_RuleCall(asked.start(), "memory_search", {"query": about[:1000]}, f"recall {about[:80]}")]
    told = _REMEMBER.match(text)
    if told is None or not told["fact"].strip():
        return []
    return [_RuleCall(0, "memory_save", {"text": told["fact"].strip()}, "remember it")]


def _pipelines(text: str) -> list[_RuleCall]:
    """In a room that builds pipelines: "apply NAME" applies what was proposed, everything else goes on building."""
    told = _APPLY.match(" ".join(text.split())) if len(text) <= APPLY_CHARS else None
    if told is None or told["name"].rstrip(".").lower() in _NO_COLLECTIONS:
        return [_RuleCall(0, "suggest_pipeline", {"request": text.strip()[:4000]}, "go on building the pipeline")]
    args: JsonObject = {"collection_name": told["name"].rstrip(".").strip(_QUOTE)}
    if told["force"]:
        args["force"] = True
    return [_RuleCall(0, "apply_pipeline", args, f"apply the pipeline to {args['collection_name']}")]


_READERS: Sequence[Callable[[str], list[_RuleCall]]] = (
    _urls, _sums, _times, _files, _lists, _searches, _memories, _pipelines,
)  # fmt: skip


def _completion(steps: tuple[PlanStep, ...], taken: frozenset[str] | set[str]) -> PlanStep:
    name = next(name for name in ("answer", *(f"answer{n}" for n in range(2, 100))) if name not in taken)
    return PlanStep(
        id=name,
        executor="litellm",
        action="completion",
        tool=COMPLETION,
        depends_on=tuple(step.id for step in steps),
        intent="answer the user from the results" if steps else "answer the user",
    )


def _names(taken: frozenset[str] | set[str]) -> Iterator[str]:
    return (f"s{number}" for number in range(1, 1000) if f"s{number}" not in taken)
