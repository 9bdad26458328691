"""Writes skill folders for one test."""

from pathlib import Path

from agent.skills import Skill, read_skill


def write_skill(root: Path, name: str, front: str | None = None, body: str = "Do it.") -> Path:
    """Writes a folder `name` below `root` with a SKILL.md of these fields and returns its path."""
    folder = root / name
    folder.mkdir(parents=True)
    fields = f"name: {name.rsplit('/', 1)[-1]}\ndescription: Does a thing." if front is None else front
    (folder / "SKILL.md").write_text(f"---\n{fields}\n---\n\n{body}\n", "utf-8")
    return folder


def load_skill(root: Path, name: str, front: str | None = None, body: str = "Do it.") -> Skill:
    """Writes and loads a skill, which must succeed."""
    skill = read_skill(write_skill(root, name, front, body) / "SKILL.md", "test")
    assert isinstance(skill, Skill), skill
    return skill


def load_refusal(root: Path, name: str, front: str) -> str:
    """Writes and loads a skill, which must fail, and returns the reason."""
    reason = read_skill(write_skill(root, name, front) / "SKILL.md", "test")
    assert isinstance(reason, str), reason
    return reason
