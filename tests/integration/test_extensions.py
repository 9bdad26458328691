"""Extensions: the example package is installed and used through a real gateway; a broken one is named and skipped."""

import io
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from gateway.features.documents.engine.ingest.templates import from_template
from tests.support.processes import ROOT, start

EXAMPLE = ROOT / "docs" / "examples" / "stepgate-poems"
EPUB_READER = """
import io
import re
import zipfile

from gateway.features.documents.engine.ingest.parsers.draft import Draft
from gateway.features.documents.engine.ingest.parsers.registry import Reader

READER = Reader("epub", ("epub",), "epub_reader:read_epub", "Books", "books", media_types=("application/epub+zip",))


def read_epub(source):
    draft = Draft()
    with zipfile.ZipFile(io.BytesIO(source.data)) as book:
        for name in sorted(book.namelist()):
            if name.endswith(".xhtml"):
                draft.add_text(re.sub(r"<[^>]+>", " ", book.read(name).decode()).strip())
    return draft
"""
ROOM = "gates: [short_answer]\ntools: [count_words]\n"
LONG = " ".join(["word"] * 60)


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the example package, and a package whose entry points cannot be loaded."""
    folder = tmp_path_factory.mktemp("packages")
    offline = ["--no-index", "--no-deps", "--no-build-isolation", "--quiet", "--disable-pip-version-check"]
    command = [sys.executable, "-m", "pip", "install", *offline, "--target", str(folder), str(EXAMPLE)]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    broken = folder / "broken_extension-2.0.dist-info"
    broken.mkdir()
    (broken / "METADATA").write_text("Metadata-Version: 2.1\nName: broken-extension\nVersion: 2.0\n")
    (broken / "entry_points.txt").write_text(
        "[stepgate.tools]\nmissing = no_such_module:Tool\n"
        "[stepgate.gates]\nanswer_present = stepgate_poems.gate:short_answer\n"
        "[stepgate.parsers]\nno_reader = stepgate_poems.gate:short_answer\n"
        "[stepgate.connectors]\nlocal = stepgate_poems.connector:PoemConnector\n"
    )
    install_epub_reader(folder)
    return folder


def install_epub_reader(folder: Path) -> None:
    """A third party's package with a parser of a type of its own."""
    (folder / "epub_reader.py").write_text(EPUB_READER)
    info = folder / "epub_reader-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: epub-reader\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[stepgate.parsers]\nepub = epub_reader:READER\n")


