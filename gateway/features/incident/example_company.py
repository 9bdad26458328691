"""Loads the example company, for `stepgate corpus example` and `POST /v1/corpus/example`."""

import asyncio
import tempfile
from pathlib import Path
from typing import NamedTuple

from gateway.bootstrap import Stepgate
from gateway.features.documents.engine.ingest.corpus_index import BuildReport
from gateway.features.documents.engine.ingest.corpus_mapping import load_mapping
from gateway.features.documents.engine.ingest.corpus_prepare import PrepareReport, prepare
from gateway.features.documents.engine.ingest.ingest_report import IngestReport
from gateway.features.documents.parts import get_documents
from gateway.features.incident.engine.collection_names import EXAMPLE_COLLECTIONS
from gateway.packaged_files import PACKAGE_ROOT

EXAMPLE = PACKAGE_ROOT / "config" / "examples"
TABLES = ("tickets", "incidents")


class ExampleReport(NamedTuple):
    """What was loaded: the documents that were read, and the corpora that were prepared and built."""

    read: IngestReport
    prepared: tuple[PrepareReport, ...]
    built: tuple[BuildReport, ...]


async def load_example_company(stepgate: Stepgate, owner: str, folder: Path | None = None) -> ExampleReport:
    """Loads policies, runbooks and tickets into `example-company`, tickets and incidents into `example-issues`.

    Unchanged documents are skipped. The prepared corpora stay in `folder`, if one is given. Raises `ConflictError`
    while another writer holds one of the collections, and `StoreError`.
    """
    documents = get_documents(stepgate)
    knowledge, issues = EXAMPLE_COLLECTIONS
    read = await documents.library.ingest(owner, knowledge, EXAMPLE / "company" / "documents")
    with tempfile.TemporaryDirectory(prefix="stepgate-corpus-") as temporary:
        into = folder if folder is not None else Path(temporary)
        prepared = tuple([await asyncio.to_thread(_prepare, name, into) for name in TABLES])
        paths = [report.path for report in prepared]
        built = (
            await documents.corpus.build(owner, knowledge, paths[:1]),
            await documents.corpus.build(owner, issues, paths),
        )
    return ExampleReport(read, prepared, built)


def _prepare(name: str, into: Path) -> PrepareReport:
    mapping = load_mapping(EXAMPLE / "mappings" / f"{name}.yaml")
    return prepare(mapping, [EXAMPLE / "company" / f"{name}.csv"], into / f"{name}.jsonl")
