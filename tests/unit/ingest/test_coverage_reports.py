"""What a dry run and a source analysis say of files that are not read as a whole."""

from gateway.features.documents.engine.ingest.dry_run_report import FileResult, build_report
from gateway.features.documents.engine.search.models import Coverage
from gateway.features.pipeline_builder.engine.subagents.reading_tools import ParserTrial
from gateway.features.pipeline_builder.engine.subagents.source_uncertainties import find_uncertainties


def result(name: str, share: float) -> FileResult:
    coverage = Coverage(share=share, total=100, missing={"footnote": round(100 - share * 100)} if share < 1 else {})
    return FileResult(source=name, name=name, file_type="docx", status="ok", coverage=coverage)


def test_less_than_half_of_a_file_blocks_a_pipeline_and_less_than_all_is_notable() -> None:
    files = [result("whole.docx", 1.0), result("near.docx", 0.99), result("most.docx", 0.9), result("half.docx", 0.4)]
    report = build_report(files, [], {}, [], found=4, seed=0)
    assert [(one.severity, one.message) for one in report.uncertainties] == [
        ("blocking", "half.docx: 40% of the file's words were read; missing: 60 words of footnote"),
        (
            "notable",
            "1 file not read as a whole: most.docx: 90% of the file's words were read; missing: 10 words of footnote",
        ),
    ]


def test_an_analysis_judges_a_file_by_its_best_parser() -> None:
    trials = [
        ParserTrial(file=name, extension=".docx", parser=parser, success=True, coverage=share)
        for name, parser, share in [("a", "one", 0.2), ("a", "two", 1.0), ("b", "one", 0.4), ("c", "one", 0.7)]
    ]
    found = [one for one in find_uncertainties(None, trials, []) if "read" in one.message]
    assert [(one.severity, one.message) for one in found] == [
        ("blocking", "less than half of the text is read in 1 of 3 files tried"),
        ("notable", "1 of 3 files tried are not read completely"),
    ]