@pytest.fixture(scope="module")
def environment(packages: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("gateway")
    rooms = folder / "rooms"
    rooms.mkdir()
    (rooms / "brief.yaml").write_text(ROOM)
    return {
        "PYTHONPATH": os.pathsep.join((str(packages), str(ROOT))),
        "AGENT_DATA_DIR": str(folder / "data"),
        "AGENT_ROOMS_DIR": str(rooms),
        "AGENT_PORT": "0",
        "AGENT_SKILLS_DIRS": "none",
    }


@pytest.fixture(scope="module")
def client(environment: dict[str, str]) -> Iterator[httpx.Client]:
    process = start([sys.executable, "-m", "gateway.cli", "serve"], environment=environment)
    try:
        url = process.line_with("Stepgate listens on ").rsplit(" ", 1)[1]
        with httpx.Client(base_url=url, timeout=60) as client:
            yield client
    finally:
        process.kill()


def ask(client: httpx.Client, text: str) -> Any:
    call = {"tool_calls": [{"tool": "count_words", "args": {"text": text}}]}
    response = client.post("/v1/agent", json={"prompt": "Count the words", "room": "brief", "metadata": call})
    return response.json()


def pipeline() -> dict[str, Any]:
    """The documents template, where text files go to the extension's parser."""
    plan = from_template("documents").model_dump(mode="json")
    (auto,) = [node for node in plan["nodes"] if node["kind"] == "parser"]
    plan["nodes"].append({"id": "verses", "kind": "parser", "plugin": "verses", "file_types": ["txt"]})
    plan["edges"] += [
        edge | {end: "verses"} for edge in plan["edges"] for end in ("from_node", "to_node") if edge[end] == auto["id"]
    ]
    return plan


def test_doctor_lists_each_with_its_package_and_names_those_that_are_skipped(environment: dict[str, str]) -> None:
    process = start([sys.executable, "-m", "gateway.cli", "doctor"], environment=environment)
    process.wait(60)
    output = "\n".join(process.output)
    for line in (
        "extension features poems: stepgate-poems 0.1.0 (stepgate_poems.feature:FEATURE)",
        "extension tools count_words: stepgate-poems 0.1.0 (stepgate_poems.tool:CountWordsTool)",
        "extension gates short_answer: stepgate-poems 0.1.0 (stepgate_poems.gate:short_answer)",
        "extension connectors poems: stepgate-poems 0.1.0 (stepgate_poems.connector:PoemConnector)",
        "extension parsers verses: stepgate-poems 0.1.0 (stepgate_poems.parser:VERSES)",
    ):
        assert f"ok   {line}" in output
    for line in (
        "extension tools missing: broken-extension 2.0 (no_such_module:Tool) is skipped: ModuleNotFoundError",
        "extension gates answer_present: broken-extension 2.0 (stepgate_poems.gate:short_answer) is skipped",
        "extension parsers no_reader: broken-extension 2.0 (stepgate_poems.gate:short_answer) is skipped: TypeError",
        "extension connectors local: broken-extension 2.0 (stepgate_poems.connector:PoemConnector) is skipped",
    ):
        assert f"note {line}" in output
    assert "documents, pipeline_builder" in output
    assert "poems" in next(line for line in process.output if "features" in line)
    assert "FAIL" not in output


BROKEN_FEATURES = """[stepgate.features]
sonnets = no_such_module:FEATURE
odes = broken_features:ODES
haikus = broken_features:HAIKUS
"""
BROKEN_MODULE = """
from gateway.feature import Command, Door, Feature

ODES = {"name": "odes"}
LINES = {"haikus": Command("no_such_library:show", "Show haikus.")}
HAIKUS = Feature(name="haikus", routes=(Door("no_such_library:ROUTES"),), commands=LINES)
"""


def test_broken_features_are_skipped_and_named_and_no_owner_is_deleted_meanwhile(
    environment: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "broken_features.py").write_text(BROKEN_MODULE)
    info = tmp_path / "broken_features-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken-features\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(BROKEN_FEATURES)
    path = os.pathsep.join((str(tmp_path), environment["PYTHONPATH"]))
    broken = {**environment, "PYTHONPATH": path, "AGENT_FEATURES": "-sonnets,-evaluation"}
    assert run(broken, "poems") == ["There are no favourite poems."]
    output = "\n".join(run(broken, "doctor"))
    for line in (
        "feature sonnets: no_such_module:FEATURE of broken-features 1.0 is skipped: ModuleNotFoundError",
        "feature odes: broken_features:ODES of broken-features 1.0 is skipped: TypeError",
        "feature haikus: broken_features:HAIKUS of broken-features 1.0 is skipped: no_such_library:ROUTES cannot be",
    ):
        assert f"note {line}" in output
    assert "FAIL" not in output
    (line,) = run(broken, "haikus")
    assert line.startswith("stepgate: no_such_library:show cannot be imported: ModuleNotFoundError")
    run(environment, "keys", "create", "--owner", "anna", "a key")
    (refused,) = run(broken, "users", "delete", "anna", "--yes")
    assert "the features 'odes', 'sonnets' are off or cannot be imported" in refused


def test_a_feature_has_its_table_its_routes_its_tool_and_its_command(
    client: httpx.Client, environment: dict[str, str]
) -> None:
    assert client.get("/v1/poems").json() == {"data": []}
    assert client.put("/v1/poems/Hope").json() == {"data": ["Hope"]}
    assert client.put("/v1/poems/Hope").json() == {"data": ["Hope"]}
    call = {"tool_calls": [{"tool": "favourite_poems", "args": {}}]}
    answered = client.post("/v1/agent", json={"prompt": "Which poems?", "room": "stepgate", "metadata": call}).json()
    assert [result["output"] for result in answered["metadata"]["tool_results"]] == [{"titles": ["Hope"]}]
    assert "/v1/poems" in client.get("/openapi.json").json()["paths"]
    rooms = {one["id"]: one for one in client.get("/v1/models").json()["data"]}
    assert {"poems", "stepgate"} <= rooms.keys()
    asked = client.post("/v1/agent", json={"prompt": "Which are my favourite poems?", "room": "poems"})
    assert asked.status_code == 200, asked.text
    assert run(environment, "poems") == ["Hope"]
    assert any("List your favourite poems." in line for line in run(environment, "--help"))


def test_a_feature_has_its_view_on_the_page(client: httpx.Client) -> None:
    page = client.get("/", headers={"accept": "text/html"}).text
    assert 'data-module="poems/poems.js" data-scope="agent">Poems</a>' in page
    edition = page.partition('"web/')[2].partition("/")[0]
    module = client.get(f"/web/{edition}/poems/poems.js")
    assert module.text == (EXAMPLE / "stepgate_poems" / "page" / "poems.js").read_text()
    assert module.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert module.headers["content-type"] == "text/javascript; charset=utf-8"
    assert "script-src 'self'" in module.headers["content-security-policy"]


def test_an_event_of_a_feature_is_redacted_has_its_line_and_is_read_while_the_feature_is_off(
    client: httpx.Client, environment: dict[str, str]
) -> None:
    key = "ghp" + "_" + "a1B2" * 9
    client.put(f"/v1/poems/Song of {key}")
    answered = client.post("/v1/agent", json={"prompt": "Which are my favourite poems?", "room": "poems"}).json()
    run_id = answered["metadata"]["run_id"]
    title = "Song of [removed: GITHUB_TOKEN]"
    assert answered["response"].endswith(f"Your newest favourite is {title}."), answered["response"]
    (line,) = [step for step in answered["steps"] if step["title"] == "reminds of a favourite poem"]
    assert (line["type"], line["detail"]) == ("notice", {"title": title})
    assert key not in client.get(f"/v1/runs/{run_id}").text
    off = {**environment, "AGENT_FEATURES": "-poems"}
    shown = "\n".join(run(off, "runs", "show", run_id))
    assert "reminds of a favourite poem" in shown


def test_a_feature_that_is_off_is_not_there_and_keeps_its_rows(environment: dict[str, str]) -> None:
    off = {**environment, "AGENT_FEATURES": "-poems"}
    assert any("No such command 'poems'" in line for line in run(off, "poems"))
    assert run(environment, "poems")[:1] == ["Hope"]
    removed = run(off, "users", "delete", "local", "--yes")
    assert any("poem_favourites" in line for line in removed), removed
    assert run(environment, "poems") == ["There are no favourite poems."]


def run(environment: dict[str, str], *words: str) -> list[str]:
    """What a command prints."""
    process = start([sys.executable, "-m", "gateway.cli", *words], environment=environment)
    process.wait(60)
    return [line for line in process.output if " WARNING " not in line]


def test_the_tool_is_called_and_the_gate_judges_the_answer(client: httpx.Client) -> None:
    tools = {tool["name"] for tool in client.get("/v1/tools").json()["data"]}
    assert "count_words" in tools
    assert "missing" not in tools
    answered = ask(client, "three short words")
    assert [result["output"] for result in answered["metadata"]["tool_results"]] == [{"words": 3}]
    gates = {gate["gate"]: gate["passed"] for gate in answered["metadata"]["gates"]}
    assert gates["short_answer"] is True
    assert gates["answer_present"] is True, "not the one that wanted its name"


def test_the_connector_fetches_and_the_parser_reads_in_a_worker_process(client: httpx.Client) -> None:
    body = {"source_type": "poems", "source_identifier": "dickinson", "pipeline": pipeline()}
    begun = client.post("/v1/collections/poems/ingest", json=body)
    assert begun.status_code == 202, begun.text
    job = client.get(f"/v1/jobs/{begun.json()['id']}", params={"wait_s": 50}).json()
    assert (job["status"], job["report"]["read"], job["report"]["skipped"]) == ("done", 1, [])
    found = client.post("/v1/search", json={"collection": "poems", "query_text": "the little bird in the storm"}).json()
    assert "That could abash the little bird\nThat kept so many warm." in found["results"][0]["content"]
    document = client.get("/v1/collections/poems/documents").json()["data"][0]
    assert document["title"] == "Hope is the thing with feathers"


def test_a_source_type_without_a_connector_is_refused_at_every_door(client: httpx.Client) -> None:
    body = {"source_type": "letters", "source_identifier": "dickinson"}
    for path in ("/v1/collections/poems/ingest", "/v1/sources"):
        refused = client.post(path, json=body)
        assert refused.status_code == 400, path
        assert "there is no connector for letters; there are gdrive, local, poems, web" in refused.text


def make_book(text: str) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as book:
        book.writestr("mimetype", "application/epub+zip")
        book.writestr("chapter.xhtml", f"<html><body><p>{text}</p></body></html>")
    return packed.getvalue()


def test_a_new_file_type_is_read_from_uploads_and_folders(client: httpx.Client, environment: dict[str, str]) -> None:
    sent = {"file": ("whale.EPUB", make_book("Call me Ishmael."))}
    stored = client.post("/v1/documents", files=sent, data={"collection": "books"})
    assert stored.status_code == 201, stored.text
    assert (stored.json()["file_type"], stored.json()["coverage"]) == ("epub", None)
    shelf = Path(environment["AGENT_DATA_DIR"]) / "files" / "shelf"
    shelf.mkdir(parents=True)
    (shelf / "pride.epub").write_bytes(make_book("It is a truth universally acknowledged."))
    (shelf / "broken.epub").write_bytes(b"no archive")
    body = {"source_type": "local", "source_identifier": str(shelf), "recursive": True}
    job = client.post("/v1/collections/books/ingest", json=body)
    assert job.status_code == 202, job.text
    done = client.get(f"/v1/jobs/{job.json()['id']}", params={"wait_s": 50}).json()
    assert done["report"]["read"] == 1
    assert "broken.epub" in str(done["report"]["skipped"])
    found = client.post("/v1/search", json={"collection": "books", "query_text": "a truth universally acknowledged"})
    assert "universally acknowledged" in found.json()["results"][0]["content"]


def test_a_pipeline_takes_the_new_type_and_refuses_one_that_nothing_reads(client: httpx.Client) -> None:
    plan = from_template("documents").model_dump(mode="json")
    (source,) = [node for node in plan["nodes"] if node["kind"] == "source"]
    for types, status in ((["epub"], 202), (["mobi"], 400)):
        source["options"] = {**source["options"], "file_types": types}
        body = {"source_type": "poems", "source_identifier": "dickinson", "pipeline": plan}
        answered = client.post(f"/v1/collections/{types[0]}/ingest", json=body)
        assert answered.status_code == status, answered.text
    assert "no parser takes mobi" in answered.text
    assert "epub" in client.get("/v1/plugins/auto").json()["file_types"]
