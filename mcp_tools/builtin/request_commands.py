"""The commands of the plain tools that are understood without a model, in English and Swedish."""

import re
import zoneinfo
from functools import cache

from agent.tools.commands import MINE, QUERY, CommandCall, CommandExample, ToolCommands

LONGEST_FACT = 4_100
"""A command to remember may be as long as a memory."""
_FILE = r"(?:[\w.-]+/)*[\w-][\w.-]*\.(?:txt|md|csv|tsv|json|ya?ml|toml|ini|log|py|js|ts|html?|xml|rst|tex|sql|sh)"
_THING = r"(?:(?!\b(?:and|och|then)\b)[^,;?!\n])+"
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
    rf"(?:(?:list|show)\s+(?:me\s+)?{MINE}(?:(?P<pattern>\*\.\w+)\s+)?(?:files|documents|folders)|"
    r"(?:which|what) files (?:are there|do (?:i|you|we) have|are (?P<which>\*\.\w+)))",
    re.IGNORECASE,
)
_SEARCH_FILES = re.compile(
    rf"(?:search|look|grep)\s+{MINE}(?:files|notes|folders?)\s+for\s+(?:the\s+)?{QUERY}", re.IGNORECASE
)
_FIND_IN_FILES = re.compile(
    rf"(?:find|look for)\s+(?:the\s+)?{QUERY}\s+in\s+{MINE}(?:files|notes|folders?)", re.IGNORECASE
)
_BEFORE_FACT = r"(?:remember|memorize|kom ih\u00e5g)(?: that| this| to| att)?\s*[:,]?"
BEFORE_FACT = re.compile(_BEFORE_FACT, re.IGNORECASE)
"""What stands before a fact in a request to remember it."""
_REMEMBER = re.compile(rf"{_BEFORE_FACT}\s+(?P<fact>.{{1,4000}})", re.IGNORECASE | re.DOTALL)
_RECALL = re.compile(
    r"(?:(?:what do you (?:remember|know)|what did i (?:say|tell you)|vad (?:minns|vet) du)"
    rf"(?:\s++(?:about|of|om)\s++(?P<about>{_THING}))?|"
    rf"(?:do you remember|recall|minns du)\s++(?P<thing>{_THING})|"
    r"(?:what|who|where|when|which|vad|vem|var|n\u00e4r)(?:'s|\s+(?:is|are|was|were|\u00e4r|heter))\s++"
    rf"(?P<own>(?:my|min|mitt|mina)\s++{_THING}))",
    re.IGNORECASE,
)
LISTED_MEMORIES = 20
"""The most memories that `memory_search` returns."""
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


def _read_calculation(command: str) -> list[CommandCall]:
    match = _COMPUTE.match(command)
    text = command[match.end() :] if match is not None else command
    # In "round(2,5)" the comma separates arguments.
    text = _DECIMAL_COMMA.sub(r"\1.\2", text) if _OPERATOR.search(text) else text
    percent = _PERCENT.fullmatch(text)
    if percent is not None:
        return [CommandCall({"expression": f"{percent['base']} * {percent['rate']} / 100"}, text)]
    return [CommandCall({"expression": text}, f"calculate {text}")] if is_expression(text) else []


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


def _read_times(command: str) -> list[CommandCall]:
    """A call for each place, or one for the default zone. A place without a zone goes to the tool unchanged:
    the error "there is no time zone 'Atlantis'" is better than the time of another place."""
    match = _TIME.fullmatch(command)
    if match is None:
        return []
    places = [match["zone"]] if match["zone"] else _PLACES.split(match["places"]) if match["places"] else []
    if not all(_is_place(place) for place in places):
        return []
    zones = dict.fromkeys(map(_find_zone_or_place, places))
    return [CommandCall({"timezone": zone}, f"tell the time in {zone}") for zone in zones] or [
        CommandCall({}, "tell the time")
    ]


def _is_place(text: str) -> bool:
    """Whether a text can be a place: it has a zone, or is capitalised like a name."""
    return _find_zone(text) is not None or _PLACE.fullmatch(text) is not None


def _find_zone(name: str) -> str | None:
    lowercase = name.lower()
    zone = _CITIES.get(lowercase) or _ABBREVIATIONS.get(lowercase) or _list_zones().get(lowercase.replace(" ", "_"))
    return zone or next((zone for zone in _list_zones().values() if zone.lower() == lowercase), None)


