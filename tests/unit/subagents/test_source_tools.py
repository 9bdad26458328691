"""The analyser's tools, one by one, on real files."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from agent.core.errors import ToolError, ToolInputError
from agent.text.language import LanguageDetector
from agent.tools import Tool, ToolContext
from gateway.features.documents.engine.ingest.connectors.local import LocalConnector
from gateway.features.documents.engine.search.models import ConnectorInput
from gateway.features.pipeline_builder.engine.subagents.parsed_files import ParsedFiles
from gateway.features.pipeline_builder.engine.subagents.reading_tools import (
    DetectLanguageTool,
    PreviewTool,
    TryParserTool,
)
from gateway.features.pipeline_builder.engine.subagents.source_files import SourceFiles
from gateway.features.pipeline_builder.engine.subagents.source_tools import EnumerateFilesTool, SampleFilesTool
from tests.support.documents import scanned_pdf

CONTEXT = ToolContext(run_id="run_1", owner="local")
TEXTS = {
    "en": "Employees may take thirty days of paid holiday in each calendar year, after asking their manager.",
    "sv": "Anställda har rätt till trettio dagars betald semester varje kalenderår efter att ha frågat sin chef.",
    "de": "Die Mitarbeiter haben Anspruch auf dreißig Tage bezahlten Urlaub im Jahr, wenn sie vorher fragen.",
}


class Kit:
    """The tools on one folder."""

    def __init__(self, root: Path, stack: AsyncExitStack) -> None:
        request = ConnectorInput(source_type="local", source_identifier=str(root), recursive=True)
        files = SourceFiles(request, LocalConnector(), root.parent / "work", stack)
        readings = ParsedFiles(files, stack)
        tools: list[Tool] = [
            EnumerateFilesTool(files),
            SampleFilesTool(files),
            TryParserTool(files, readings),
            DetectLanguageTool(readings, LanguageDetector()),
            PreviewTool(files),
        ]
        self.tools = {tool.spec.name: tool for tool in tools}

    async def __call__(self, tool: str, **args: Any) -> Any:
        """The value of a call."""
        return (await self.tools[tool].call(args, CONTEXT)).value


@pytest.fixture
async def kit(tmp_path: Path) -> AsyncIterator[Kit]:
    root = tmp_path / "root"
    root.mkdir()
    for code, text in TEXTS.items():
        (root / f"{code}.txt").write_text(text)
    for number in range(20):
        (root / f"n{number:02}.csv").write_text("a,b\n" + "1,2\n" * number)
    (root / "data.bin").write_bytes(b"\x00\x01\xfe\xff" + bytes(range(256)))
    (root / "scan.pdf").write_bytes(scanned_pdf())
    (root / "late.txt").write_bytes("Grüße".encode("cp1252"))
    (root / "empty.txt").write_bytes(b"")
    async with AsyncExitStack() as stack:
        yield Kit(root, stack)


@pytest.mark.row("S000-30")
async def test_enumerate_counts_by_ending_and_size(kit: Kit) -> None:
    value = await kit("enumerate_files")
    assert value["total_files"] == 27
    assert value["by_extension"][".csv"] | {"total_size_bytes": 0} == {
        "count": 20, "total_size_bytes": 0, "smallest": 4, "largest": 80, "readable": True,
    }  # fmt: skip
    assert value["by_extension"][".bin"]["readable"] is False
    assert next(iter(value["by_extension"])) == ".csv", "the most frequent first"
    assert sum(value["by_size"].values()) == 27


@pytest.mark.row("S000-31")
async def test_a_sample_is_the_same_with_the_same_seed(kit: Kit) -> None:
    one, again, other = [await kit("sample_files", count=6, extension=".csv", seed=seed) for seed in (3, 3, 4)]
    assert one == again
    assert one != other
    assert len(one["files"]) == 6
    assert one["matching"] == 20
    assert {file["extension"] for file in one["files"]} == {".csv"}


@pytest.mark.row("S000-31")
@pytest.mark.parametrize(
    ("args", "names"),
    [
        ({"pick": "largest", "count": 2}, ["n19.csv", "n18.csv"]),
        ({"pick": "smallest", "count": 2}, ["n00.csv", "n01.csv"]),
        ({"pick": "spread", "count": 3}, ["n00.csv", "n10.csv", "n19.csv"]),
        ({"pick": "spread", "count": 1}, ["n00.csv"]),
        ({"pick": "smallest", "min_size": 72, "count": 9}, ["n17.csv", "n18.csv", "n19.csv"]),
        ({"pick": "smallest", "max_size": 4, "count": 9}, ["n00.csv"]),
        ({"extension": ".exe", "count": 9}, []),
        ({"extension": "csv", "pick": "largest", "count": 1}, ["n19.csv"]),
        ({"extension": "*.CSV", "pick": "largest", "count": 1}, ["n19.csv"]),
    ],
)
async def test_a_sample_is_chosen_by_ending_and_size(kit: Kit, args: dict[str, Any], names: list[str]) -> None:
    value = await kit("sample_files", **{"extension": ".csv", **args})
    assert [file["file"] for file in value["files"]] == names


@pytest.mark.row("S000-32")
async def test_a_parser_that_fails_is_a_result(kit: Kit) -> None:
    good = await kit("try_parser", file="en.txt")
    assert (good["success"], good["parser"], good["characters"]) == (True, "plain", len(TEXTS["en"]))
    assert good["excerpt"].startswith("Employees")
    scan = await kit("try_parser", file="scan.pdf")
    assert scan["scanned"], "with OCR or without"
    wrong = await kit("try_parser", file="en.txt", parser="openpyxl")
    assert (wrong["success"], wrong["error_code"]) == (False, "ERR_PARSER_UNSUPPORTED")
    binary = await kit("try_parser", file="data.bin")
    assert (binary["success"], binary["error"]) == (False, ".bin files are not read")
    empty = await kit("try_parser", file="empty.txt")
    assert (empty["success"], empty["error_code"], empty["scanned"]) == (False, "ERR_PARSER_EMPTY", False)


async def test_what_is_not_there_is_told_as_an_error(kit: Kit) -> None:
    with pytest.raises(ToolInputError, match="there is no file"):
        await kit("try_parser", file="sub/../en.txt")
    with pytest.raises(ToolInputError, match="there is no parser 'magic'"):
        await kit("try_parser", file="en.txt", parser="magic")


@pytest.mark.row("S000-33")
@pytest.mark.parametrize("code", sorted(TEXTS))
async def test_languages_of_files_and_texts(kit: Kit, code: str) -> None:
    of_file, of_text = await kit("detect_language", file=f"{code}.txt"), await kit("detect_language", text=TEXTS[code])
    assert of_file["language"] == of_text["language"] == code
    assert not of_file["mixed"]


@pytest.mark.row("S000-36")
async def test_a_text_in_two_languages_is_mixed(kit: Kit) -> None:
    value = await kit("detect_language", text="\n\n".join(TEXTS.values()))
    assert value["mixed"]
    assert set(value["shares"]) == {"en", "sv", "de"}


@pytest.mark.parametrize("args", [{}, {"text": "  \n "}, {"file": "data.bin"}, {"file": "empty.txt"}])
async def test_without_a_text_there_is_no_language(kit: Kit, args: dict[str, str]) -> None:
    with pytest.raises(ToolError, match="text to look at"):
        await kit("detect_language", **args)


@pytest.mark.row("S000-34")
async def test_a_preview_is_bounded_and_takes_any_bytes(kit: Kit) -> None:
    text = await kit("get_file_content_preview", file="de.txt", max_bytes=50)
    assert (text["text"], text["more"], text["is_binary"]) == (TEXTS["de"].encode()[:50].decode(), True, False)
    cut = await kit("get_file_content_preview", file="de.txt", max_bytes=TEXTS["de"].encode().index("ß".encode()) + 1)
    assert TEXTS["de"].startswith(cut["text"]), "half a character at the end is left out"
    middle = await kit("get_file_content_preview", file="de.txt", start=TEXTS["de"].encode().index("ß".encode()) + 1)
    assert middle["text"] == TEXTS["de"][TEXTS["de"].index("ß") + 1 :], "nor at the beginning"
    rest = await kit("get_file_content_preview", file="en.txt", start=90)
    assert (rest["text"], rest["more"]) == (TEXTS["en"][90:], False)
    binary = await kit("get_file_content_preview", file="data.bin")
    assert (binary["is_binary"], binary["text"], binary["hexadecimal"][:11]) == (True, "", "00 01 fe ff")
    western = await kit("get_file_content_preview", file="late.txt")
    assert (western["text"], western["encoding"]) == ("Grüße", "cp1252")
    empty = await kit("get_file_content_preview", file="empty.txt")
    assert (empty["text"], empty["is_binary"], empty["size_bytes"]) == ("", False, 0)
    with pytest.raises(ToolInputError, match="there is no file"):
        await kit("get_file_content_preview", file="/etc/passwd")
