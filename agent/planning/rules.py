"""`RulePlanner`: plans without a model. It knows a few exact commands.

A request is one command, or several joined by "and", "then", commas or new lines. If any part is unknown, no command
runs (`find_unknown_part`): users would take a partial answer for a complete one.
"""

import re
import zoneinfo
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from agent.core.models import JsonObject, Plan, PlanStep, ToolCallRequest
from agent.planning.request import PlanningRequest
from agent.planning.wire import COMPLETION, get_step_action
from agent.tools import ToolSpec

COMMAND_CHARS, LONGEST_COMMAND = 1_000, 4_100
"""Characters. A longer text is not a command; a command to remember may be as long as a memory."""
MAX_COMMANDS = 10
_LEAD = re.compile(r"^(?:(?:hi|hello|hey|hej|please|can you|could you|kan du|then|also|and)\b[\s,]*)+", re.IGNORECASE)
_TAIL = re.compile(r"(?:[\s,]+(?:please|for me|now|tack|\u00e5t mig))?[\s?.!=:;,]*$", re.IGNORECASE)
_SEPARATOR = re.compile(
    r"\s*(?:[,;]\s*(?:and\s+(?:then\s+)?|then\s+|och\s+)?|\s(?:and|och)\s(?:then\s)?|\sthen\s|[.?!]\s|\n)\s*"
)
_FILE = r"(?:[\w.-]+/)*[\w-][\w.-]*\.(?:txt|md|csv|tsv|json|ya?ml|toml|ini|log|py|js|ts|html?|xml|rst|tex|sql|sh)"
_QUOTE = "\"'\u201c\u201d\u2018\u2019"
_WORD = rf"(?!(?:and|och|then)\b)[^\s,;{_QUOTE}]+"
_QUERY = rf"(?:[{_QUOTE}](?P<quoted>[^{_QUOTE}]{{1,200}})[{_QUOTE}]|(?P<query>{_WORD}(?: {_WORD}){{0,5}}))"
"""A search query: quoted, or a few words. A longer text might contain another command."""
_THING = r"(?:(?!\b(?:and|och|then)\b)[^,;?!\n])+"
_MINE = r"(?:(?:in|through|all|of|my|the|our|your|local)\s+)*"
_COMPUTE = re.compile(
    r"(?:what(?:'s| is)|how much is|calculate|compute|vad (?:\u00e4r|blir)|r\u00e4kna ut|hur mycket \u00e4r)\s+",
    re.IGNORECASE,
)
_DECIMAL_COMMA = re.compile(r"(?<![\d.,])(\d+),(\d{1,2}|\d{4,})(?![\d.,])")
_OPERATOR = re.compile(r"\d\s*[-+*/%^]")
_PERCENT = re.compile(r"(?P<rate>\d+(?:\.\d+)?)\s*(?:%|percent)\s+of\s+(?P<base>\d+(?:\.\d+)?)", re.IGNORECASE)
_TIME = re.compile(
    r"(?:what(?:'s| is)? the (?:current )?(?:time|date)|what time is it|what day is (?:it|today)|what is today'?s date|"
    r"(?:the )?current (?:time|date)|time|today'?s date|(?:vad|hur mycket) \u00e4r klockan|vilken dag \u00e4r det)"
    r"(?:\s+(?:right now|now|today|nu|idag))?(?:,?\s+(?:in|i)\s+(?P<places>\S.{0,200})|,\s*(?P<zone>\w+/\w+))?",
    re.IGNORECASE,
)
_PLACE = re.compile(r"[A-Z\u00c0-\u00de]\w+(?:[ _-][A-Z\u00c0-\u00de]\w+){0,2}")
_PLACES = re.compile(r"\s*,\s*(?:(?:and|och)\s+)?(?:(?:in|i)\s+)?|\s+(?:and|or|och)\s+(?:(?:in|i)\s+)?", re.IGNORECASE)
_READ_FILE = re.compile(
    rf"(?:(?:read|show|open|l\u00e4s|visa)\s+(?:me\s+)?(?:the\s+)?(?:file\s+|filen\s+)?)?(?P<path>{_FILE})",
    re.IGNORECASE,
)
_READ_URL = re.compile(
    r"(?:(?:read|fetch|open|get|download|l\u00e4s|h\u00e4mta)\s+(?:me\s+)?(?:the\s+)?(?:(?:web\s?)?page\s+|link\s+|sidan\s+)?)?"
    r"(?P<url>https?://[^\s<>\"'`]+)",
    re.IGNORECASE,
)
_LIST_FILES = re.compile(
    rf"(?:(?:list|show)\s+(?:me\s+)?{_MINE}(?:(?P<pattern>\*\.\w+)\s+)?(?:files|documents|folders)|"
    r"(?:which|what) files (?:are there|do (?:i|you|we) have|are (?P<which>\*\.\w+)))",
    re.IGNORECASE,
)
_SEARCH_FILES = re.compile(
    rf"(?:search|look|grep)\s+{_MINE}(?:files|notes|folders?)\s+for\s+(?:the\s+)?{_QUERY}", re.IGNORECASE
)
_FIND_IN_FILES = re.compile(
    rf"(?:find|look for)\s+(?:the\s+)?{_QUERY}\s+in\s+{_MINE}(?:files|notes|folders?)", re.IGNORECASE
)
_SEARCH_DOCUMENTS = re.compile(
    rf"(?:search|look)\s+(?:{_MINE}(?:documents|collections?)\s+)?for\s+(?:the\s+)?{_QUERY}", re.IGNORECASE
)
_REMEMBER = re.compile(
    r"(?:remember|memorize|kom ih\u00e5g)(?: that| this| to| att)?\s*[:,]?\s+"
    r"(?P<fact>.{1,4000})",
    re.IGNORECASE | re.DOTALL,
)
_RECALL = re.compile(
    r"(?:(?:what do you (?:remember|know)|what did i (?:say|tell you)|vad (?:minns|vet) du)"
    rf"(?:\s+(?:about|of|om)\s+(?P<about>{_THING}))?|"
    rf"(?:do you remember|recall|minns du)\s+(?P<thing>{_THING})|"
    r"(?:what|who|where|when|which|vad|vem|var|n\u00e4r)(?:'s|\s+(?:is|are|was|were|\u00e4r|heter))\s+"
    rf"(?P<own>(?:my|min|mitt|mina)\s+{_THING}))",
    re.IGNORECASE,
)
LISTED_MEMORIES = 20
"""The most memories that `memory_search` returns."""
_LISTING = re.compile(
    r"^\W*(?:please\s+)?(?:(?:can|could) you\s+)?(?:"
    r"(?:what|which)\s+(?:kinds? of\s+)?(?:documents?|collections?|files?)\s+(?:do (?:you|we|i) have|"
    r"are (?:there|here|available|indexed|stored)|can i ask (?:you )?about|(?:do )?you know)"
    r"|(?:list|show(?: me)?)\s+(?:all\s+)?(?:(?:of\s+)?(?:the|my|your|our)\s+)?(?:documents|collections|files))"
    r"(?:\s+(?:here|there|now|in (?:here|total|all)|do you have|you have))?\W*$",
    re.IGNORECASE,
)
APPLY_CHARS = 500
"""Characters. A longer text is not a command."""
_APPLY = re.compile(
    r"^(?:please )?apply(?: (?:it|this|the pipeline))?(?: (?:to|as|into))?(?: the collection)? "
    r"(?P<name>[\w.\"'-]{1,200})(?P<force> (?:anyway|by force))?[.!]?$",
    re.IGNORECASE,
)
_NO_COLLECTIONS = frozenset({"it", "this", "that", "them", "now", "please", "anyway", "again", "the", "everything"})
"""Words after "apply" that name no collection."""
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
"""Well-known places that are not names of time zones."""


