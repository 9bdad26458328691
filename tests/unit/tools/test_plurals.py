"""Counts in sentences."""

from agent.text.plurals import format_count
from gateway.features.documents.engine.ingest.dry_run_report import FileResult, build_report


def test_one_is_one_and_all_others_are_several() -> None:
    said = [format_count(number, "passage") for number in (0, 1, 2, 1200)]
    assert said == ["0 passages", "1 passage", "2 passages", "1200 passages"]


def test_a_report_on_one_file_speaks_of_one() -> None:
    good = FileResult(source="a.md", name="a.md", file_type="md", status="ok", chunks=1, characters=40)
    bad = good.model_copy(update={"status": "failed", "error_code": "ERR_PARSER_CORRUPT"})
    assert build_report([good], [], {}, [], found=1, seed=0).summary == "100 % of 1 file is read."
    assert build_report([good, good], [], {}, [], found=2, seed=0).summary == "100 % of 2 files are read."
    (doubt,) = build_report([bad], [], {}, [], found=1, seed=0).uncertainties
    assert doubt.message == "1 of 1 file failed (100 %)"
