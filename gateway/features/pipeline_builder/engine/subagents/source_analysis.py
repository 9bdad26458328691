"""`SourceAnalysis`: what is known of a source, from the results of the `SourceAnalyzer`'s tools.

A model may add what it understood; it cannot change what was counted or tried.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pydantic import ConfigDict, Field

from agent.core.models import DeferredModel, FrozenModel, JsonObject
from agent.core.subagent_result import Uncertainty
from agent.subagents import ModelUncertainty
from agent.text.language import LANGUAGE_NAMES, get_language_name
from gateway.features.documents.engine.ingest.file_types import TYPES
from gateway.features.documents.engine.ingest.plugins import AUTO, list_types_read_by
from gateway.features.pipeline_builder.engine.subagents.reading_tools import LanguageResult, ParserTrial, PreviewOutput
from gateway.features.pipeline_builder.engine.subagents.source_tools import EnumerateOutput
from gateway.features.pipeline_builder.engine.subagents.source_uncertainties import (
    find_quality_issues,
    find_uncertainties,
)

MAX_MODEL_ITEMS = 20
"""Items that a model may add to a list."""
SHOWN_TRIALS = 5
UNTRIED_CONFIDENCE = 0.5
"""The highest confidence in a parser that was not tried."""


class FileTypeStats(FrozenModel):
    """The files of one extension, and the results of some trials."""

    count: int
    total_size_bytes: int
    sample_results: tuple[JsonObject, ...] = ()


class ContentCharacteristics(FrozenModel):
    """What the content is like. Languages are ISO 639-1 codes."""

    languages: tuple[str, ...] = ()
    document_types: tuple[str, ...] = ()
    quality_issues: tuple[str, ...] = ()


class ParserRecommendation(FrozenModel):
    """The parser for an extension. The confidence is never above what the trials support."""

    extension: str
    parser_id: str
    confidence: float = Field(ge=0, le=1)
    notes: str | None = None


class SourceAnalysis(FrozenModel):
    """The result. `complete` is false if not everything was listed; `sampled` counts the files that were opened."""

    total_files: int
    total_size_bytes: int
    by_extension: dict[str, FileTypeStats]
    content_characteristics: ContentCharacteristics
    parser_recommendations: tuple[ParserRecommendation, ...]
    uncertainties: tuple[Uncertainty, ...]
    summary: str
    complete: bool = True
    sampled: int = 0


class ModelCharacteristics(DeferredModel):
    """Characteristics as a model writes them."""

    languages: list[str] = Field(default_factory=list)
    document_types: list[str] = Field(default_factory=list)
    quality_issues: list[str] = Field(default_factory=list)


class ModelRecommendation(DeferredModel):
    """A recommendation as a model writes it."""

    extension: str
    parser_id: str
    confidence: float = Field(default=UNTRIED_CONFIDENCE, ge=0, le=1)
    notes: str | None = None


class AnalysisFinal(DeferredModel):
    """What the model ends with. Its figures are ignored; they are counted."""

    model_config = ConfigDict(extra="ignore")

    content_characteristics: ModelCharacteristics = ModelCharacteristics()
    parser_recommendations: list[ModelRecommendation] = Field(default_factory=list)
    uncertainties: list[ModelUncertainty] = Field(default_factory=list)
    summary: str = Field(min_length=1)


@dataclass
class SourceEvidence:
    """What the tools returned, by file."""

    counts: EnumerateOutput | None = None
    trials: dict[tuple[str, str], ParserTrial] = field(default_factory=dict)
    languages: dict[str, LanguageResult] = field(default_factory=dict)
    previews: dict[str, PreviewOutput] = field(default_factory=dict)

    def list_trials(self, extension: str) -> list[ParserTrial]:
        """The trials of files with this extension, by name."""
        return [trial for _, trial in sorted(self.trials.items()) if trial.extension == extension]


def build_analysis(evidence: SourceEvidence, final: AnalysisFinal | None = None) -> SourceAnalysis:
    """Builds the analysis from what is known; with `final`, adds what the model understood."""
    counts = evidence.counts or EnumerateOutput(total_files=0, total_size_bytes=0, by_extension={}, by_size={})
    trials = [trial for _, trial in sorted(evidence.trials.items())]
    uncertainties = find_uncertainties(evidence.counts, trials, list(evidence.languages.values()))
    characteristics = _build_characteristics(trials, list(evidence.languages.values()), final)
    model_uncertainties = final.uncertainties[:MAX_MODEL_ITEMS] if final is not None else []
    known_messages = {one.message for one in uncertainties}
    extra = [one.to_uncertainty() for one in model_uncertainties if one.message not in known_messages]
    return SourceAnalysis(
        total_files=counts.total_files,
        total_size_bytes=counts.total_size_bytes,
        by_extension={
            extension: FileTypeStats(
                count=one.count,
                total_size_bytes=one.total_size_bytes,
                sample_results=tuple(
                    _summarize_trials(trial) for trial in evidence.list_trials(extension)[:SHOWN_TRIALS]
                ),
            )
            for extension, one in counts.by_extension.items()
        },
        content_characteristics=characteristics,
        parser_recommendations=tuple(_iter_recommendations(evidence, counts, final)),
        uncertainties=(*uncertainties, *extra),
        summary=_summarize_analysis(evidence.counts, characteristics, uncertainties, final),
        complete=evidence.counts is not None and not counts.note,
        sampled=len({trial.file for trial in trials} | set(evidence.previews)),
    )


def _build_characteristics(
    trials: Sequence[ParserTrial], languages: Sequence[LanguageResult], final: AnalysisFinal | None
) -> ContentCharacteristics:
    characteristics = final.content_characteristics if final is not None else ModelCharacteristics()
    spoken = Counter(code for one in languages for code, share in one.shares.items() if share >= 0.1)
    kinds = Counter(kind for trial in trials for kind in trial.document_types)
    return ContentCharacteristics(
        languages=_merge(
            [code for code, _ in spoken.most_common()],
            [one for one in characteristics.languages if one in LANGUAGE_NAMES],
        ),
        document_types=_merge([kind for kind, _ in kinds.most_common()], characteristics.document_types),
        quality_issues=_merge(find_quality_issues(trials, languages), characteristics.quality_issues),
    )


def _merge(seen: Sequence[str], said: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*seen, *(one[:100] for one in said[:MAX_MODEL_ITEMS] if one.strip())]))


def _iter_recommendations(
    evidence: SourceEvidence, counts: EnumerateOutput, final: AnalysisFinal | None
) -> Iterator[ParserRecommendation]:
    """Yields one recommendation per readable extension: the model's if its parser reads the type, else ours."""
    by_extension = {one.extension.lower(): one for one in (final.parser_recommendations if final is not None else [])}
    for extension, count in counts.by_extension.items():
        if not count.readable:
            continue
        file_type = TYPES.get(extension, "txt")
        own = _recommend_from_trials(extension, evidence.list_trials(extension))
        wanted = by_extension.get(extension)
        if wanted is None or file_type not in list_types_read_by(wanted.parser_id):
            yield own
            continue
        tried = evidence.list_trials(extension)
        if wanted.parser_id != AUTO:  # where `auto` failed, all the parsers of the type did
            tried = [one for one in tried if one.parser in (AUTO, wanted.parser_id)]
        yield ParserRecommendation(
            extension=extension,
            parser_id=wanted.parser_id,
            confidence=min(wanted.confidence, _limit_confidence(tried)),
            notes=(wanted.notes or own.notes or "")[:500] or None,
        )


