"""`SourceAnalysis`: what is known of a source, made of what the tools of the `SourceAnalyzer` returned.

A model may add what it understood; it cannot change what was counted or tried.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pydantic import BaseModel, ConfigDict, Field

from agent.core.language import NAMES, name_of
from agent.core.models import Frozen, JsonObject
from agent.core.subagents import Severity, Uncertainty
from agent.knowledge.local_files import TYPES
from agent.knowledge.plugins import AUTO, readable_types
from agent.subagents.reading_tools import LanguageFound, ParserTrial, PreviewOutput
from agent.subagents.source_doubts import doubts, issues
from agent.subagents.source_tools import EnumerateOutput

MOST_SAID = 20
"""Of anything a model adds to a list."""
SHOWN_TRIALS = 5
UNTRIED = 0.5
"""The most confidence a parser can have that nobody has tried."""


class FileTypeStats(Frozen):
    """The files of one ending, and how the trials of some of them went."""

    count: int
    total_size_bytes: int
    sample_results: tuple[JsonObject, ...] = ()


class ContentCharacteristics(Frozen):
    """What the content is like. Languages are ISO 639-1 codes."""

    languages: tuple[str, ...] = ()
    document_types: tuple[str, ...] = ()
    quality_issues: tuple[str, ...] = ()


class ParserRecommendation(Frozen):
    """Which parser is to read the files of an ending. The confidence is never above what the trials bear out."""

    extension: str
    parser_id: str
    confidence: float = Field(ge=0, le=1)
    notes: str | None = None


class SourceAnalysis(Frozen):
    """The result. `complete` is false where not everything could be listed; `sampled` files were looked into."""

    total_files: int
    total_size_bytes: int
    by_extension: dict[str, FileTypeStats]
    content_characteristics: ContentCharacteristics
    parser_recommendations: tuple[ParserRecommendation, ...]
    uncertainties: tuple[Uncertainty, ...]
    summary: str
    complete: bool = True
    sampled: int = 0


class SaidCharacteristics(BaseModel):
    """Characteristics as a model writes them."""

    languages: list[str] = Field(default_factory=list)
    document_types: list[str] = Field(default_factory=list)
    quality_issues: list[str] = Field(default_factory=list)


class SaidRecommendation(BaseModel):
    """A recommendation as a model writes it."""

    extension: str
    parser_id: str
    confidence: float = Field(default=UNTRIED, ge=0, le=1)
    notes: str | None = None


class SaidUncertainty(BaseModel):
    """A doubt as a model writes it."""

    severity: Severity
    message: str = Field(min_length=1)


class AnalysisFinal(BaseModel):
    """What the model ends with. Figures it gives are not looked at: they are counted."""

    model_config = ConfigDict(extra="ignore")

    content_characteristics: SaidCharacteristics = SaidCharacteristics()
    parser_recommendations: list[SaidRecommendation] = Field(default_factory=list)
    uncertainties: list[SaidUncertainty] = Field(default_factory=list)
    summary: str = Field(min_length=1)


@dataclass
class Evidence:
    """What the tools returned, by file."""

    counts: EnumerateOutput | None = None
    trials: dict[tuple[str, str], ParserTrial] = field(default_factory=dict)
    languages: dict[str, LanguageFound] = field(default_factory=dict)
    previews: dict[str, PreviewOutput] = field(default_factory=dict)

    def of_extension(self, extension: str) -> list[ParserTrial]:
        """The trials of files of one ending, by name."""
        return [trial for _, trial in sorted(self.trials.items()) if trial.extension == extension]


def analysis(evidence: Evidence, final: AnalysisFinal | None = None) -> SourceAnalysis:
    """What is known by now; with `final`, also what the model understood of it."""
    counts = evidence.counts or EnumerateOutput(total_files=0, total_size_bytes=0, by_extension={}, by_size={})
    trials = [trial for _, trial in sorted(evidence.trials.items())]
    found = doubts(evidence.counts, trials, list(evidence.languages.values()))
    characteristics = _characteristics(trials, list(evidence.languages.values()), final)
    said = final.uncertainties[:MOST_SAID] if final is not None else []
    known = {one.message for one in found}
    extra = [Uncertainty(severity=one.severity, message=one.message[:500]) for one in said if one.message not in known]
    return SourceAnalysis(
        total_files=counts.total_files,
        total_size_bytes=counts.total_size_bytes,
        by_extension={
            extension: FileTypeStats(
                count=one.count,
                total_size_bytes=one.total_size_bytes,
                sample_results=tuple(_shown(trial) for trial in evidence.of_extension(extension)[:SHOWN_TRIALS]),
            )
            for extension, one in counts.by_extension.items()
        },
        content_characteristics=characteristics,
        parser_recommendations=tuple(_recommendations(evidence, counts, final)),
        uncertainties=(*found, *extra),
        summary=_summary(evidence.counts, characteristics, found, final),
        complete=evidence.counts is not None and not counts.note,
        sampled=len({trial.file for trial in trials} | set(evidence.previews)),
    )


def _characteristics(
    trials: Sequence[ParserTrial], languages: Sequence[LanguageFound], final: AnalysisFinal | None
) -> ContentCharacteristics:
    said = final.content_characteristics if final is not None else SaidCharacteristics()
    spoken = Counter(code for one in languages for code, share in one.shares.items() if share >= 0.1)
    kinds = Counter(kind for trial in trials for kind in trial.document_types)
    return ContentCharacteristics(
        languages=_joined([code for code, _ in spoken.most_common()], [one for one in said.languages if one in NAMES]),
        document_types=_joined([kind for kind, _ in kinds.most_common()], said.document_types),
        quality_issues=_joined(issues(trials, languages), said.quality_issues),
    )


def _joined(seen: Sequence[str], said: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*seen, *(one[:100] for one in said[:MOST_SAID] if one.strip())]))


def _recommendations(
    evidence: Evidence, counts: EnumerateOutput, final: AnalysisFinal | None
) -> Iterator[ParserRecommendation]:
    """One for each ending that can be read: the model's, where it names a parser that reads the type, else ours."""
    said = {one.extension.lower(): one for one in (final.parser_recommendations if final is not None else [])}
    for extension, count in counts.by_extension.items():
        file_type = TYPES.get(extension)
        if not count.readable or file_type is None:
            continue
        own = _by_trials(extension, evidence.of_extension(extension))
        wanted = said.get(extension)
        if wanted is None or file_type not in readable_types(wanted.parser_id):
            yield own
            continue
        tried = evidence.of_extension(extension)
        if wanted.parser_id != AUTO:  # where `auto` failed, all the parsers of the type did
            tried = [one for one in tried if one.parser in (AUTO, wanted.parser_id)]
        yield ParserRecommendation(
            extension=extension,
            parser_id=wanted.parser_id,
            confidence=min(wanted.confidence, _most(tried)),
            notes=(wanted.notes or own.notes or "")[:500] or None,
        )


