"""`ValidationReport`: the result of a dry run, and how it is judged.

Field names and thresholds follow the pipeline builder's specification.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import ceil
from statistics import median
from typing import Literal

from pydantic import Field

from agent.core.models import FrozenModel, JsonObject
from agent.text.plurals import format_count
from gateway.features.documents.engine.ingest.pipeline_diff import PipelineDiff
from gateway.features.documents.engine.search.models import COMPLETE_SHARE, USABLE_SHARE, Chunk, Coverage, FileType

READY, NOTABLE = 0.95, 0.90
"""Above READY a pipeline is ready; below NOTABLE its failures block it."""
EXAMPLES = 5
"""Sources listed for a category of failures."""
MOST_NAMED = 20
"""Most failed files that an uncertainty names."""

Assessment = Literal["ready", "needs_adjustment", "blocking_issues"]
Stage = Literal["source", "parser", "chunker"]

CATEGORIES: Mapping[str, tuple[str, str | None]] = {
    "ERR_PARSER_ENCRYPTED": ("encrypted", "save these files without a password, or leave them out"),
    "ERR_PARSER_UNSUPPORTED": ("unsupported", "leave these files out, or convert them to a type that is read"),
    "ERR_PARSER_CORRUPT": ("corrupted", "open and save them in the program they come from, or try another parser"),
    "ERR_PARSER_EMPTY": ("no_text", "if these are pictures of text, read them by OCR (template `scans`)"),
    "ERR_TIMEOUT": ("too_slow", "give the parser more time (`timeout_s`)"),
    "ERR_TOO_LARGE": ("too_large", "allow larger files (`file_bytes`, `output_bytes`), or split them"),
    "ERR_CONNECTOR_AUTH": ("not_allowed", "give a credential that may read them (`credentials_id`)"),
    "ERR_CONNECTOR_NOT_FOUND": ("not_found", "check the source: these are linked or listed, and not there"),
    "ERR_CONNECTOR_REFUSED": ("not_wanted", "ask the site's owner, or give the address they lead to as a source"),
    "ERR_CONNECTOR_FAILED": ("not_fetched", "try again later"),
}
"""The category of a failure by its error code, and the remedy."""


class FileResult(FrozenModel):
    """The result of one file of the sample. `stage` is where it failed; `details` are those of the error."""

    source: str
    name: str
    file_type: FileType | None
    status: Literal["ok", "failed"]
    stage: Stage | None = None
    error_code: str | None = None
    message: str = ""
    details: JsonObject = Field(default_factory=dict)
    size_bytes: int = 0
    pages: int = 0
    chunks: int = 0
    characters: int = Field(default=0, description="characters of all chunks")
    uncertainties: tuple[str, ...] = ()
    coverage: Coverage | None = None
    seconds: float = 0.0


class ChunkStats(FrozenModel):
    """Statistics of all passages of the sample; lengths in characters."""

    count: int = 0
    min: int = 0
    median: float = 0
    p95: int = 0
    max: int = 0
    empty: int = Field(default=0, description="passages without a letter")
    duplicates: int = Field(default=0, description="passages whose text another one has too")


class FailureCategory(FrozenModel):
    """Failures of one kind."""

    count: int
    examples: tuple[str, ...]
    suggested_fix: str | None = None


class PipelineFix(FrozenModel):
    """A change of the pipeline that was tried on failed files and helped."""

    description: str
    pipeline_diff: PipelineDiff


class ReportUncertainty(FrozenModel):
    """Something to decide before the pipeline is used."""

    severity: Literal["blocking", "notable", "info"]
    message: str
    context: JsonObject = Field(default_factory=dict)


class ValidationReport(FrozenModel):
    """The result of a dry run. `stage_timings` are total seconds per stage; `files_found` counts the whole source."""

    files_found: int
    files_tested: int
    files_succeeded: int
    files_failed: int
    success_rate: float = Field(description="from 0 to 1")
    failure_categories: dict[str, FailureCategory]
    chunk_stats: ChunkStats
    stage_timings: dict[str, float]
    assessment: Assessment
    recommended_fixes: tuple[PipelineFix, ...] = ()
    uncertainties: tuple[ReportUncertainty, ...] = ()
    summary: str
    files: tuple[FileResult, ...] = ()
    seed: int = 0


def assess(success_rate: float) -> Assessment:
    """`ready` above 95 %, `needs_adjustment` from 90 to 95 %, else `blocking_issues`."""
    if success_rate > READY:
        return "ready"
    return "needs_adjustment" if success_rate >= NOTABLE else "blocking_issues"


def compute_chunk_stats(chunks: Sequence[Chunk]) -> ChunkStats:
    """Computes the statistics of passages."""
    if not chunks:
        return ChunkStats()
    lengths = sorted(len(chunk.text) for chunk in chunks)
    return ChunkStats(
        count=len(lengths),
        min=lengths[0],
        median=median(lengths),
        p95=lengths[ceil(0.95 * len(lengths)) - 1],
        max=lengths[-1],
        empty=sum(not any(letter.isalnum() for letter in chunk.text) for chunk in chunks),
        duplicates=len(chunks) - len({chunk.checksum for chunk in chunks}),
    )


def build_report(
    files: Sequence[FileResult],
    chunks: Sequence[Chunk],
    timings: Mapping[str, float],
    fixes: Sequence[PipelineFix],
    *,
    found: int,
    seed: int,
    blocking: Sequence[str] = (),
    notes: Sequence[str] = (),
) -> ValidationReport:
    """Builds the report on a sample and judges it. `blocking` are problems apart from failed files."""
    failed = [one for one in files if one.status == "failed"]
    rate = (len(files) - len(failed)) / len(files) if files else 0.0
    categories = _build_categories(failed)
    return ValidationReport(
        files_found=found,
        files_tested=len(files),
        files_succeeded=len(files) - len(failed),
        files_failed=len(failed),
        success_rate=rate,
        failure_categories=categories,
        chunk_stats=compute_chunk_stats(chunks),
        stage_timings={stage: round(seconds, 4) for stage, seconds in timings.items()},
        assessment=assess(rate),
        recommended_fixes=tuple(fixes),
        uncertainties=(
            *_list_uncertainties(rate, files, categories),
            *(ReportUncertainty(severity="blocking", message=message) for message in blocking),
            *_list_incomplete(files),
            *_list_info_uncertainties(notes),
        ),
        summary=_build_summary(rate, files, categories, fixes),
        files=tuple(files),
        seed=seed,
    )


def _build_categories(failed: Sequence[FileResult]) -> dict[str, FailureCategory]:
    categories: dict[str, list[FileResult]] = {}
    for one in failed:
        categories.setdefault(_get_category_name(one), []).append(one)
    return {
        name: FailureCategory(
            count=len(ones),
            examples=tuple(one.source for one in ones[:EXAMPLES]),
            suggested_fix=CATEGORIES.get(ones[0].error_code or "", ("", None))[1],
        )
        for name, ones in sorted(categories.items(), key=lambda pair: (-len(pair[1]), pair[0]))
    }


def _get_category_name(failed: FileResult) -> str:
    code = failed.error_code or "ERR_INTERNAL"
    return CATEGORIES.get(code, (code.removeprefix("ERR_").lower(), None))[0]


def _list_uncertainties(
    rate: float, files: Sequence[FileResult], categories: Mapping[str, FailureCategory]
) -> list[ReportUncertainty]:
    """An uncertainty about the files that failed. It names them if they are few, so that they can be left out."""
    assessment = assess(rate)
    if assessment == "ready":
        return []
    context: JsonObject = {name: category.count for name, category in categories.items()}
    if not files:
        return [ReportUncertainty(severity="blocking", message="there is no file to try", context=context)]
    failed = [one.name for one in files if one.status == "failed"]
    if len(failed) <= MOST_NAMED:
        context |= {"examples": [*failed], "total": len(failed)}
    message = f"{len(failed)} of {format_count(len(files), 'file')} failed ({100 - rate * 100:.0f} %)"
    severity: Literal["blocking", "notable"] = "blocking" if assessment == "blocking_issues" else "notable"
    return [ReportUncertainty(severity=severity, message=message, context=context)]


def _list_incomplete(files: Sequence[FileResult]) -> Iterator[ReportUncertainty]:
    """Yields an uncertainty for each file of which less than half was read, which blocks, and one for the others that
    are incomplete."""
    measured = [(one, one.coverage) for one in files if one.coverage is not None]
    for one, coverage in measured:
        if coverage.share < USABLE_SHARE:
            context: JsonObject = {"file": one.name, "coverage": coverage.share, "missing": {**coverage.missing}}
            message = f"{one.name}: {coverage.describe()}"
            yield ReportUncertainty(severity="blocking", message=message, context=context)
    incomplete = [(one, cov) for one, cov in measured if USABLE_SHARE <= cov.share < COMPLETE_SHARE]
    if incomplete:
        coverage_list = "; ".join(f"{one.name}: {coverage.describe()}" for one, coverage in incomplete[:EXAMPLES])
        message = f"{format_count(len(incomplete), 'file')} not read as a whole: {coverage_list}"
        yield ReportUncertainty(severity="notable", message=message, context={"files": len(incomplete)})


def _list_info_uncertainties(notes: Sequence[str]) -> list[ReportUncertainty]:
    return [ReportUncertainty(severity="info", message=note) for note in dict.fromkeys(notes) if note]


def _build_summary(
    rate: float,
    files: Sequence[FileResult],
    categories: Mapping[str, FailureCategory],
    fixes: Sequence[PipelineFix],
) -> str:
    if not files:
        return "No files: there is nothing at this source that could be tried."
    parts = [f"{rate * 100:.0f} % of {format_count(len(files), 'file')} {'is' if len(files) == 1 else 'are'} read."]
    if categories:
        parts.append("; ".join(f"{category.count} {name}" for name, category in categories.items()) + ".")
    parts += [f"{fix.description}." for fix in fixes]
    return " ".join(parts)