@dataclass(frozen=True, slots=True)
class _RuleCall:
    """A tool call of a command."""

    tool: str
    args: JsonObject
    intent: str


class RulePlanner:
    """Plans by rules only; deterministic."""

    def plan(self, request: PlanningRequest, *, has_model: bool = False) -> Plan:
        """A plan with the question's tool calls, all parallel, and a completion if the results need one. An
        incompletely understood question gives no calls.

        A replan repeats no call of an earlier plan."""
        made = [(step.tool, step.args) for step in (*request.failed, *request.happened)]
        made += [(completed.step.tool, completed.step.args) for completed in request.completed]
        allowed = {spec.name: spec for spec in request.catalogue.tools}
        calls = [call for call in read_calls(request.question, allowed) if (call.tool, call.args) not in made]
        calls = calls[: request.room.budgets.max_steps - 1 or 1]
        used_ids = request.used_ids | {completed.step.id for completed in request.completed}
        names = _iterate_free_ids(used_ids)
        steps = [
            PlanStep(
                id=next(names),
                executor="agent",
                action=get_step_action(call.tool),
                tool=call.tool,
                args=call.args,
                intent=call.intent,
                effect=allowed[call.tool].effect,
            )
            for call in calls
        ]
        completed_steps = [completed.step for completed in request.completed]
        plan = Plan(goal=request.question[:300], steps=(*completed_steps, *steps), origin="rules")
        if not steps or len(steps) + len(completed_steps) > 1 or request.needs_completion or has_model:
            plan = plan.model_copy(update={"steps": (*plan.steps, _build_completion(plan.steps, used_ids))})
        version = request.previous.version + 1 if request.previous is not None else 0
        return plan.model_copy(update={"version": version})