def _find_zone_or_place(place: str) -> str:
    """The zone of a place or of its first words ("Tokyo Tower"); the place itself if there is none."""
    words = place.split()
    zones = (_find_zone(" ".join(words[:count])) for count in range(len(words), 0, -1))
    return next((zone for zone in zones if zone is not None), place)


@cache
def _list_zones() -> dict[str, str]:
    """Maps cities to time zones. The shortest zone name wins (Europe/Stockholm, not posix/Europe/Stockholm)."""
    zones: dict[str, str] = {}
    for zone in sorted(zoneinfo.available_timezones(), key=lambda name: (name.count("/"), name)):
        if "/" in zone and not zone.startswith("Etc/"):
            zones.setdefault(zone.rpartition("/")[2].lower(), zone)
    return zones


def _read_links(command: str) -> list[CommandCall]:
    match = _READ_URL.fullmatch(command)
    url = _trim_url(match["url"]) if match is not None else ""
    return [CommandCall({"url": url}, f"read {url}")] if url else []


def _trim_url(url: str) -> str:
    """The link without the punctuation around it. Keeps brackets that open and close within it."""
    while url and (url[-1] in ".,;:!?]}>" or (url[-1] == ")" and url.count(")") > url.count("("))):
        url = url[:-1]
    return url


def _read_file_command(command: str) -> list[CommandCall]:
    match = _READ_FILE.fullmatch(command)
    return [CommandCall({"path": match["path"]}, f"read {match['path']}")] if match is not None else []


def _read_file_listing(command: str) -> list[CommandCall]:
    match = _LIST_FILES.fullmatch(command)
    if match is None:
        return []
    pattern = match["pattern"] or match["which"]
    return [CommandCall({"pattern": pattern} if pattern else {}, "list the files")]


def _read_file_search(command: str) -> list[CommandCall]:
    match = _SEARCH_FILES.fullmatch(command) or _FIND_IN_FILES.fullmatch(command)
    if match is None:
        return []
    query = (match["quoted"] or match["query"]).strip()
    return [CommandCall({"query": query}, f"search the files for {query}")]


def _read_memory_save(command: str) -> list[CommandCall]:
    match = _REMEMBER.fullmatch(command)
    fact = match["fact"].strip() if match is not None else ""
    return [CommandCall({"text": fact}, "remember it")] if fact else []


def _read_memory_search(command: str) -> list[CommandCall]:
    """A memory search for "what is my favourite colour", or the list of memories for "what do you remember".

    Nobody judges what it finds, so that a memory must hold every word: a favourite colour is not a favourite animal.
    """
    match = _RECALL.fullmatch(command)
    if match is None:
        return []
    about = (match["about"] or match["thing"] or match["own"] or "")[:1000]
    if not about:
        return [CommandCall({"limit": LISTED_MEMORIES}, "list what is remembered")]
    return [CommandCall({"query": about, "all_words": True}, f"recall {about[:80]}")]


CALCULATION = ToolCommands(
    _read_calculation, place=10, example=CommandExample("calculate", "what is 17.5 * 240?", place=40)
)
TIME = ToolCommands(
    _read_times, place=20, example=CommandExample("tell the time", "what time is it in Stockholm?", place=50)
)
WEB_PAGE = ToolCommands(
    _read_links, place=30, example=CommandExample("read a web page", "fetch https://example.org", place=30)
)
FILE_READING = ToolCommands(
    _read_file_command, place=40, example=CommandExample("read one", "read notes.txt", place=100)
)
FILE_LISTING = ToolCommands(
    _read_file_listing, place=60, example=CommandExample("list your files", "list files", place=80)
)
FILE_SEARCH = ToolCommands(
    _read_file_search, place=70, example=CommandExample("search them", 'search my files for "invoice"', place=90)
)
REMEMBERING = ToolCommands(
    _read_memory_save,
    place=90,
    longest=LONGEST_FACT,
    example=CommandExample("remember something", "remember that my favourite colour is green", place=60),
)
RECALL = ToolCommands(
    _read_memory_search, place=100, example=CommandExample("recall it", "what is my favourite colour?", place=70)
)
