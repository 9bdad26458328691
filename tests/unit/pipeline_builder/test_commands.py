"""The commands of a conversation without a model: exact words, and the change that each makes."""

import pytest

from gateway.features.documents.engine.ingest.pipeline import PipelineDAG
from gateway.features.documents.engine.ingest.pipeline_check import PipelineInvalidError, get_source_options
from gateway.features.documents.engine.ingest.templates import from_template
from gateway.features.pipeline_builder.engine.commands import (
    USAGE,
    Command,
    describe_commands,
    edit_pipeline,
    parse_commands,
)
from gateway.features.pipeline_builder.engine.pipeline_edits import describe_deviations
from gateway.features.pipeline_builder.engine.records import ConversationUncertainty, number_open


def edited(*lines: str, template: str = "reports") -> PipelineDAG:
    commands = parse_commands("\n".join(lines))
    assert commands is not None, lines
    return edit_pipeline(from_template(template), commands)


def chunker(pipeline: PipelineDAG) -> tuple[str, dict[str, object]]:
    (node,) = pipeline.list_nodes("chunker")
    return node.plugin, dict(node.options)


def test_one_command_a_line_in_exact_words() -> None:
    assert parse_commands("Exclude docx .png\n\n`set chunk_size 500`\nanalyze.") == [
        Command("exclude", "docx .png"), Command("set", "chunk_size 500"), Command("analyse"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "", "make the chunks smaller", "exclude", "status of it", "please validate", "apply kelp", "validate\nplease",
        "Kannst du die Abschnitte kleiner machen", "\n".join(["validate"] * 51),
    ],
)  # fmt: skip
def test_everything_else_is_no_command(text: str) -> None:
    assert parse_commands(text) is None


def test_every_command_is_explained() -> None:
    listed = describe_commands()
    assert all(f"`{name}" in listed for name in USAGE)
    assert "documents, reports" in listed


def test_numbers_templates_and_chunkers() -> None:
    assert chunker(edited("set chunk_size 500")) == ("structure", {"size": 500, "table_size": 3200})
    assert chunker(edited("chunker sentence", "set overlap 50"))[1] == {"size": 1600, "overlap": 50}
    notes = edited("set chunk_size 500", "exclude .png", "template notes")
    assert (notes.template, chunker(notes)[1]["size"]) == ("notes", 500), "what was changed before stays"
    assert get_source_options(notes).exclude == (".png",)


def test_files_are_excluded_by_type_extension_and_pattern_and_included_again() -> None:
    pipeline = edited("exclude docx, .PNG drafts/*")
    options = get_source_options(pipeline)
    assert (options.left_out, options.exclude) == (("docx",), (".PNG", "drafts/*"))
    assert options.excludes("photo.png", None)
    assert options.excludes("drafts/old/plan.md", "md")
    assert options.excludes("a.docx", "docx")
    assert not options.excludes("plan.md", "md")
    assert list(describe_deviations(pipeline)) == ["without docx files", "without .PNG, drafts/*"]
    again = edit_pipeline(pipeline, [Command("include", "docx drafts/*")])
    assert (get_source_options(again).left_out, get_source_options(again).exclude) == ((), (".PNG",))
    assert "md" in get_source_options(edited("include md", template="tables")).included


def test_ocr_of_every_page_and_its_languages() -> None:
    assert list(describe_deviations(edited("ocr on", "ocr deu+eng"))) == ["every PDF page by OCR", "OCR in deu+eng"]
    assert list(describe_deviations(edited("ocr off", template="scans"))) == []


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("template nonsense", "no template 'nonsense'"),
        ("set chunk_size", "a parameter and a number"),
        (f"set chunk_size {'9' * 5000}", "a parameter and a number"),
        ("set chunk_size 3", "at least 50"),
        ("set overlap 5", "has no overlap, only size, table_size"),
        ("chunker nonsense", "there is no chunker"),
        ("include .png", "'.png' is not excluded"),
        ("ocr off", "OCR is off already"),
        ("ocr in German!", "ocr_languages"),
        ("exclude pdf html docx pptx xlsx csv md txt eml", "nothing is left"),
    ],
)
def test_what_cannot_be_done_is_said(line: str, reason: str) -> None:
    with pytest.raises(PipelineInvalidError, match=reason):
        edited(line)


def test_numbers_stay_when_others_are_resolved_and_equal_uncertainties_share_one() -> None:
    def uncertainty(number: int, message: str, *, resolved: bool = False) -> ConversationUncertainty:
        return ConversationUncertainty(
            f"unc_{number}", "conv_1", "source_analyzer", "notable", message, {}, resolved=resolved, created=1.0
        )

    found = [uncertainty(1, "a", resolved=True), uncertainty(2, "b"), uncertainty(3, "b"), uncertainty(4, "c")]
    assert [(number, one.message) for number, one in number_open(found)] == [(2, "b"), (4, "c")]
