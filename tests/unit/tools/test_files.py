"""The file tools read, list and search text below the roots, and nothing else, whatever its name."""

import os
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from agent.core.errors import ToolDeniedError, ToolError, ToolInputError
from agent.tools import ToolContext
from mcp_tools.builtin import file_roots, files
from mcp_tools.builtin.file_roots import MAX_FILE_BYTES, FileRoots
from mcp_tools.builtin.files import ListFilesTool, ReadFileTool, SearchFilesTool

CONTEXT = ToolContext(run_id="run_1", owner="somebody")
SECRET = "the secret beside the root"
NOTHING_FITS = "No files. Nothing fits this folder and pattern; leave them out to see every file."
NOTES = "first line\nsecond line\nthird line\n"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with files of every kind, and secrets around it."""
    outside = tmp_path_factory.mktemp("outside")
    (outside / "secret.txt").write_text(SECRET)
    (outside / "root-more").mkdir()
    (outside / "root-more" / "secret.txt").write_text(SECRET)
    root = outside / "root"
    (root / "sub" / "deep").mkdir(parents=True)
    (root / "notes.txt").write_text(NOTES)
    (root / "sub" / "plan.md").write_text("# Plan\nBuy apples and pears\nSell pears\n")
    (root / "sub" / "deep" / "caf\u00e9.md").write_text("\ufeffCaf\u00e9 opens at nine", "utf-8")
    (root / "latin.txt").write_bytes("Gr\u00fc\u00dfe".encode("latin-1"))
    (root / "windows.txt").write_bytes("42 \u20ac \u2013 Geb\u00fchr".encode("cp1252"))
    (root / "unmarked.txt").write_bytes("wide w\u00f6rds".encode("utf-16-le"))
    (root / "form.pdf").write_bytes(b"%PDF-1.4 all of it is text\n")
    (root / "wide.txt").write_bytes("wide w\u00f6rds".encode("utf-16"))
    (root / "data.bin").write_bytes(b"pears\x00\x01\x02")
    (root / "empty.txt").touch()
    (root / ".hidden").write_text("pears in hiding")
    with (root / "huge.txt").open("wb") as huge:
        huge.truncate(MAX_FILE_BYTES + 1)
    (root / "link.txt").symlink_to(outside / "secret.txt")
    (root / "inner.txt").symlink_to(root / "notes.txt")
    (root / "up").symlink_to(outside, target_is_directory=True)
    (root / "loop").symlink_to(root / "loop")
    (root / "sub" / "round").symlink_to(root, target_is_directory=True)
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        here = Path.cwd()
        os.chdir(root)  # a socket's path is short
        server.bind("socket")
        os.chdir(here)
        yield root


async def read(root: Path, path: str, **options: JsonValue) -> str:
    return (await ReadFileTool(FileRoots((root,))).call({"path": path, **options}, CONTEXT)).text


async def list_paths(root: Path, **options: JsonValue) -> list[str]:
    text = (await ListFilesTool(FileRoots((root,))).call(options, CONTEXT)).text
    return [line.split(" (")[0] for line in text.splitlines()]


async def search(root: Path, query: str, **options: JsonValue) -> str:
    return (await SearchFilesTool(FileRoots((root,))).call({"query": query, **options}, CONTEXT)).text


@pytest.mark.parametrize("path", ["notes.txt", "./notes.txt", ".//notes.txt", " notes.txt\n", "{root}/notes.txt"])
async def test_a_file_below_the_root_is_read(root: Path, path: str) -> None:
    assert await read(root, path.format(root=root)) == NOTES.rstrip()


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("../secret.txt", r"'\.\.' is not followed"),
        ("..", r"'\.\.' is not followed"),
        ("sub/../../secret.txt", r"'\.\.' is not followed"),
        ("sub/../notes.txt", r"'\.\.' is not followed"),
        ("/etc/passwd", "outside the readable folders"),
        ("//etc/passwd", "outside the readable folders"),
        ("{root}/../secret.txt", r"'\.\.' is not followed"),
        ("{root}-more/secret.txt", "outside the readable folders"),
        ("link.txt", "symbolic link"),
        ("inner.txt", "symbolic link"),
        ("up/secret.txt", "is refused"),
        ("up/root-more/secret.txt", "is refused"),
        ("sub/round/notes.txt", "is refused"),
        ("loop", "symbolic link"),
        ("socket", "is refused"),
        ("x" * 300, "is refused"),
        ("x/" * 2500, "path is invalid"),
        ("notes.txt\x00.md", "path is invalid"),
    ],
    ids=lambda text: ascii(text[:25]),
)
async def test_what_leads_out_is_refused(root: Path, path: str, why: str) -> None:
    path = path.format(root=root)
    for call in (read(root, path), list_paths(root, path=path), search(root, "secret", path=path)):
        with pytest.raises(ToolDeniedError, match=why):
            await call


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("nothing.txt", "there is no file 'nothing.txt'; list_files shows the files"),
        ("notes.txt/more", "there is no"),
        ("~/notes.txt", "there is no"),
        ("sub", "sub is a folder; use list_files"),
        (".", "is a folder"),
        ("pipe", "pipe is not a file"),
        ("data.bin", "data.bin is not a text file"),
        ("form.pdf", "form.pdf is not a text file; documents such as PDF or Word can be read once they are in a "),
        ("huge.txt", "10,000,001 bytes; the limit is 10,000,000"),
    ],
)
async def test_what_cannot_be_read_says_why(root: Path, path: str, why: str) -> None:
    with pytest.raises(ToolError, match=why):
        await read(root, path)


@pytest.mark.parametrize("path", ["sub", "pipe", "data.bin", "huge.txt", "notes.txt", "link.txt", "up/secret.txt"])
async def test_no_descriptor_stays_open(root: Path, path: str) -> None:
    roots = FileRoots((root,))
    before = _descriptors()
    with suppress(ToolError):
        await ReadFileTool(roots).call({"path": path}, CONTEXT)
    with suppress(ToolError):
        await ListFilesTool(roots).call({"path": path}, CONTEXT)
    await ListFilesTool(roots).call({"limit": 1}, CONTEXT)
    await SearchFilesTool(roots).call({"query": "line", "limit": 1}, CONTEXT)
    assert _descriptors() == before


def _descriptors() -> int:
    return len(list(Path("/dev/fd").iterdir()))


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("sub/deep/caf\u00e9.md", "Caf\u00e9 opens at nine"),
        ("latin.txt", "Gr\u00fc\u00dfe"),
        ("wide.txt", "wide w\u00f6rds"),
        ("windows.txt", "42 \u20ac \u2013 Geb\u00fchr"),
        ("unmarked.txt", "wide w\u00f6rds"),
        ("empty.txt", ""),
    ],
)
async def test_encodings(root: Path, path: str, text: str) -> None:
    assert await read(root, path) == text


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"start_line": 2}, "second line\nthird line"),
        ({"max_lines": 2}, "first line\nsecond line\n[3 lines; continue with start_line=3]"),
        ({"start_line": 2, "max_lines": 1}, "second line\n[3 lines; continue with start_line=3]"),
        ({"max_lines": 3}, "first line\nsecond line\nthird line"),
        ({"start_line": 9}, ""),
    ],
    ids=str,
)
async def test_lines(root: Path, options: dict[str, JsonValue], text: str) -> None:
    assert await read(root, "notes.txt", **options) == text


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"pattern": "*.md"}, ["sub/deep/caf\u00e9.md", "sub/plan.md"]),
        ({"pattern": ".md"}, ["sub/deep/caf\u00e9.md", "sub/plan.md"]),
        ({"pattern": "**/*.md"}, ["sub/deep/caf\u00e9.md", "sub/plan.md"]),
        ({"path": "sub"}, ["sub/deep/caf\u00e9.md", "sub/plan.md"]),
        ({"path": "sub", "recursive": False}, ["sub/plan.md"]),
        ({"pattern": "sub/plan*"}, ["sub/plan.md"]),
        ({"path": "notes.txt"}, ["notes.txt", "notes.txt is a file: read_file returns its text."]),
        ({"path": "pipe"}, [NOTHING_FITS]),
        ({"path": "nothing"}, [NOTHING_FITS]),
        ({"pattern": "*.md", "limit": 2}, ["sub/deep/caf\u00e9.md", "sub/plan.md"]),
        ({"pattern": "*.md", "limit": 1}, ["sub/deep/caf\u00e9.md", "[more files; narrow the pattern]"]),
    ],
    ids=str,
)
async def test_lists(root: Path, options: dict[str, JsonValue], names: list[str]) -> None:
    assert await list_paths(root, **options) == names


async def test_a_key_without_admin_sees_no_folder_of_the_machine(tmp_path: Path) -> None:
    for scopes, is_named in ((("agent",), False), (("admin",), True), (None, True)):
        context = ToolContext("run_1", "anna", scopes=scopes)
        shown = (await ListFilesTool(FileRoots((tmp_path,))).call({}, context)).text
        assert (str(tmp_path) in shown) is is_named


async def test_an_empty_folder_says_how_files_get_there(tmp_path: Path) -> None:
    (shown,) = await list_paths(tmp_path)
    assert shown == f"No files. Put some into {tmp_path}, or set AGENT_FILE_ROOTS to folders of yours."


async def test_only_plain_files_are_listed(root: Path) -> None:
    names = ["data.bin", "empty.txt", "form.pdf", "huge.txt", "latin.txt", "notes.txt"]
    assert await list_paths(root, recursive=False) == [*names, "unmarked.txt", "wide.txt", "windows.txt"]
    below = ["sub/deep/caf\u00e9.md", "sub/plan.md", "unmarked.txt", "wide.txt", "windows.txt"]
    assert await list_paths(root) == [*names, *below]


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("APPLES AND", "sub/plan.md:2: Buy apples and pears"),
        ("pears", "sub/plan.md:2: Buy apples and pears\nsub/plan.md:3: Sell pears"),
        ("pears buy", "sub/plan.md:2: Buy apples and pears"),
        ("caf\u00c9", "sub/deep/caf\u00e9.md:1: Caf\u00e9 opens at nine"),
        ("gr\u00fcsse", "latin.txt:1: Gr\u00fc\u00dfe"),
        ("secret", "No file contains 'secret'."),
        (".*", "No file contains '.*'."),
    ],
)
async def test_searches(root: Path, query: str, text: str) -> None:
    assert await search(root, query) == text


async def test_a_search_stops_at_its_limit(root: Path) -> None:
    found = await search(root, "pears", limit=1)
    assert found.splitlines() == ["sub/plan.md:2: Buy apples and pears", "[more matches; narrow the search]"]


async def test_a_walk_is_bounded(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (files, file_roots):
        monkeypatch.setattr(module, "MAX_WALKED_ENTRIES", 3)  # the first has a dot before its name
    assert await list_paths(root) == ["data.bin", "empty.txt", "[more files; narrow the pattern]"]
    found = await SearchFilesTool(FileRoots((root,))).call({"query": "third"}, CONTEXT)
    assert found.value == {"query": "third", "matches": [], "truncated": True}
    assert found.text == "No file of the first 3 entries contains 'third'; name a folder."
    nothing = await ListFilesTool(FileRoots((root,))).call({"pattern": "*.zzz"}, CONTEXT)
    assert nothing.text == "No files. None of the first 3 entries fits; name a folder with fewer."


async def test_the_second_root_is_tried_where_the_first_has_nothing(root: Path) -> None:
    roots = FileRoots((root / "sub", root))
    assert (await ReadFileTool(roots).call({"path": "plan.md"}, CONTEXT)).text.startswith("# Plan")
    assert (await ReadFileTool(roots).call({"path": "notes.txt"}, CONTEXT)).text == NOTES.rstrip()


async def test_a_root_may_itself_be_a_link_or_be_missing(root: Path, tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to(root, target_is_directory=True)
    assert await read(tmp_path / "alias", "notes.txt") == NOTES.rstrip()
    with pytest.raises(ToolError, match="there is no file 'notes"):
        await read(tmp_path / "missing", "notes.txt")


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read everything")
async def test_a_forbidden_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").touch(mode=0o000)
    with pytest.raises(ToolDeniedError, match="Permission denied"):
        await read(tmp_path, "mine.txt")


PARTS = ["..", ".", "", "/", "up", "root", "link.txt", "secret.txt", "sub", "round", "root-more", "notes.txt"]


@given(
    st.one_of(
        st.text(st.characters(exclude_categories=["Cs"]), max_size=40), st.lists(st.sampled_from(PARTS)).map("/".join)
    )
)
@settings(max_examples=100)
async def test_no_path_leads_out(root: Path, path: str) -> None:
    for written in (path, f"{root}/{path}"):
        try:
            text = await read(root, written or ".")
        except ToolError:
            continue
        assert SECRET not in text
        assert _is_below(root, written.strip())


def _is_below(root: Path, path: str) -> bool:
    return (root / path).resolve().is_relative_to(root.resolve())


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("note.txt", "did you mean notes.txt"),
        ("plan-2026.md", "did you mean sub/plan.md"),
        ("deep/cafe.md", "did you mean sub/deep/caf\u00e9.md"),
        ("zzz", "list_files shows the files"),
    ],
)
async def test_a_missing_file_names_similar_ones_and_no_path_of_the_machine(root: Path, path: str, hint: str) -> None:
    with pytest.raises(ToolInputError, match=hint) as caught:
        await read(root, path)
    assert str(root) not in caught.value.message
    for refused in ("../x", "/etc/passwd"):
        with pytest.raises(ToolDeniedError) as denied:
            await read(root, refused)
        assert str(root) not in denied.value.message


async def test_lines_are_numbered_where_they_are_to_be_cited(root: Path) -> None:
    assert await read(root, "notes.txt", line_numbers=True, start_line=2) == "2: second line\n3: third line"
    cut = await read(root, "notes.txt", line_numbers=True, max_lines=1)
    assert cut == "1: first line\n[3 lines; continue with start_line=2]"
    result = await ReadFileTool(FileRoots((root,))).call({"path": "notes.txt", "line_numbers": True}, CONTEXT)
    assert result.value["text"] == NOTES.rstrip()  # type: ignore[index,call-overload]


async def test_the_phrase_hides_no_line_that_says_it_in_other_words(tmp_path: Path) -> None:
    (tmp_path / "2025.md").write_text("The app launch is on 3 May.\n")
    (tmp_path / "2026.md").write_text("The launch of the mobile app moves to June.\nWe launched two apps.\nA launch.\n")
    assert (await search(tmp_path, "app launch")).splitlines() == [
        "2025.md:1: The app launch is on 3 May.",
        "2026.md:1: The launch of the mobile app moves to June.",
        "2026.md:2: We launched two apps.",
    ]
    assert await search(tmp_path, "apps launching", pattern="2025*") == "2025.md:1: The app launch is on 3 May."


@pytest.mark.parametrize(
    ("query", "line"),
    [
        ("cities growing", "The city grew, and growing costs a lot in every city."),
        ("rechnung bezahlen", "Die Rechnungen sind zu bezahlen."),
        ("ERR-42", "the job ended with err-42"),
        ("budget of the team", "Team budget: 500"),
    ],
)
async def test_words_are_found_in_other_forms(tmp_path: Path, query: str, line: str) -> None:
    (tmp_path / "a.md").write_text(f"something else\n{line}\n")
    assert await search(tmp_path, query) == f"a.md:2: {line}"
