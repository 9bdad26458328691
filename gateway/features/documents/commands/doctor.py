"""The findings of `stepgate doctor` about documents."""

import asyncio
from collections.abc import AsyncIterator

from agent.core.errors import StoreError
from gateway.bootstrap import Stepgate
from gateway.cli.doctor_finding import DoctorFinding
from gateway.features.documents.engine.ingest.library import Library
from gateway.features.documents.engine.ingest.parsers import ocr
from gateway.features.documents.parts import get_documents

_OUTGROWN = (
    "on PostgreSQL with pgvector 0.8 or later, run CREATE EXTENSION vector in the database and restart; else start a "
    "Qdrant server, set AGENT_QDRANT_URL, and run `stepgate collections reindex NAME`; searches by words are not "
    "affected"
)


async def check_documents(stepgate: Stepgate) -> AsyncIterator[DoctorFinding]:
    """Yields collections that are too large for their index, the store of uploads, and OCR. Raises `StoreError`."""
    library = get_documents(stepgate).library
    for name, count in (await library.list_outgrown()).items():
        detail = f"{count:,} vectors, more than are compared one by one within 10 ms"
        yield DoctorFinding(f"collection {name}", False, detail, _OUTGROWN, fatal=False)
    if stepgate.settings.objects_url is not None:
        yield await _check_objects(library)
    yield _check_ocr()


async def _check_objects(library: Library) -> DoctorFinding:
    """Writes into the store of uploads: that it can be listed does not say so."""
    try:
        where = await asyncio.to_thread(library.uploads.objects.check, writes=True)
    except StoreError as error:
        without = "start it, or correct AGENT_OBJECTS_*; until then nothing can be uploaded, and no upload opened"
        return DoctorFinding("objects", False, error.message, without)
    return DoctorFinding("objects", True, where)


def _check_ocr() -> DoctorFinding:
    languages = ocr.list_installed_languages()
    if not languages:
        return DoctorFinding(
            "ocr", False, "tesseract is not installed: scanned pages are not read", ocr.install_hint("eng"), fatal=False
        )
    return DoctorFinding("ocr", True, f"tesseract reads scanned pages, in {', '.join(sorted(languages))}")