def find_tool_calls(text: str, specs: Iterable[ToolSpec]) -> list[ToolCallRequest]:
    """The calls of these tools that a text asks for, in order; [] unless every part of it is a command."""
    allowed = {spec.name: spec for spec in specs}
    return [ToolCallRequest(tool=call.tool, args=call.args) for call in read_calls(text, allowed)]


def read_calls(text: str, allowed: Mapping[str, ToolSpec]) -> list[_RuleCall]:
    """The calls that a text asks for, in order, without duplicates; [] unless every part of it is a command."""
    commands, unknown = _read_commands(text, allowed)
    return [] if unknown else list({(call.tool, str(call.args)): call for call in commands}.values())


def find_unknown_part(text: str, specs: Iterable[ToolSpec]) -> str:
    """The first part of a request that is not a command; "" if every part is one."""
    return _read_commands(text, {spec.name: spec for spec in specs})[1]


def asks_for_listing(question: str) -> bool:
    """Whether a question asks for the list of documents and nothing else."""
    return len(question) <= 200 and _LISTING.match(question) is not None


def _read_commands(text: str, allowed: Mapping[str, ToolSpec]) -> tuple[list[_RuleCall], str]:
    """The calls of the text, and its first part that is not a command, or ""."""
    if "suggest_pipeline" in allowed or "apply_pipeline" in allowed:
        return [call for call in _read_pipeline_command(text) if call.tool in allowed], ""
    whole = text.strip()
    if len(whole) > LONGEST_COMMAND:
        return [], whole[:LONGEST_COMMAND]
    cuts = [(found.start(), found.end()) for found in _SEPARATOR.finditer(whole)]
    cuts = cuts if len(cuts) < MAX_COMMANDS else []  # a text with this many parts is at most one command
    found = _join_commands(whole, cuts, 0, allowed)
    if found is not None:
        return found, ""
    begins, ends = [0, *(end for _, end in cuts)], [*(start for start, _ in cuts), len(whole)]
    parts = [whole[begin:end] for begin, end in zip(begins, ends, strict=True)]
    return [], next((part for part in parts if part and not _read_command(part, allowed)), whole)


def _join_commands(
    text: str, cuts: Sequence[tuple[int, int]], begin: int, allowed: Mapping[str, ToolSpec]
) -> list[_RuleCall] | None:
    """The calls of the text from `begin` on, split at some of the cuts; None if no split gives only
    commands.

    Shorter commands come first: "2+2 and 3*4" holds two. "time in Tokyo and Paris" is one: "Paris" is not a command.
    """
    if not text[begin:].strip():
        return None if begin == 0 else []
    for end, after in (*(cut for cut in cuts if cut[0] >= begin), (len(text), len(text))):
        calls = _read_command(text[begin:end], allowed)
        rest = _join_commands(text, cuts, after, allowed) if calls else None
        if rest is not None:
            return [*calls, *rest]
    return None


