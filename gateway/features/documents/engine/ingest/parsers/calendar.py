"""Calendar parts of mails (RFC 5545): what an invitation shows."""

import datetime as dt
import html
import quopri
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from agent.text.encodings import decode
from gateway.features.documents.engine.ingest.errors import ParserCorruptError
from gateway.features.documents.engine.ingest.parsers.draft import Draft
from gateway.features.documents.engine.ingest.parsers.web import parse_page

_COMPONENTS = frozenset({"VEVENT", "VTODO", "VJOURNAL"})
_LABELS = {
    "SUMMARY": "Event",
    "DTSTART": "Start",
    "DTEND": "End",
    "DUE": "Due",
    "DURATION": "Duration",
    "RRULE": "Repeats",
    "RDATE": "Also on",
    "EXDATE": "Not on",
    "LOCATION": "Location",
    "URL": "Link",
    "CONFERENCE": "Conference",
    "ORGANIZER": "Organizer",
    "ATTENDEE": "Attendee",
    "RECURRENCE-ID": "Occurrence",
    "STATUS": "Status",
    "CATEGORIES": "Categories",
    "CONTACT": "Contact",
    "RESOURCES": "Resources",
    "COMMENT": "Comment",
    "DESCRIPTION": "Description",
    "X-ALT-DESC": "Description",
    "STYLED-DESCRIPTION": "Description",
}
_PAGES = frozenset({"X-ALT-DESC", "STYLED-DESCRIPTION"})
"""Descriptions in HTML, beside the plain one or in its place (RFC 9073)."""
_INVITES = frozenset({"PUBLISH", "REQUEST"})
"""The methods of calendars that say no more than their entries; others answer them, or take them back (RFC 5546)."""
_FOLD = re.compile(r"\r?\n[ \t]")
_LINE_END = re.compile(r"\r\n?|\n")
"""Not the other characters that Unicode lets end a line: they are text."""
_QUOTED_PRINTABLE = "ENCODING=QUOTED-PRINTABLE"
_PARAMETER = re.compile(r';([\w-]+)=((?:"[^"]*"|[^;:"])*)')
_NAME = re.compile(r"([\w-]+)((?:;[\w-]+=(?:\"[^\"]*\"|[^;:\"])*)*):(.*)", re.DOTALL)
_DAY = re.compile(r"\s*(\d{4})(\d{2})(\d{2})\s*")
_WORD = re.compile(r"\w+")
_TAG = re.compile(r"<[^<>]*>")
_TIME = re.compile(r"(\d{4})(\d{2})(\d{2})(?:T(\d{2})(\d{2})(\d{2})?(Z)?)?")
_UNANSWERED = "NEEDS-ACTION"
_ESCAPE = re.compile(r"\\([nN\\;,])")


class _Property(NamedTuple):
    """A property of an entry: its name, its parameters as they are written, and its value."""

    name: str
    parameters: str
    value: str


def iter_entries(text: str) -> Iterator[str]:
    """Yields the entries of a calendar, each as lines like `Location: Quay 3`."""
    properties: list[_Property] = []
    open_components: list[str] = []
    method: list[str] = []
    for line in _iter_properties(text):
        match = _NAME.fullmatch(line.strip())
        if match is None:
            continue
        name, parameters, value = match[1].upper(), match[2], match[3]
        if name == "BEGIN":
            open_components.append(value.strip().upper())
            if open_components[-1] == "VCALENDAR":  # each of several has a method of its own, or none
                method = []
        elif name == "END":
            closed = open_components.pop() if open_components else ""
            if closed in _COMPONENTS and properties:
                yield "\n".join([*method, *_iter_lines(properties)])
                properties = []
        elif name == "METHOD":
            method = [] if value.strip().upper() in _INVITES else [f"Method: {value.strip()}"]
        elif open_components and open_components[-1] in _COMPONENTS and name in _LABELS and value.strip():
            properties.append(_Property(name, parameters, value))
    if properties:  # a calendar that was cut
        yield "\n".join([*method, *_iter_lines(properties)])


