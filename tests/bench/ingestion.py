"""How fast files become text, by type, beside MarkItDown: `python -m tests.bench.ingestion [FOLDER]`.

The files are the shared documents where they are (`../shared/data/documents`), else those our tests make. Ours are read
by the worker process that every ingestion uses, with pages, boxes and headings, and cut into passages; MarkItDown reads
them in one process of its own, without limits on what a file may do to it. Each file three times, the quickest counts;
files that one of the two cannot read are left out for both. `python -m tests.bench.ingestion ours` asks for no peer.
"""

import asyncio
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from gateway.features.documents.engine.ingest.chunkers import StructureChunker
from gateway.features.documents.engine.ingest.errors import ParserError
from gateway.features.documents.engine.ingest.file_types import BUILT_IN_TYPES
from gateway.features.documents.engine.ingest.parsers import ParserPool
from gateway.features.documents.engine.search.models import FileType, ParserInput
from tests.bench import peer
from tests.bench.report import Row
from tests.support import documents

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data" / "documents" / "files"
REQUIREMENTS = Path(__file__).with_name("ingestion-peer-requirements.txt")
ROUNDS = 3


@dataclass(frozen=True)
class Reading:
    """One file: its quickest reading in seconds, and the pages it has (1 where its type knows none)."""

    kind: str
    size: int
    seconds: float
    pages: int


@dataclass(frozen=True)
class Side:
    """One contender: its readings by path, and its peak memory in KB; or why there are none."""

    name: str
    readings: dict[str, Reading]
    peak_kb: float
    missing: str = ""


async def ours(files: Sequence[Path]) -> Side:
    """Our reading of the files, by one worker."""
    readings: dict[str, Reading] = {}
    peak = 0.0
    async with ParserPool(processes=1) as pool:
        for path in files:
            kind = _kind(path)
            if kind is None:
                continue
            wanted = ParserInput(file_path=str(path), file_type=kind)
            best, pages = 1e9, 1
            try:
                for _ in range(ROUNDS):
                    start = perf_counter()
                    parsed = await pool.parse(wanted)
                    await asyncio.to_thread(StructureChunker().chunk, parsed)
                    best, pages = min(best, perf_counter() - start), max(1, parsed.total_pages)
            except ParserError as error:
                print(f"{path.name}: {error.code}", file=sys.stderr)
                continue
            readings[str(path)] = Reading(kind, path.stat().st_size, best, pages)
            peak = max(peak, *(_peak_kb(worker._process.pid) for worker in pool._workers))
    return Side("Stepgate", readings, peak)


async def theirs(files: Sequence[Path], pages: dict[str, Reading]) -> Side:
    """MarkItDown's reading, its pages counted as ours."""
    missing = await asyncio.to_thread(peer.missing, REQUIREMENTS)
    if missing is not None:
        return Side("MarkItDown", {}, 0.0, missing)
    process = await asyncio.create_subprocess_exec(
        str(peer.python(REQUIREMENTS)), str(Path(__file__).with_name("ingestion_peer.py")),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    out, _ = await process.communicate(json.dumps([[str(path) for path in files], ROUNDS]).encode())
    told = json.loads(out.splitlines()[-1])
    readings = {
        path: Reading(pages[path].kind, pages[path].size, seconds, pages[path].pages)
        for path, (seconds, _size) in told["files"].items()
        if path in pages
    }
    return Side("MarkItDown", readings, float(told["peak_kb"]))


async def both(folder: Path | None, *, with_peer: bool) -> tuple[Side, Side]:
    """The two sides, on the files that both can read."""
    with tempfile.TemporaryDirectory() as made:
        place = folder or (SHARED if SHARED.is_dir() else make_files(Path(made)))
        files = await asyncio.to_thread(lambda: sorted(path for path in place.iterdir() if path.is_file()))
        own = await ours(files)
        other = await theirs(files, own.readings) if with_peer else Side("MarkItDown", {}, 0.0, "it was not asked for")
    if not other.missing:
        own = Side(own.name, {path: one for path, one in own.readings.items() if path in other.readings}, own.peak_kb)
    return own, other


def rate(side: Side, kind: str) -> tuple[float, float]:
    """Pages and megabytes a second of one type."""
    held = [one for one in side.readings.values() if one.kind == kind]
    seconds = sum(one.seconds for one in held) or 1e9
    return sum(one.pages for one in held) / seconds, sum(one.size for one in held) / 1e6 / seconds


async def rows() -> list[Row]:
    """Lines of the whole table: pages of PDF a second, as many as the peer's at least."""
    own, other = await both(None, with_peer=True)
    against: float | str = other.missing or rate(other, "pdf")[0]
    aim = round(against, 1) if isinstance(against, float) else 10.0
    pages = rate(own, "pdf")[0]
    return [Row("9 pages of PDF read a second", "/s", pages, aim, {other.name: against}, at_least=True)]


def _peak_kb(pid: int) -> float:
    """The most memory a process has held (Linux)."""
    status = Path(f"/proc/{pid}/status").read_text("utf-8")
    return float(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:")))


def make_files(folder: Path) -> Path:
    """A folder of files of our own, where the shared ones are not."""
    lines = [[documents.Words(f"Line {at} of a page about valves.", y=72.0 + 14 * at) for at in range(45)]] * 20
    table = [["part", "price"], *([f"valve {n}", str(n)] for n in range(200))]
    text = "A paragraph about valves, gardens and refunds. " * 8
    (folder / "pages.pdf").write_bytes(documents.pdf(*lines))
    (folder / "report.docx").write_bytes(documents.word(rows=table, paragraphs=[text] * 100))
    (folder / "talk.pptx").write_bytes(documents.slides([f"Slide {n}" for n in range(30)], rows=table[:10]))
    (folder / "prices.xlsx").write_bytes(documents.book({f"sheet {n}": table for n in range(5)}))
    (folder / "page.html").write_text(f"<h1>Valves</h1>{f'<p>{text}</p>' * 200}", "utf-8")
    (folder / "prices.csv").write_text("\n".join(",".join(row) for row in table), "utf-8")
    return folder


def _kind(path: Path) -> FileType | None:
    ending = path.suffix.lower().lstrip(".").replace("htm", "html").replace("htmll", "html")
    return next((kind for kind in BUILT_IN_TYPES if kind == ending), None)


async def main(arguments: Sequence[str]) -> None:
    """Print the table."""
    folder = next((Path(one) for one in arguments if one != "ours"), None)
    own, other = await both(folder, with_peer="ours" not in arguments)
    heads = f"{'type':<6}{'files':>6}{'pages':>7}{'MB':>8}"
    print(f"{heads}{'pages/s':>10}{'MB/s':>8}   {'peer: pages/s':>14}{'MB/s':>8}{'ratio':>8}")
    for kind in sorted({one.kind for one in own.readings.values()}):
        held = [one for one in own.readings.values() if one.kind == kind]
        pages, size = rate(own, kind)
        shown = f"{kind:<6}{len(held):>6}{sum(one.pages for one in held):>7}{sum(one.size for one in held) / 1e6:>8.2f}"
        line = f"{shown}{pages:>10.1f}{size:>8.2f}"
        if not other.missing:
            their_pages, their_size = rate(other, kind)
            line += f"   {their_pages:>14.1f}{their_size:>8.2f}{pages / their_pages:>8.2f}"
        print(line)
    print(f"\npeak memory: Stepgate's worker {own.peak_kb / 1024:.0f} MB", end="")
    print(f"; no peer: {other.missing}" if other.missing else f"; MarkItDown {other.peak_kb / 1024:.0f} MB")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