def _read_command(text: str, allowed: Mapping[str, ToolSpec]) -> list[_RuleCall]:
    """The calls of one command, limited to the allowed tools."""
    command = _TAIL.sub("", _LEAD.sub("", text.strip(), count=1))
    for reader in _READERS if len(command) <= COMMAND_CHARS else (_read_memory_save,):
        calls = [call for call in reader(command) if call.tool in allowed]
        if calls:
            return calls[:1] if reader is _read_listings else calls
    return []


def _read_calculation(command: str) -> list[_RuleCall]:
    match = _COMPUTE.match(command)
    text = command[match.end() :] if match is not None else command
    # In "round(2,5)" the comma separates arguments.
    text = _DECIMAL_COMMA.sub(r"\1.\2", text) if _OPERATOR.search(text) else text
    percent = _PERCENT.fullmatch(text)
    if percent is not None:
        return [_RuleCall("calculator", {"expression": f"{percent['base']} * {percent['rate']} / 100"}, text)]
    return [_RuleCall("calculator", {"expression": text}, f"calculate {text}")] if is_expression(text) else []


def is_expression(text: str) -> bool:
    """Whether a text is only arithmetic; False for dates (2026-11-20), phone numbers and versions."""
    text = text.strip().rstrip("=?").strip()
    if not re.search(r"\d", text) or not re.fullmatch(r"(?:sqrt|round|abs|log|log10|ln|exp|[\d\s.()+*/%^x-])+", text):
        return False
    if re.search(r"\d\s+[\d.]|\d\.\d*\.", text):  # two adjacent numbers ("1 000"), or dots as in 1.2.3
        return False
    if re.fullmatch(r"[\d\s().+-]*\d{2,4}-\d{1,4}(?:-\d{1,4})+", text) or re.fullmatch(r"\+?[\d\s()-]{7,}", text):
        return False
    return bool(re.search(r"\d\s*\)?\s*(?:[-+*/%^]|\*\*)\s*[-(\s]*(?:\d|sqrt|log|ln|abs)", text) or "(" in text)


def _read_times(command: str) -> list[_RuleCall]:
    """A call for each place, or one for the default zone. A place without a zone goes to the tool unchanged:
    the error "there is no time zone 'Atlantis'" is better than the time of another place."""
    match = _TIME.fullmatch(command)
    if match is None:
        return []
    places = [match["zone"]] if match["zone"] else _PLACES.split(match["places"]) if match["places"] else []
    if not all(_is_place(place) for place in places):
        return []
    zones = dict.fromkeys(map(_find_zone_or_place, places))
    return [_RuleCall("current_time", {"timezone": zone}, f"tell the time in {zone}") for zone in zones] or [
        _RuleCall("current_time", {}, "tell the time")
    ]


def _is_place(text: str) -> bool:
    """Whether a text can be a place: it has a zone, or is capitalised like a name."""
    return _find_zone(text) is not None or _PLACE.fullmatch(text) is not None


def _find_zone(name: str) -> str | None:
    zone_name = name.lower()
    zone = _CITIES.get(zone_name) or _ABBREVIATIONS.get(zone_name) or _list_zones().get(zone_name.replace(" ", "_"))
    return zone or next((zone for zone in _list_zones().values() if zone.lower() == zone_name), None)


def _find_zone_or_place(place: str) -> str:
    """The zone of a place or of its first words ("Tokyo Tower"); the place itself if there is none."""
    words = place.split()
    zones = (_find_zone(" ".join(words[:count])) for count in range(len(words), 0, -1))
    return next((zone for zone in zones if zone is not None), place)


@cache
def _list_zones() -> dict[str, str]:
    """City to zone. The shortest zone name wins (Europe/Stockholm, not posix/Europe/Stockholm)."""
    zones: dict[str, str] = {}
    for zone in sorted(zoneinfo.available_timezones(), key=lambda name: (name.count("/"), name)):
        if "/" in zone and not zone.startswith("Etc/"):
            zones.setdefault(zone.rpartition("/")[2].lower(), zone)
    return zones