def _iter_lines(properties: Sequence[_Property]) -> Iterator[str]:
    """Yields a line for each property. An entry of one day has one date."""
    first = next((day for one in properties if one.name == "DTSTART" and (day := _read_day(one.value))), None)
    last = next((day for one in properties if one.name == "DTEND" and (day := _read_last_day(one.value, first))), None)
    plain = " ".join(one.value for one in properties if one.name not in _PAGES)
    for name, parameters, value in properties:
        if name == "DTSTART" and first is not None and first == last:
            yield f"Date: {first}"
        elif name == "DTEND" and last is not None:
            if last != first:
                yield f"{_LABELS[name]}: {last}"
        elif name not in _PAGES:
            yield f"{_LABELS[name]}: {_format_value(name, parameters, value)}"
        elif text := _read_page(value, plain):
            yield f"{_LABELS[name]}: {text}"


def _read_day(value: str) -> dt.date | None:
    """A date without a time; None for another value."""
    match = _DAY.fullmatch(value)
    try:
        return dt.date(*map(int, match.groups())) if match is not None else None
    except ValueError:
        return None


def _read_last_day(end: str, first: dt.date | None) -> dt.date | None:
    """The last day of an entry of whole days: the day before its end (RFC 5545, 3.6.1). Some programs write the last
    day of those of one day."""
    day = _read_day(end)
    if day is None or day == dt.date.min:  # no day is before the first
        return day
    return max(day - dt.timedelta(days=1), first or dt.date.min)


def _read_page(value: str, plain: str) -> str:
    """The text of a description in HTML; empty where most of its words are in the plain properties. A page that cannot
    be parsed is its words without the marks."""
    page = _unescape(value)
    try:
        text = "\n".join(block.text for block in parse_page(page, Draft()).blocks)
    except ParserCorruptError:
        text = " ".join(html.unescape(_TAG.sub(" ", page)).split())
    words, plain_words = _WORD.findall(text.casefold()), frozenset(_WORD.findall(_unescape(plain).casefold()))
    return text if 2 * sum(word not in plain_words for word in words) > len(words) else ""


def _iter_properties(text: str) -> Iterator[str]:
    """Yields the properties, a line each. A folded one goes on behind a space, one in quoted-printable (of the older
    vCalendar 1.0) behind a sign of equality."""
    coded: list[str] = []
    for line in _LINE_END.split(_FOLD.sub("", text)):
        if not coded and _QUOTED_PRINTABLE not in line.partition(":")[0].upper():
            yield line
            continue
        coded.append(line)
        if not line.endswith("="):
            yield _decode_property(coded)
            coded = []
    if coded:
        yield _decode_property(coded)


def _decode_property(lines: list[str]) -> str:
    name, _, value = "\n".join(lines).partition(":")
    decoded = decode(quopri.decodestring(value.encode("utf-8", "replace")))
    return f"{name}:" + _LINE_END.sub(r"\\n", decoded.text)


def _format_value(name: str, parameters: str, value: str) -> str:
    given = {key.upper(): content.replace('"', "") for key, content in _PARAMETER.findall(parameters)}
    if name in {"DTSTART", "DTEND", "DUE", "RDATE", "EXDATE", "RECURRENCE-ID"}:
        return ", ".join(_format_time(one.strip(), given.get("TZID", "")) for one in value.split(","))
    if name in {"ORGANIZER", "ATTENDEE"}:
        address = re.sub(r"(?i)^mailto:", "", value.strip())
        answer = given.get("PARTSTAT", _UNANSWERED)
        person = f"{given['CN']} <{address}>" if given.get("CN") else address
        return person if answer.upper() == _UNANSWERED else f"{person} ({answer.lower()})"
    return _unescape(value).strip()


def _unescape(value: str) -> str:
    return _ESCAPE.sub(lambda found: "\n" if found[1] in "nN" else found[1], value)


def _format_time(value: str, zone: str) -> str:
    match = _TIME.fullmatch(value)
    if match is None:
        return value
    year, month, day, hour, minute, second, utc = match.groups()
    time = f" {hour}:{minute}" if hour else ""
    time += f":{second}" if second and second != "00" else ""
    place = " UTC" if utc else f" ({zone})" if zone and hour else ""
    return f"{year}-{month}-{day}{time}{place}"
