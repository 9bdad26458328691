"""Tools that look at a source from outside: counts, and a sample of names."""

import hashlib
from typing import Literal

from pydantic import Field

from agent.core.models import DeferredModel
from agent.tools import ToolContext, TypedTool
from agent.tools.tool import In, Out
from gateway.features.documents.engine.search.models import FileType
from gateway.features.pipeline_builder.engine.subagents.source_files import Listing, SourceFile, SourceFiles

MAX_EXTENSIONS = 100
OTHER = "(other)"
"""Counts all files beyond the most frequent extensions."""


class SourceTool(TypedTool[In, Out]):
    """The base of the tools over the files of a source, whose names and contents come from outside."""

    tainted = True

    def __init__(self, files: SourceFiles) -> None:
        super().__init__()
        self._files = files


class EnumerateInput(DeferredModel):
    """No parameters."""


class ExtensionCount(DeferredModel):
    """The files of one extension; sizes in bytes."""

    count: int
    total_size_bytes: int
    smallest: int
    largest: int
    readable: bool = Field(description="whether files of this type can be read into a collection")


class EnumerateOutput(DeferredModel):
    """What is at the source. `note` says why the listing is incomplete, if it is."""

    total_files: int
    total_size_bytes: int
    by_extension: dict[str, ExtensionCount]
    by_size: dict[str, int]
    unreadable: int = 0
    unreadable_examples: list[str] = Field(default_factory=list)
    note: str = ""


class EnumerateFilesTool(SourceTool[EnumerateInput, EnumerateOutput]):
    """Counts everything; names only unreadable entries."""

    name = "enumerate_files"
    description = "Count all files of the source, by extension and by size."
    timeout_s = 240.0

    async def run(self, args: EnumerateInput, context: ToolContext) -> EnumerateOutput:
        return _to_output(await self._files.list_files())


class SampleInput(DeferredModel):
    """Which files, and how many."""

    count: int = Field(default=5, ge=1, le=50, description="how many files at most")
    extension: str = Field(default="", max_length=20, description="ending with its dot, e.g. .pdf; empty for all")
    min_size: int = Field(default=0, ge=0, description="bytes")
    max_size: int | None = Field(default=None, ge=0, description="bytes")
    pick: Literal["random", "largest", "smallest", "spread"] = Field(
        default="random", description="spread: from the smallest to the largest in even steps"
    )
    seed: int = Field(default=0, description="the same seed picks the same files")


class SampledFile(DeferredModel):
    """One file."""

    file: str
    extension: str
    size_bytes: int


class SampleOutput(DeferredModel):
    """The sample, and how many files matched."""

    files: list[SampledFile]
    matching: int


class SampleFilesTool(SourceTool[SampleInput, SampleOutput]):
    name = "sample_files"
    description = "Name a few files of the source: by extension, by size, at random with a seed."
    timeout_s = 240.0

    async def run(self, args: SampleInput, context: ToolContext) -> SampleOutput:
        listing = await self._files.list_files()
        ending = args.extension.lower().removeprefix("*").removeprefix(".")  # models write .csv, csv and *.csv
        wanted = f".{ending}" if ending else ""
        matching = [
            file
            for file in listing.files.values()
            if wanted in ("", file.extension)
            and file.size >= args.min_size
            and (args.max_size is None or file.size <= args.max_size)
        ]
        chosen = _pick_files(matching, args)
        sampled_files = [SampledFile(file=file.name, extension=file.extension, size_bytes=file.size) for file in chosen]
        return SampleOutput(files=sampled_files, matching=len(matching))


def _to_output(listing: Listing) -> EnumerateOutput:
    ranked = sorted(listing.by_extension.items(), key=lambda pair: (-pair[1].count, pair[0]))
    types: dict[str, FileType | None] = {}
    for file in listing.files.values():
        types[file.extension] = types.get(file.extension) or file.file_type
    extension_counts = {
        extension: ExtensionCount(
            count=tally.count,
            total_size_bytes=tally.size,
            smallest=tally.smallest,
            largest=tally.largest,
            readable=types.get(extension) is not None,
        )
        for extension, tally in ranked[:MAX_EXTENSIONS]
    }
    rest = [tally for _, tally in ranked[MAX_EXTENSIONS:]]
    if rest:
        extension_counts[OTHER] = ExtensionCount(
            count=sum(tally.count for tally in rest),
            total_size_bytes=sum(tally.size for tally in rest),
            smallest=min(tally.smallest for tally in rest),
            largest=max(tally.largest for tally in rest),
            readable=False,
        )
    return EnumerateOutput(
        total_files=listing.total.count,
        total_size_bytes=listing.total.size,
        by_extension=extension_counts,
        by_size=dict(listing.by_size),
        unreadable=listing.unreadable_count,
        unreadable_examples=listing.unreadable,
        note=listing.note,
    )


def _pick_files(matching: list[SourceFile], args: SampleInput) -> list[SourceFile]:
    """Picks the sample, which depends on seed and names only, not on the order of the listing."""
    by_size = sorted(matching, key=lambda file: (file.size, file.name))
    match args.pick:
        case "smallest":
            return by_size[: args.count]
        case "largest":
            return by_size[::-1][: args.count]
        case "spread":
            last = min(args.count, len(by_size)) - 1
            return [by_size[round(place * (len(by_size) - 1) / max(last, 1))] for place in range(last + 1)]
        case "random":
            return sorted(matching, key=lambda file: (_rank(args.seed, file.name), file.name))[: args.count]


def _rank(seed: int, name: str) -> bytes:
    return hashlib.blake2b(f"{seed}\x00{name}".encode("utf-8", "replace"), digest_size=8).digest()
