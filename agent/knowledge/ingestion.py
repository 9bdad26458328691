"""`Ingestion`: everything at a source, read into a collection. One walk, incremental, with a report.

What has not changed is skipped: by the version its source tells, else by its checksum, and only if the same pipeline
would read it. What has changed is replaced, what is gone is removed. A document that cannot be read stops nothing.
"""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from agent.core.errors import AgentError, StoreError
from agent.knowledge.connectors.port import Connector, Fetched, Missed
from agent.knowledge.documents import Document
from agent.knowledge.local_files import TYPES
from agent.knowledge.models import ConnectorInput, ConnectorOutput, FileType
from agent.knowledge.pipeline_check import left_out
from agent.knowledge.shelf import Shelf
from agent.knowledge.workshop import Made, Workshop

Progress = Callable[[str, int, int | None], None]
"""Told of each document: its name, how many are done, how many there are (None while that is not known)."""

ASKS: Mapping[str, str] = {
    "ERR_CONNECTOR_AUTH": "give another credential that may read it (credentials_id, --credentials), or leave it out",
    "ERR_PARSER_ENCRYPTED": "give the password of a PDF (password_id, --password-file), or leave it out",
    "ERR_CONNECTOR_FAILED": "read it again later",
    "ERR_CONNECTOR_REFUSED": "ask the site's owner for another way to it, or give the address it leads to as a source",
    "ERR_TIMEOUT": "give its parser more time (timeout_s), or leave it out",
}
"""What would help a document that was skipped, by the code of its failure."""
AHEAD = 3
"""Files being read while one is put in its place: enough to keep the parsers' processes busy."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """A document that was not read, and why."""

    source: str
    code: str
    reason: str

    @property
    def ask(self) -> str:
        """What to ask whoever is responsible for; empty where there is nothing to be had."""
        return ASKS.get(self.code, "")


@dataclass(slots=True)
class IngestReport:
    """What became of a source. `left_out` counts the files of types that the pipeline leaves out on purpose."""

    collection: str
    read: int = 0
    unchanged: int = 0
    removed: int = 0
    left_out: int = 0
    chunks: int = 0
    seconds: float = 0.0
    skipped: list[Skipped] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    template: str = ""
    embedder: str = ""

    @property
    def by_reason(self) -> dict[str, int]:
        """How many documents were skipped, by code."""
        return dict(Counter(one.code for one in self.skipped))

    @property
    def done(self) -> int:
        """How many documents were met so far."""
        return self.read + self.unchanged + self.left_out + len(self.skipped)

    @property
    def why_nothing(self) -> str:
        """Why nothing was read, as a sentence; empty where something was, or was before."""
        if self.read or self.unchanged:
            return ""
        if self.skipped:
            return "nothing was read: every document that was found was skipped"
        if self.left_out:
            return "nothing was read: every document that was found is of a type that the pipeline leaves out"
        known = ", ".join(sorted(TYPES))
        return f"nothing was read: there is no file that is not hidden or ignored (read are {known})"

    @property
    def so_far(self) -> str:
        """What a reading that broke off leaves behind, and how it goes on."""
        return (
            f"{self.read} document{'s' if self.read != 1 else ''} had been read into {self.collection!r} by then and "
            "can be searched; everything else there is as it was. Read the same source again, and it goes on from there"
        )


@dataclass(frozen=True, slots=True)
class _Reading:
    """A document that is being read, and what it is to replace."""

    found: Fetched
    output: ConnectorOutput
    file_type: FileType
    known: Document | None
    task: "asyncio.Task[Made]"


@dataclass(slots=True)
class Ingestion:
    """One walk. `begun` is awaited once the source has answered."""

    request: ConnectorInput
    connector: Connector
    workshop: Workshop
    shelf: Shelf
    workspace: Path
    clock: Callable[[], float]
    report: IngestReport
    begun: Callable[[], Awaitable[None]]
    progress: Progress = lambda _, __, ___: None
    _met: set[str] = field(default_factory=set)
    _ahead: "deque[_Reading]" = field(default_factory=deque)

    async def run(self, known: Mapping[str, Document]) -> None:
        """Walk to the end. Raises `ConnectorError` when the source itself cannot be had, and `StoreError`; what was
        done by then stays done."""
        versions = {
            source: document.version if self._is_current(document) else "" for source, document in known.items()
        }
        total: int | None = None
        walk = self.connector.fetch(self.request, self.workspace, versions)
        try:
            async with closed(walk):
                async for found in walk:
                    await self.begun()
                    if isinstance(found, Missed):
                        self._miss(found)
                        continue
                    if found.source in self._met:  # a page that two links lead to is one document
                        continue
                    total = found.total if found.total is not None else total
                    self.progress(found.name, self.report.done, total)
                    await self._take(found, known.get(found.source))
            await self._catch_up(0)
        finally:
            await self._stop()
        await self.begun()
        self.progress("", self.report.done, self.report.done)
        for source in sorted(known.keys() - self._met):
            if self.connector.covers(self.request, source):
                await self.shelf.remove(known[source])
                self.report.removed += 1

    def _miss(self, missed: Missed) -> None:
        """What cannot be had now keeps its passages; what is gone is left to be removed."""
        if not missed.gone:
            self._met.add(missed.source)
        self._skip(missed.name, missed.error)

    async def _take(self, found: Fetched, known: Document | None) -> None:
        """One document: unchanged, or read and put in the place of what was there, or skipped."""
        if found.file_type in left_out(self.workshop.pipeline):
            self.report.left_out += 1
            return
        if found.file_type is None or self.workshop.route(found.file_type) is None:
            kind = found.file_type or Path(found.name).suffix or "files without an ending"
            self.report.skipped.append(Skipped(found.name, "ERR_PARSER_UNSUPPORTED", f"{kind} is not read"))
            return
        self._met.add(found.source)
        if known is not None and (found.output is None or self._is_unchanged(known, found.output)):
            await self._keep(known, found)
            return
        if found.output is None:
            # The version was of a document that is not there: said by a connector that is at odds with itself.
            self.report.skipped.append(Skipped(found.name, "ERR_CONNECTOR_FAILED", "nothing was fetched; try again"))
            return
        path = found.output.file_path
        reading = asyncio.create_task(self.workshop.read(path, found.file_type, self.request.source_type))
        self._ahead.append(_Reading(found, found.output, found.file_type, known, reading))
        # What was downloaded may be gone with the next step of the walk; a file that lies where it lay is not.
        await self._catch_up(0 if Path(path).is_relative_to(self.workspace) else AHEAD)

    async def _catch_up(self, ahead: int) -> None:
        """Put documents in their place, in the order of the walk, until so many are being read."""
        while len(self._ahead) > ahead:
            one = self._ahead[0]
            try:
                made = await one.task
            except StoreError:
                raise
            except AgentError as error:
                self._skip(one.found.name, error, called=Path(one.output.file_path).name)
            else:
                await self._put(one, made)
            self._ahead.popleft()

    async def _stop(self) -> None:
        """Leave nothing running behind a walk that broke off."""
        tasks = [one.task for one in self._ahead]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
            for task in tasks:
                if not task.cancelled():
                    task.exception()  # seen; the first one is raised already

    async def _put(self, one: "_Reading", made: Made) -> None:
        found, output, file_type, known = one.found, one.output, one.file_type, one.known
        document = made.document(
            collection=self.report.collection,
            source=found.source,
            name=found.name,
            file_type=file_type,
            source_type=self.request.source_type,
            size=output.file_size_bytes,
            url=found.url,
            at=self.clock(),
        )
        if document.checksum == output.checksum:
            document = replace(document, version=found.version)
        else:  # the bytes that were read count; without a version the next walk looks again
            self.report.notes.append(f"{found.name}: it changed while it was read")
        placed = await self.shelf.place(document, made.chunks, known, vectors=self._vectors(file_type))
        self.report.read += 1
        self.report.chunks += len(made.chunks)
        self.report.embedder = placed.embedder or self.report.embedder
        self._note(
            *(f"{found.name}: {uncertainty}" for uncertainty in made.parsed.uncertainties), self.shelf.no_vectors
        )

    async def _keep(self, known: Document, found: Fetched) -> None:
        """An unchanged document, perhaps under a new version."""
        self.report.unchanged += 1
        if found.version and found.version != known.version:
            await self.shelf.documents.put(
                self.shelf.hold.owner, self.report.collection, replace(known, version=found.version)
            )

    def _is_unchanged(self, known: Document, output: ConnectorOutput) -> bool:
        return known.checksum == output.checksum and self._is_current(known)

    def _is_current(self, known: Document) -> bool:
        return self.workshop.is_current(known, embedder=self.shelf.makes_vectors)

    def _vectors(self, file_type: FileType) -> bool:
        way = self.workshop.route(file_type)
        return way is not None and way.wants_vectors

    def _skip(self, name: str, error: AgentError, called: str = "") -> None:
        """`called` is what the error may call it: a download has a name of ours where it lies."""
        said = error.message.replace(called, name) if called and called not in name else error.message
        self.report.skipped.append(Skipped(name, error.code, said))

    def _note(self, *notes: str) -> None:
        self.report.notes += [note for note in dict.fromkeys(notes) if note and note not in self.report.notes]


@asynccontextmanager
async def closed(walk: AsyncIterator[object]) -> AsyncIterator[None]:
    """Let a walk that is left early clean up now, not when the garbage is collected."""
    try:
        yield
    finally:
        if isinstance(walk, AsyncGenerator):
            await walk.aclose()