def _read_links(command: str) -> list[_RuleCall]:
    match = _READ_URL.fullmatch(command)
    url = _trim_url(match["url"]) if match is not None else ""
    return [_RuleCall("web_fetch", {"url": url}, f"read {url}")] if url else []


def _trim_url(url: str) -> str:
    """The link without the punctuation around it. Keeps brackets that open and close within it."""
    while url and (url[-1] in ".,;:!?]}>" or (url[-1] == ")" and url.count(")") > url.count("("))):
        url = url[:-1]
    return url


def _read_file_command(command: str) -> list[_RuleCall]:
    match = _READ_FILE.fullmatch(command)
    return [_RuleCall("read_file", {"path": match["path"]}, f"read {match['path']}")] if match is not None else []


def _read_listings(command: str) -> list[_RuleCall]:
    listings = []
    if asks_for_listing(command) and "file" not in command.lower():
        listings.append(_RuleCall("list_documents", {}, "list the documents"))
    match = _LIST_FILES.fullmatch(command)
    if match is not None:
        pattern = match["pattern"] or match["which"]
        listings.append(_RuleCall("list_files", {"pattern": pattern} if pattern else {}, "list the files"))
    return listings


def _read_searches(command: str) -> list[_RuleCall]:
    match = _SEARCH_FILES.fullmatch(command) or _FIND_IN_FILES.fullmatch(command)
    if match is not None:
        query = (match["quoted"] or match["query"]).strip()
        return [_RuleCall("search_files", {"query": query}, f"search the files for {query}")]
    match = _SEARCH_DOCUMENTS.fullmatch(command)
    if match is None:
        return []
    query = (match["quoted"] or match["query"]).strip()
    return [_RuleCall("search_knowledge", {"query": query}, f"search the documents for {query}")]


def _read_memory_save(command: str) -> list[_RuleCall]:
    match = _REMEMBER.fullmatch(command)
    fact = match["fact"].strip() if match is not None else ""
    return [_RuleCall("memory_save", {"text": fact}, "remember it")] if fact else []


def _read_memory_search(command: str) -> list[_RuleCall]:
    """A memory search for "what is my favourite colour", or the list of memories for "what do you remember".

    Nobody judges what it finds, so that a memory must hold every word: the favourite colour is not the favourite
    animal."""
    match = _RECALL.fullmatch(command)
    if match is None:
        return []
    about = (match["about"] or match["thing"] or match["own"] or "")[:1000]
    if not about:
        return [_RuleCall("memory_search", {"limit": LISTED_MEMORIES}, "list what is remembered")]
    return [_RuleCall("memory_search", {"query": about, "all_words": True}, f"recall {about[:80]}")]


def _read_pipeline_command(text: str) -> list[_RuleCall]:
    """The call in a room that builds pipelines: "apply NAME" applies the proposal, other text continues it."""
    match = _APPLY.match(" ".join(text.split())) if len(text) <= APPLY_CHARS else None
    if match is None or match["name"].rstrip(".").lower() in _NO_COLLECTIONS:
        return [_RuleCall("suggest_pipeline", {"request": text.strip()[:4000]}, "go on building the pipeline")]
    args: JsonObject = {"collection_name": match["name"].rstrip(".").strip(_QUOTE)}
    if match["force"]:
        args["force"] = True
    return [_RuleCall("apply_pipeline", args, f"apply the pipeline to {args['collection_name']}")]


_READERS: Sequence[Callable[[str], list[_RuleCall]]] = (
    _read_calculation,
    _read_times,
    _read_links,
    _read_file_command,
    _read_listings,
    _read_searches,
    _read_memory_save,
    _read_memory_search,
)


def _build_completion(steps: tuple[PlanStep, ...], taken: frozenset[str] | set[str]) -> PlanStep:
    name = next(name for name in ("answer", *(f"answer{n}" for n in range(2, 100))) if name not in taken)
    return PlanStep(
        id=name,
        executor="litellm",
        action="completion",
        tool=COMPLETION,
        depends_on=tuple(step.id for step in steps),
        intent="answer the user from the results" if steps else "answer the user",
    )


def _iterate_free_ids(taken: frozenset[str] | set[str]) -> Iterator[str]:
    return (f"s{number}" for number in range(1, 1000) if f"s{number}" not in taken)