def _recommend_from_trials(extension: str, trials: Sequence[ParserTrial]) -> ParserRecommendation:
    good = Counter(trial.parser for trial in trials if trial.success)
    parser = good.most_common(1)[0][0] if good else AUTO
    notes = None
    if any(trial.scanned for trial in trials):
        notes = "some hold scanned pages: set force_ocr, or take the template scans"
    elif trials and not good:
        notes = f"none of {len(trials)} tried could be read: {trials[0].error}"
    elif not trials:
        notes = "none was tried"
    # One more success and one more failure than there were: three of three are no certainty.
    confidence = (sum(trial.success for trial in trials) + 1) / (len(trials) + 2) if trials else 0.3
    return ParserRecommendation(
        extension=extension, parser_id=parser, confidence=round(confidence, 2), notes=notes[:500] if notes else None
    )


def _limit_confidence(trials: Sequence[ParserTrial]) -> float:
    """The highest confidence that the trials support."""
    if not trials:
        return UNTRIED_CONFIDENCE
    return round((sum(trial.success for trial in trials) + 1) / (len(trials) + 1), 2)


def _summarize_trials(trial: ParserTrial) -> JsonObject:
    trial_data: JsonObject = trial.model_dump(
        mode="json", include={"file", "parser", "success", "error_code", "error", "pages", "characters", "scanned"}
    )
    return {key: value for key, value in trial_data.items() if value is not None}


def describe_counts(counts: EnumerateOutput) -> str:
    """The figures as a sentence."""
    kinds = [f"{extension} {one.count:,}" for extension, one in list(counts.by_extension.items())[:5]]
    more = len(counts.by_extension) - len(kinds)
    listed = ", ".join(kinds) + (f" and {more} more kinds" if more > 0 else "")
    files = f"{counts.total_files:,} file{'s' if counts.total_files != 1 else ''}"
    return f"{files}, {_format_bytes(counts.total_size_bytes)}" + (f": {listed}." if listed else ".")


def _summarize_analysis(
    counts: EnumerateOutput | None,
    characteristics: ContentCharacteristics,
    found: Sequence[Uncertainty],
    final: AnalysisFinal | None,
) -> str:
    """Summarises the analysis; counted figures come first."""
    figures = describe_counts(counts) if counts is not None else "The files were not counted."
    if final is not None:
        return f"{figures} {final.summary.strip()[:2_000]}"
    parts = [figures]
    if characteristics.document_types:
        parts.append(f"Mostly {characteristics.document_types[0]}.")
    if characteristics.languages:
        parts.append(f"In {', '.join(get_language_name(code) for code in characteristics.languages[:4])}.")
    parts += [f"{one.message}." for one in found if one.severity != "info"]
    return " ".join(parts)


def _format_bytes(size: int) -> str:
    for unit, factor in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return f"{size} bytes"
