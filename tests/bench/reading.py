"""How much of each file is read, beside MarkItDown and kreuzberg: `python -m tests.bench.reading [FOLDER ...]`.

Coverage is that of the feature `documents`: over words (cells of workbooks, characters of PDFs), the share that is in
the text. The files are the shared documents where they are, else those our tests make. The table goes to standard
output and into docs/retrieval.md between its marks.
"""

import asyncio
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from gateway.features.documents.engine.ingest.coverage import measure_coverage
from gateway.features.documents.engine.ingest.errors import ParserError
from gateway.features.documents.engine.ingest.file_types import BUILT_IN_TYPES
from gateway.features.documents.engine.ingest.parsers import ParserPool
from gateway.features.documents.engine.search.models import Coverage, FileType, ParserInput
from tests.bench import peer
from tests.bench.ingestion import make_files
from tests.support.processes import ROOT

SHARED = ROOT.parent / "shared" / "data"
FOLDERS = (SHARED / "documents" / "files", SHARED / "faults")
PAGE = ROOT / "docs" / "retrieval.md"
MARKS = ("<!-- bench-reading begins -->", "<!-- bench-reading ends -->")
REQUIREMENTS = peer.find_requirements("ingestion")
PEERS = ("markitdown", "kreuzberg")


class Reading(NamedTuple):
    """What became of a file: its coverage by reader, None where one could not read it."""

    name: str
    coverages: Mapping[str, Coverage | None]
    problem: str = ""


async def read_all(files: Sequence[Path]) -> list[Reading]:
    """Reads the files with our parsers and with the peers."""
    others = {name: await asyncio.to_thread(read_with_peer, name, files) for name in PEERS}
    async with ParserPool(processes=1) as pool:
        return [await read_one(pool, path, others) for path in files]


async def read_one(pool: ParserPool, path: Path, others: Mapping[str, Mapping[str, str]]) -> Reading:
    """Reads one file, and measures the texts of the peers as ours is measured."""
    kind = find_kind(path)
    assert kind is not None
    encoding, problem = "", ""
    coverages: dict[str, Coverage | None] = {}
    try:
        output = await pool.parse(ParserInput(file_path=str(path), file_type=kind))
    except ParserError as error:
        problem = error.code
    else:
        coverages["stepgate"] = output.coverage
        encoding = str(output.metadata.get("encoding", ""))
    data = await asyncio.to_thread(path.read_bytes)
    for name, texts in others.items():
        if str(path) in texts and not problem:
            coverages[name] = measure_coverage(data, kind, [texts[str(path)]], encoding=encoding)
    return Reading(path.name, coverages, problem)


def read_with_peer(name: str, files: Sequence[Path]) -> dict[str, str]:
    """A peer's text by path; nothing where the peer cannot be had."""
    interpreter = sys.executable
    if name == "markitdown":
        if (reason := peer.missing(REQUIREMENTS)) is not None:
            print(f"{name}: {reason}", file=sys.stderr)
            return {}
        interpreter = str(peer.python(REQUIREMENTS))
    script = Path(__file__).with_name("reading_peer.py")
    done = subprocess.run(
        [interpreter, str(script), name],
        input=json.dumps([str(path) for path in files]),
        capture_output=True,
        text=True,
        check=False,
    )
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1]) if done.stdout.strip() else {}
    return found


def find_kind(path: Path) -> FileType | None:
    """The type of a file by its ending."""
    return next((kind for kind in BUILT_IN_TYPES if path.suffix.lower() == f".{kind}"), None)


def format_table(readings: Iterable[Reading]) -> str:
    """The table as Markdown: files that cannot be read by anybody are not in it."""
    lines = [
        "| file | counts | Stepgate | MarkItDown | kreuzberg | left out on purpose |",
        "| --- | --- |" + " ---: |" * 3 + " --- |",
    ]
    shown = [one for one in readings if any(one.coverages.values())]
    for one in shown:
        own = one.coverages.get("stepgate")
        known = next(found for found in one.coverages.values() if found is not None)
        shares = [format_share(one.coverages.get(name)) for name in ("stepgate", *PEERS)]
        omitted = ", ".join(f"{kind} {count}" for kind, count in own.omitted.items()) if own else ""
        lines.append(f"| {one.name} | {known.total:,} {known.unit} | {' | '.join(shares)} | {omitted} |")
    means = []
    for name in ("stepgate", *PEERS):
        found = [share.share if (share := one.coverages.get(name)) is not None else 0.0 for one in shown]
        means.append(f"{sum(found) / max(len(found), 1):.3f}")
    lines.append(f"| mean of {len(shown)} files | | {' | '.join(means)} | |")
    return "\n".join(lines)


def format_share(coverage: Coverage | None) -> str:
    """A share; a dash for a file that was not read."""
    return "-" if coverage is None else f"{coverage.share:.3f}"


def write_page(table: str) -> None:
    """Puts the table into the page of docs, between its marks."""
    text = PAGE.read_text("utf-8")
    begin, end = (text.index(mark) for mark in MARKS)
    PAGE.write_text(f"{text[: begin + len(MARKS[0])]}\n{table}\n{text[end:]}", "utf-8")


async def main(arguments: Sequence[str]) -> None:
    """Print the table, and write it into the page where the shared documents are."""
    with tempfile.TemporaryDirectory() as made:
        folders = [Path(one) for one in arguments] or [folder for folder in FOLDERS if folder.is_dir()]
        places = folders or [make_files(Path(made))]
        found = await asyncio.to_thread(lambda: sorted(path for place in places for path in place.iterdir()))
        files = [path for path in found if find_kind(path) is not None and path.name != "README.md"]
        table = format_table(await read_all(files))
    print(table)
    if folders:
        write_page(table)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