def _by_trials(extension: str, trials: Sequence[ParserTrial]) -> ParserRecommendation:
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


def _most(trials: Sequence[ParserTrial]) -> float:
    """The highest confidence that the trials bear out."""
    if not trials:
        return UNTRIED
    return round((sum(trial.success for trial in trials) + 1) / (len(trials) + 1), 2)


def _shown(trial: ParserTrial) -> JsonObject:
    shown: JsonObject = trial.model_dump(
        mode="json", include={"file", "parser", "success", "error_code", "error", "pages", "characters", "scanned"}
    )
    return {key: value for key, value in shown.items() if value is not None}


def counted(counts: EnumerateOutput) -> str:
    """The figures as a sentence."""
    kinds = [f"{extension} {one.count:,}" for extension, one in list(counts.by_extension.items())[:5]]
    more = len(counts.by_extension) - len(kinds)
    listed = ", ".join(kinds) + (f" and {more} more kinds" if more > 0 else "")
    files = f"{counts.total_files:,} file{'s' if counts.total_files != 1 else ''}"
    return f"{files}, {_bytes(counts.total_size_bytes)}" + (f": {listed}." if listed else ".")


def _summary(
    counts: EnumerateOutput | None,
    characteristics: ContentCharacteristics,
    found: Sequence[Uncertainty],
    final: AnalysisFinal | None,
) -> str:
    """The counted figures always come first; where nobody listed the source, there are none."""
    figures = counted(counts) if counts is not None else "The files were not counted."
    if final is not None:
        return f"{figures} {final.summary.strip()[:2_000]}"
    parts = [figures]
    if characteristics.document_types:
        parts.append(f"Mostly {characteristics.document_types[0]}.")
    if characteristics.languages:
        parts.append(f"In {', '.join(name_of(code) for code in characteristics.languages[:4])}.")
    parts += [f"{one.message}." for one in found if one.severity != "info"]
    return " ".join(parts)


def _bytes(size: int) -> str:
    for unit, factor in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return f"{size} bytes"
