"""What a message of a conversation asks for, as far as rules read it: a source, the next thing; and what is said to one
that they do not read. Pure."""

import re
from collections.abc import Sequence

from agent.builder.adjusting import template_in
from agent.builder.advice import is_number
from agent.knowledge.pipeline import PipelineDAG
from agent.knowledge.templates import list_templates

MOST_TRIED = 8
"""Of what may be a source in one message; each is looked for on the disk."""
_SURE = (
    re.compile(r"\bsrc_\w+"),
    re.compile(r"\bhttps?://[^\s\"'`<>]+", re.IGNORECASE),
    re.compile(r"\bgdrive:[\w-]+"),
    re.compile(r"(?<![^\s\"'`(])(?:~|\.{1,2})?/[^\s\"'`<>]+"),
)
"""Nothing else looks like these: where they are not there, that is to be said."""
_MAYBE = (
    re.compile(r"[\"'`\u201c\u2018]([^\"'`\u201c\u201d\u2018\u2019]{1,200})[\"'`\u201d\u2019]"),
    re.compile(
        r"\b(?:in|from|of|at|under|below|into|folder|directory|path|source is|called)\s+"
        r"(?:(?:the|my|our|this)\s+)?(?:(?:folder|directory|path)\s+)?(?:called\s+)?([^\s\"'`<>]+)",
        re.IGNORECASE,
    ),
    re.compile(r"([^\s\"'`<>]+)\s+(?:folder|directory)\b", re.IGNORECASE),
    re.compile(r"([^\s\"'`<>]+/[^\s\"'`<>]*)"),
    re.compile(r"^\s*([^\s\"'`<>]+)\s*$"),
)
_GOES_ON = re.compile(
    r"\b(?:go on|continue|proceed|index|ingest|read|validate|test|try|check|propose|suggest|proposal|recommend)\b",
    re.IGNORECASE,
)

_WHY = re.compile(r"^\W*(?:why|what|how|when|who|which)\b", re.IGNORECASE)


def sources_named(request: str) -> list[tuple[str, bool]]:
    """What the message may call a source by: ids, addresses, paths; and whether it can be meant as nothing else. The
    surest first."""
    found: dict[str, bool] = {}
    for pattern in _SURE:
        for match in pattern.finditer(request):
            found.setdefault(_bare(match[0]), True)
    for pattern in _MAYBE:
        for match in pattern.finditer(request):
            found.setdefault(_bare(match[1]), False)
    return [(words, sure) for words, sure in found.items() if words][:MOST_TRIED]


def goes_on(request: str) -> bool:
    """Whether the message asks for what is under way anyway: to look, to try, to propose."""
    return _GOES_ON.search(request) is not None and _WHY.match(request) is None


def not_understood(pipeline: PipelineDAG, unread: Sequence[str] = ()) -> str:
    """What is said to a message that no rule reads, or only in part; `unread` are its clauses that none does."""
    chosen = template_in(pipeline)
    numbers = [one.name.replace("_", " ") for one in chosen.parameters if is_number(one.value_schema)] if chosen else []
    others = ", ".join(one.name for one in list_templates())
    first, *more = numbers or ["chunk size"]
    sizes = f"`{first} 500`" + (f"; likewise {', '.join(more)}" if more else "")
    what = " or ".join(f"\u201c{one[:100]}\u201d" for one in unread[:3]) or "that"
    return "\n".join((
        f"No model carries this conversation, and no rule reads {what}. Nothing was changed. What I understand:",
        f"- `use the template NAME`, of {others}",
        f"- `make the chunks smaller`, `bigger chunks`, or exactly, in characters: {sizes}",
        "- `use sentences`, `use headings`, `use even windows`; `no overlap`, `more overlap`",
        "- `skip the docx files`, `only pdf and html files`, `take the docx files too`: by type, not one by one",
        "- `ocr everything`, `no ocr`, `the scans are in German`",
        "- `analyse again`, once the files have changed; `which files fail?`; `start over`, to drop every wish",
        "- `validate`, for the proposal as it stands; `status`, for all that is known and doubtful",
        "- `list the templates`, `which parsers are there?`",
        "- `doubt 3 is fine`, `never mind the languages`: settles what is doubtful, by its number or what it is about",
        "- `apply NAME`, to make the collection NAME; `apply NAME anyway`, over blocking issues",
        "",
        "Several wishes may stand in one message. Single files are left out by moving them out of the source. To "
        "abandon the conversation, use its page, or POST `.../abandon`.",
    ))  # fmt: skip


def _bare(words: str) -> str:
    """Without what belongs to the sentence."""
    return words.strip().strip("\"'`()[]").rstrip(".,;:!?)")
