"""Agent Skills folders: those of others are served as they are, and ours are valid where others read them."""

import base64
import hashlib
from pathlib import Path

import httpx
import pytest

from agent.skills.validate import validate_skill
from tests.integration.conftest import Serve
from tests.support.conformance_wire import modern

THEIRS = {
    "pdf-forms": (
        "name: pdf-forms\ndescription: Fill in PDF forms.\nlicense: Apache-2.0\n"
        "compatibility: needs Python 3.11\nmetadata:\n  author: somebody\n  version: '1.4'\n"
        "allowed-tools: Read Bash(git:*)\n"
    ),
    "release-notes": (
        "name: release-notes\ndescription: >-\n  Write release notes\n  from a list of changes.\n"
        "argument-hint: '[version]'\nmodel: opus\nhooks: {}\n"
    ),
    "brand": "name: brand\ndescription: The colours of the brand.\nallowed-tools:\n  - Read\n  - Grep\n",
}
BROKEN = "name: broken\nlicense: MIT\n"
BODY = "# How\n\nRead `references/guide.md`, then run scripts/run.py.\n"


def write_skills(folder: Path) -> dict[str, str]:
    """Skills as other projects keep them, with scripts and references; the checksum of every file."""
    for name, front in {**THEIRS, "broken": BROKEN}.items():
        home = folder / name
        (home / "scripts").mkdir(parents=True)
        (home / "references").mkdir()
        (home / "SKILL.md").write_text(f"---\n{front}---\n{BODY}")
        (home / "scripts" / "run.py").write_text("print('run')\n")
        (home / "references" / "guide.md").write_text("Guide.\n")
    return list_checksums(folder)


def list_checksums(folder: Path) -> dict[str, str]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.mark.row("Scard-04")
async def test_skills_of_others_are_served_as_they_are_and_a_broken_one_is_named(serve: Serve, tmp_path: Path) -> None:
    before = write_skills(tmp_path / "skills")
    async with serve(skills_dirs=(tmp_path / "skills",)) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        listed = (await client.get("/v1/skills")).json()
        found = {one["name"]: one for one in listed["data"]}
        for name in THEIRS:
            uri = f"skill://{name}/SKILL.md"
            card = (await modern(url, "resources/read", {"uri": uri}))["result"]["contents"][0]["text"]
            assert card == (tmp_path / "skills" / name / "SKILL.md").read_text()
            guide = (await modern(url, "resources/read", {"uri": f"skill://{name}/references/guide.md"}))["result"]
            assert guide["contents"][0]["text"] == "Guide.\n"
    assert set(THEIRS) <= set(found)
    assert found["release-notes"]["description"] == "Write release notes from a list of changes."
    assert (found["pdf-forms"]["license"], found["pdf-forms"]["compatibility"]) == ("Apache-2.0", "needs Python 3.11")
    assert "read_file" in found["brand"]["allowed_tools"], "other systems' names of tools are understood"
    assert "broken" not in found
    assert any("'broken' is skipped: it has no description" in note for note in listed["diagnostics"])
    assert list_checksums(tmp_path / "skills") == before, "nothing in them was changed"


@pytest.mark.row("Scard-05", "Scard-03")
async def test_the_shipped_skills_are_valid_where_a_client_keeps_them(serve: Serve, tmp_path: Path) -> None:
    async with serve() as url:
        entries = (await modern(url, "skills/list", {}))["result"]["skills"]
        for entry in entries:
            folder = tmp_path / "theirs" / entry["frontmatter"]["name"]
            for file in entry["resources"]:
                contents = (await modern(url, "resources/read", {"uri": file["uri"]}))["result"]["contents"][0]
                data = contents["text"].encode() if "text" in contents else base64.b64decode(contents["blob"])
                assert file["digest"] == f"sha256:{hashlib.sha256(data).hexdigest()}"
                path = folder / file["uri"].removeprefix(f"skill://{folder.name}/")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
            assert validate_skill(folder) == []
    assert len(entries) >= 5
