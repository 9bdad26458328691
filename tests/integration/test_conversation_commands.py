"""Conversations without a model: exact commands change a proposal, and the next dry run shows it."""

from pathlib import Path
from typing import Any

import pytest

from tests.integration.conftest import Serve, client_of
from tests.support.documents import encrypted_pdf, scanned_pdf, word
from tests.support.talks import Talk, kinds, papers, read_answer, talk

INDEX = "Help me index these research papers"


async def chunker(mine: Talk) -> tuple[str, dict[str, Any]]:
    """The chunker that is proposed, and its options."""
    (node,) = [one for one in (await mine.look())["current_pipeline"]["nodes"] if one["kind"] == "chunker"]
    return node["plugin"], node["options"]


async def test_commands_change_the_proposal_and_other_words_do_not(serve: Serve, tmp_path: Path) -> None:
    folder = papers(tmp_path / "data", 3)
    async with client_of(serve) as client:
        mine = await talk(client, folder)
        await mine.say(INDEX)
        assert "chunk size 800" in read_answer(await mine.say("set chunk_size 800"))
        assert await chunker(mine) == ("structure", {"size": 800, "table_size": 3200})
        assert "split by the chunker sentence" in read_answer(await mine.say("chunker sentence"))
        assert (await chunker(mine))[1]["size"] == 800
        assert "split by the chunker sentence" in read_answer(await mine.say("status")), (
            "it is said for as long as it is so"
        )
        before = await mine.look()
        for words in ("put the newest first", "g\u00f6r styckena mindre", "chunker fixed\nand thanks", "apply it"):
            found = await mine.say(words)
            assert "Nothing was changed" in read_answer(found), words
            assert "`set NAME NUMBER`" in read_answer(found)
            assert "subagent" not in kinds(found)
        after = await mine.look()
        assert (after["current_pipeline"], after["validation"]) == (before["current_pipeline"], before["validation"])
        assert "cannot be done" in read_answer(await mine.say("set chunk_size 3"))
        assert (await chunker(mine))[1]["size"] == 800


@pytest.mark.row("S000-42")
async def test_excluded_files_count_neither_in_readiness_nor_in_uncertainties(serve: Serve, tmp_path: Path) -> None:
    folder = papers(tmp_path / "data", 4)
    for number in range(3):
        (folder / f"minutes{number}.docx").write_bytes(word())
    (folder / "locked.pdf").write_bytes(encrypted_pdf())
    (folder / "photo.png").write_bytes(b"\x89PNG\r\n\x1a\n\x00\x00")
    async with client_of(serve) as client:
        mine = await talk(client, folder)
        found = read_answer(await mine.say(INDEX))
        assert "1 file (.png 1) is of a kind that no parser reads" in found
        assert (await mine.look())["validation"]["files_tested"] == 8, "a picture is listed, and does not count"
        failing = read_answer(await mine.say("failures"))
        assert "locked.pdf" in failing
        assert "encrypted" in failing
        assert "Blocking:" in failing
        told = read_answer(await mine.say("exclude docx *.pdf .png"))
        assert "without docx files, without *.pdf, .png" in told
        assert "5 files (docx 3, pdf 1, .png 1) are left out, as the pipeline says" in told
        known = await mine.look()
        assert (known["validation"]["files_tested"], known["validation"]["success_rate"]) == (4, 1.0)
        left = [one["message"] for one in known["uncertainties"] if not one["resolved"]]
        assert not [one for one in left if "password" in one or "no parser reads" in one or "failed" in one], left
        assert "No file of the sample failed" in read_answer(await mine.say("failures"))
        applied = await mine.apply("kelp")
        assert applied.status_code == 200, applied.text
        job = (await client.get(f"/v1/jobs/{applied.json()['job_id']}", params={"wait_s": 30})).json()
        assert (job["status"], job["report"]["read"], job["report"]["left_out"]) == ("done", 4, 5), job
        assert job["report"]["skipped"] == []


async def test_ocr_resolves_scans_and_blocks_where_it_is_not_installed(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    folder = papers(tmp_path / "data", 2)
    (folder / "scan.pdf").write_bytes(scanned_pdf())
    async with client_of(serve) as client:
        mine = await talk(client, folder)
        assert "scanned pages" in read_answer(await mine.say(INDEX)).partition("**Uncertain**")[2]
        told = read_answer(await mine.say("ocr on"))
        assert "every PDF page by OCR" in told
        assert "hold scanned pages" not in told.partition("**Uncertain**")[2]
        assert "blocking: OCR is requested but not installed" in told
        assert "apt-get install tesseract-ocr tesseract-ocr-eng" in told
        assert (await mine.apply("kelp")).status_code == 400
        assert "OCR is requested" not in read_answer(await mine.say("ocr off"))


async def test_reset_drops_what_was_changed(serve: Serve, tmp_path: Path) -> None:
    folder = papers(tmp_path / "data", 2)
    async with client_of(serve) as client:
        mine = await talk(client, folder)
        await mine.say(INDEX)
        before = (await mine.look())["current_pipeline"]
        assert "without txt files" in read_answer(await mine.say("chunker sentence\nset chunk_size 300\nexclude txt"))
        assert (await mine.look())["current_pipeline"] != before
        assert "because most of the files that were tried are academic" in read_answer(await mine.say("reset"))
        assert (await mine.look())["current_pipeline"] == before


async def test_commands_of_the_first_message_count(serve: Serve, tmp_path: Path) -> None:
    folder = papers(tmp_path / "data", 2)
    (folder / "notes.txt").write_text("Kelp.\n")
    async with client_of(serve) as client:
        mine = await talk(client, folder)
        told = read_answer(await mine.say("analyse\nset chunk_size 800\nexclude txt"))
        assert "template 'reports'" in told
        assert "chunk size 800" in told
        assert (await mine.look())["validation"]["files_tested"] == 2


@pytest.mark.row("S000-49", "S000-50")
async def test_a_question_starts_nothing(serve: Serve, tmp_path: Path) -> None:
    folder = papers(tmp_path / "data", 1)
    async with client_of(serve) as client:
        mine = await talk(client, folder)
        for question, answer in (
            ("What chunkers exist?", "sentence (chunker)"),
            ("Welche Parser gibt es?", "liteparse (parser)"),
            ("which templates are there?", "- windows:"),
            ("Can you do something with it?", "What do you want to do?"),
        ):
            found = await mine.say(question)
            assert answer in read_answer(found)
            assert not {"subagent", "pipeline", "uncertainty"} & kinds(found)
        assert (await mine.look())["source_analysis"] is None
