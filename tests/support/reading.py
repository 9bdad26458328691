"""Reading a made-up site, or files, into the collection `work` of a real library; and what is in it then."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from agent.core.errors import EmbedderError
from agent.core.vector_space import VectorSpace
from agent.llm.embedder import Embedded
from gateway.features.documents.engine.ingest.library import IngestReport
from gateway.features.documents.engine.ingest.pipeline import PipelineDAG
from gateway.features.documents.engine.search.models import ParserInput
from gateway.features.documents.engine.search.naming import make_vector_set_name
from tests.support.engine import Bench, engine_bench
from tests.support.sources import REQUEST, Site


class Letters:
    """An embedder that counts letters, and can be down."""

    def __init__(self) -> None:
        self.space = VectorSpace("letters", 8)
        self.down = False
        self.calls = 0

    async def embed(self, texts: Sequence[str]) -> Embedded:
        self.calls += 1
        if self.down:
            raise EmbedderError("the endpoint cannot be reached", agent_id="embedder")
        return Embedded(
            self.space, tuple(tuple(float(text.count(letter) + 1) for letter in "aeioustr") for text in texts)
        )

    async def aclose(self) -> None:
        """Nothing to close."""


@asynccontextmanager
async def library(tmp_path: Path, site: Site | None = None, embedder: Letters | None = None) -> AsyncIterator[Bench]:
    async with engine_bench(tmp_path / "data", None, embedder=embedder) as bench:
        if site is not None:
            bench.library._connectors = {**bench.library._connectors, "web": site}
        yield bench


async def read(bench: Bench, pipeline: PipelineDAG | None = None, **options: Any) -> IngestReport:
    return await bench.library.ingest("local", "work", REQUEST, pipeline=pipeline, **options)


def counts(report: IngestReport) -> tuple[int, int, int, int]:
    return report.read, report.unchanged, report.removed, len(report.skipped)


async def state(bench: Bench) -> dict[str, list[tuple[Any, ...]]]:
    """Every row that belongs to the collections' content."""
    tables = ("documents", "chunks", "vectors")
    return {
        table: sorted(
            tuple(row[1:]) if table == "chunks" else tuple(row)
            for row in await bench.store.database.read(
                lambda db, table=table: db.execute(f"SELECT * FROM {table}").fetchall()  # type: ignore[misc]
            )
        )
        for table in tables
    }


async def chunk_rows(bench: Bench) -> list[tuple[str, str]]:
    return await bench.store.database.read(
        lambda db: db.execute("SELECT document_id, chunk_id FROM chunks ORDER BY chunk_id").fetchall()
    )


async def documents(bench: Bench) -> dict[str, str]:
    return {one.name: one.document_id for one in await bench.library.list_documents("local", "work")}


async def consistent(bench: Bench) -> bool:
    """Whether the indexes hold exactly the passages of the documents."""
    listed = [chunk for one in await bench.library.list_documents("local", "work") for chunk in one.chunk_ids]
    indexed = [chunk for _, chunk in await chunk_rows(bench)]
    items = await bench.library._vectors.list_items(make_vector_set_name("local", "work"), owner="local", limit=10_000)
    return sorted(listed) == indexed and {item.id for item in items} <= set(listed)


def holds(wanted: ParserInput, text: str) -> bool:
    return text in Path(wanted.file_path).read_text()


def change(wanted: ParserInput, text: str) -> None:
    Path(wanted.file_path).write_text(text)


async def texts(bench: Bench) -> list[Any]:
    return await bench.library._lexical.sample("work", owner="local", limit=100)


def folder_of(tmp_path: Path, count: int) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    for number in range(count):
        (folder / f"{number:03}.md").write_text(f"# Note {number}\n\nThis is note {number}.")
    return folder
