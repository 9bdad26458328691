"""Builds the ground of a run: facts for the planner, as one block of data.

The ground holds the date, the names of readable files, the collections, and the instructions of foreign servers. It
lists files only for runs with a file tool, and servers only for runs with one of their tools. Other people wrote these
texts, so the block marks them as data, and they have no control characters.
"""

import logging
import re
import unicodedata
import zoneinfo
from collections.abc import Sequence
from datetime import datetime
from itertools import islice

from agent.core.errors import AgentError
from agent.run_context.ground_sources import GroundFile
from agent.run_context.run import Run
from agent.text.terms import extract_query_terms
from agent.tools import UserSource
from agent.tools.catalogue import Catalogue, get_server_name, is_foreign, split_name

log = logging.getLogger(__name__)

MAX_FILES, MAX_COLLECTIONS, MAX_SERVERS = 60, 40, 20
NAME_CHARS, INSTRUCTION_CHARS, MAX_WORDS = 120, 400, 12
_WORD = re.compile(r"[^\W\d_]+")
SHORTEST_WORD = 3
INSTRUCTIONS_HEAD = "What connected servers say about their use:"
COLLECTIONS_HEAD = "Document collections"


async def build_ground(run: Run, catalogue: Catalogue) -> str:
    """The ground of a run as text. Omits a source that fails: the request can proceed without it."""
    question = run.state.understanding.question if run.state.understanding else run.state.prompt
    sources = run.engine.ground
    lines = [_describe_now(run.engine.settings.timezone)]
    if "files" in catalogue.sources:
        try:
            lines += describe_files(await sources.list_files(), question)
        except (OSError, AgentError) as error:
            log.warning("the readable folders cannot be listed: %s", error)
    if "collections" in catalogue.sources:
        try:
            collections = await sources.collections.list_collections(run.state.owner)
            allowed = run.room.collections
            lines += _describe_collections(
                {name: count for name, count in collections.items() if allowed is None or name in allowed}
            )
        except AgentError as error:
            log.warning("the collections cannot be listed: %s", error.message)
    servers = {get_server_name(spec) for spec in catalogue.tools if is_foreign(spec)}
    instructions = sources.list_instructions() if servers else {}
    texts = {name: text for name, text in instructions.items() if name in servers and text.strip()}
    if texts:
        lines.append(INSTRUCTIONS_HEAD)
        listing = sorted(texts.items())[:MAX_SERVERS]
        lines += [f"- {clean_line(name, NAME_CHARS)}: {clean_line(text, INSTRUCTION_CHARS)}" for name, text in listing]
    return "\n".join(lines)


async def find_empty_sources(run: Run) -> frozenset[UserSource]:
    """The sources that hold nothing for this run. One that cannot be listed does not count as empty."""
    sources, state = run.engine.ground, run.state
    empty: set[UserSource] = set()
    try:
        if not await sources.list_files():
            empty.add("files")
        if not any((await sources.collections.list_collections(state.owner)).values()):
            empty.add("collections")
    except (OSError, AgentError) as error:
        log.warning("a source cannot be listed: %s", error)
    try:
        if not await run.engine.memory.list_newest(state.owner, kind=None, limit=1):
            empty.add("memories")
    except AgentError as error:
        log.warning("the memory cannot be listed: %s", error)
    if state.retrieval is None or not state.retrieval.history:
        empty.add("runs")
    return frozenset(empty)


def describe_files(files: Sequence[GroundFile], question: str) -> list[str]:
    """A count of the files and the names of some: first those with words of the question, then the newest."""
    if not files:
        return ["Files: none."]
    query_words = [word for word in extract_query_terms(split_name(question)) if len(word) >= SHORTEST_WORD]

    def rank(file: GroundFile) -> tuple[int, float]:
        path = file.path.lower()  # a substring match is enough to sort up to 20,000 paths
        return (-sum(word in path for word in query_words), -file.modified)

    # A long file name can hold an instruction. list_files returns it as untrusted data.
    ranked = (file for file in sorted(files, key=rank) if _count_words(file.path) <= MAX_WORDS)
    listed = list(islice(ranked, MAX_FILES))
    count = f"{len(files):,}" if len(listed) == len(files) else f"{len(listed)} of {len(files):,}; list_files has all"
    return [f"Files ({count}):", *(f"- {clean_line(file.path, NAME_CHARS)}" for file in listed)]


def _count_words(path: str) -> int:
    """The number of words in the longest part of a path."""
    return max(len(_WORD.findall(part)) for part in path.split("/"))


def clean_line(text: str, limit: int) -> str:
    """Text as one line without control and format characters, at most `limit` characters long."""
    visible = "".join(char if unicodedata.category(char)[0] != "C" else " " for char in text)
    line = " ".join(visible.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def _describe_now(timezone: str) -> str:
    now = datetime.now(zoneinfo.ZoneInfo(timezone))
    return f"Today is {now:%A, %Y-%m-%d} ({timezone})."


def _describe_collections(collections: dict[str, int]) -> list[str]:
    if not collections:
        return [f"{COLLECTIONS_HEAD}: none."]
    lines = [
        f"- {clean_line(name, NAME_CHARS)}: {count:,} document{'s' if count != 1 else ''}"
        for name, count in list(collections.items())[:MAX_COLLECTIONS]
    ]
    more = [f"- and {len(collections) - MAX_COLLECTIONS} more"] if len(collections) > MAX_COLLECTIONS else []
    return [f"{COLLECTIONS_HEAD} ({len(collections)}):", *lines, *more]
