"""Skill folders written for one test."""

from pathlib import Path

from agent.skills import Skill, read_skill


def write_skill(root: Path, name: str, front: str | None = None, body: str = "Do it.") -> Path:
    """A folder `name` beneath `root` with a SKILL.md of these fields; its path."""
    folder = root / name
    folder.mkdir(parents=True)
    fields = f"name: {name.rsplit('/', 1)[-1]}\ndescription: Does a thing." if front is None else front
    (folder / "SKILL.md").write_text(f"---\n{fields}\n---\n\n{body}\n", "utf-8")
    return folder


def loaded(root: Path, name: str, front: str | None = None, body: str = "Do it.") -> Skill:
    """That folder as a skill, which it must be."""
    skill = read_skill(write_skill(root, name, front, body) / "SKILL.md", "test")
    assert isinstance(skill, Skill), skill
    return skill


def refused(root: Path, name: str, front: str) -> str:
    """Why that folder is no skill, which it must not be."""
    reason = read_skill(write_skill(root, name, front) / "SKILL.md", "test")
    assert isinstance(reason, str), reason
    return reason
