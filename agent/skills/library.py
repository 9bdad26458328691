"""`SkillLibrary`: finds skills below the roots. The first of a name wins; problems are collected."""

import difflib
import os
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from agent.core.errors import SkillUnknownError
from agent.core.settings import Settings
from agent.core.settings.rooms import USER_SKILLS
from agent.skills.model import Skill, is_skill_md
from agent.skills.parse import read_skill
from agent.text.plurals import format_count

MAX_DEPTH = 6
MAX_FOLDERS = 2_000
"""A root that is a home folder by mistake must not delay the start."""
MAX_HIDDEN_FOLDERS = 500
"""Folders below a dot folder that are searched for skills, to report them."""


@dataclass(frozen=True, slots=True)
class SkillRoot:
    """A folder of skills and its label. A missing `required` folder is reported."""

    path: Path
    origin: str
    required: bool = False


def list_skill_roots(settings: Settings, *, shipped: Path) -> list[SkillRoot]:
    """The roots in order of precedence: the operator's, then the shipped one. The user's own folder may be missing."""
    user = USER_SKILLS.expanduser()
    paths = [path.expanduser() for path in settings.skills_dirs]
    roots = [SkillRoot(path, "user") if path == user else SkillRoot(path, "project", required=True) for path in paths]
    return [*roots, SkillRoot(shipped, "shipped", required=True)]


class SkillLibrary:
    """The skills of this gateway, by name and alias. If several share a name or alias, the first has it."""

    def __init__(self, skills: Sequence[Skill], diagnostics: Sequence[str] = ()) -> None:
        firsts: dict[str, Skill] = {}
        for skill in skills:
            firsts.setdefault(skill.name, skill)
        self._skills = dict(sorted(firsts.items()))
        self._aliases: dict[str, str] = {}
        for skill in firsts.values():
            for alias in skill.aliases:
                self._aliases.setdefault(alias, skill.name)
        self.diagnostics = tuple(diagnostics)
        """The skills that were skipped, shadowed or malformed, one line each, with the name."""

    @classmethod
    def load(cls, roots: Sequence[SkillRoot]) -> "SkillLibrary":
        """Reads every skill below the roots. Reports and skips malformed ones."""
        firsts: dict[str, Skill] = {}
        notes: list[str] = []
        for root in roots:
            for path in _find_skill_files(root, notes):
                skill = read_skill(path, root.origin)
                if isinstance(skill, str):
                    notes.append(skill)
                elif skill.name not in firsts:
                    firsts[skill.name] = skill
                    notes += skill.diagnostics
                elif os.path.realpath(path) != os.path.realpath(firsts[skill.name].path):
                    notes.append(f"skill {skill.name!r} in {path} is shadowed by {firsts[skill.name].path}")
        return cls(list(firsts.values()), notes)

    def get(self, name: str) -> Skill:
        """The skill of this name or alias. Raises `SkillUnknownError` with similar names."""
        try:
            return self._skills[self._resolve(name)]
        except KeyError:
            near = difflib.get_close_matches(name, self._skills, n=3)
            hint = f"did you mean {', '.join(near)}?" if near else f"known: {', '.join([*self._skills][:20]) or 'none'}"
            raise SkillUnknownError(f"there is no skill named {name!r}; {hint}", agent_id="skills") from None

    def __contains__(self, name: object) -> bool:
        return name in self._skills or name in self._aliases

    def __iter__(self) -> Iterator[Skill]:
        return iter(self._skills.values())

    def list_visible(self, allowed: Collection[str] | None) -> list[Skill]:
        """The skills that a room allows by name or alias, in order of name; all for None."""
        names = None if allowed is None else {self._resolve(name) for name in allowed}
        return [skill for skill in self if names is None or skill.name in names]

    def _resolve(self, name: str) -> str:
        """The skill's own name for an alias, and any other name unchanged."""
        return name if name in self._skills else self._aliases.get(name, name)


def _find_skill_files(root: SkillRoot, notes: list[str]) -> list[Path]:
    """Every SKILL.md below the root, and the flat `*.md` files directly in it, in order.

    Follows symlinks, since installers link skills between the folders of several clients. Enters each folder once,
    which ends loops.
    """
    if not os.path.isdir(root.path):  # noqa: PTH112 - Path.is_dir raises where permission is missing
        if root.required:
            notes.append(f"the skills folder {root.path} does not exist or cannot be entered")
        return []

    def unreadable(error: OSError) -> None:
        notes.append(f"the folder {error.filename} cannot be read ({error.strerror})")

    files: list[Path] = []
    seen: set[str] = set()
    for count, (current, folders, names) in enumerate(os.walk(root.path, followlinks=True, onerror=unreadable)):
        if count >= MAX_FOLDERS:
            notes.append(f"skills below {root.path} beyond {MAX_FOLDERS:,} folders are ignored")
            break
        here, real = Path(current), os.path.realpath(current)
        card = next((name for name in sorted(names) if is_skill_md(name)), None)
        deepest = len(here.relative_to(root.path).parts) >= MAX_DEPTH
        was_seen = real in seen
        seen.add(real)
        # Everything below a SKILL.md belongs to that skill.
        enter = card is None and not deepest and not was_seen
        hidden = [here / name for name in sorted(folders) if name.startswith(".")] if enter else []
        notes += [note for folder in hidden if (note := _describe_hidden_skills(folder)) is not None]
        folders[:] = sorted(name for name in folders if not name.startswith(".")) if enter else []
        if was_seen:
            continue
        if card is not None:
            files.append(here / card)
        elif here == root.path:
            files += [here / name for name in names if _is_flat_skill(Path(name))]
    return sorted(files)


def _describe_hidden_skills(folder: Path) -> str | None:
    """A note if skills are ignored because their folder's name starts with a dot; None if there are none."""
    walk = islice(os.walk(folder), MAX_HIDDEN_FOLDERS)
    count = sum(any(is_skill_md(name) for name in names) for _, _, names in walk)
    if not count:
        return None
    return (
        f"{format_count(count, 'skill')} below {folder} ignored, because the folder's name starts with a dot; add the "
        "folder to AGENT_SKILLS_DIRS"
    )


def _is_flat_skill(name: Path) -> bool:
    """Whether this is a single-file skill of an older system. README.md, CHANGELOG.md and the like are not."""
    return name.suffix == ".md" and not name.stem.isupper() and not name.stem.startswith(".")
