"""Calendar parts of mails (RFC 5545): what an invitation shows."""

import re
from collections.abc import Iterator

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
    "STATUS": "Status",
    "CATEGORIES": "Categories",
    "CONTACT": "Contact",
    "RESOURCES": "Resources",
    "COMMENT": "Comment",
    "DESCRIPTION": "Description",
}
_FOLD = re.compile(r"\r?\n[ \t]")
_PARAMETER = re.compile(r';([\w-]+)=("[^"]*"|[^;:"]*)')
_NAME = re.compile(r"([\w-]+)((?:;[\w-]+=(?:\"[^\"]*\"|[^;:\"]*))*):(.*)", re.DOTALL)
_TIME = re.compile(r"(\d{4})(\d{2})(\d{2})(?:T(\d{2})(\d{2})(\d{2})?(Z)?)?")
_ESCAPE = re.compile(r"\\([nN\\;,])")


def iter_entries(text: str) -> Iterator[str]:
    """Yields the entries of a calendar, each as lines like `Location: Quay 3`."""
    lines: list[str] = []
    open_components: list[str] = []
    for line in _FOLD.sub("", text).splitlines():
        match = _NAME.fullmatch(line.strip())
        if match is None:
            continue
        name, parameters, value = match[1].upper(), match[2], match[3]
        if name == "BEGIN":
            open_components.append(value.strip().upper())
        elif name == "END":
            closed = open_components.pop() if open_components else ""
            if closed in _COMPONENTS and lines:
                yield "\n".join(lines)
                lines = []
        elif open_components and open_components[-1] in _COMPONENTS and name in _LABELS and value.strip():
            lines.append(f"{_LABELS[name]}: {_format_value(name, parameters, value)}")
    if lines:  # a calendar that was cut
        yield "\n".join(lines)


def _format_value(name: str, parameters: str, value: str) -> str:
    given = {key.upper(): content.strip('"') for key, content in _PARAMETER.findall(parameters)}
    if name in {"DTSTART", "DTEND", "DUE", "RDATE", "EXDATE"}:
        return ", ".join(_format_time(one.strip(), given.get("TZID", "")) for one in value.split(","))
    if name in {"ORGANIZER", "ATTENDEE"}:
        address = re.sub(r"(?i)^mailto:", "", value.strip())
        return f"{given['CN']} <{address}>" if given.get("CN") else address
    return _ESCAPE.sub(lambda found: "\n" if found[1] in "nN" else found[1], value).strip()


def _format_time(value: str, zone: str) -> str:
    match = _TIME.fullmatch(value)
    if match is None:
        return value
    year, month, day, hour, minute, second, utc = match.groups()
    time = f" {hour}:{minute}" if hour else ""
    time += f":{second}" if second and second != "00" else ""
    place = " UTC" if utc else f" ({zone})" if zone and hour else ""
    return f"{year}-{month}-{day}{time}{place}"
