"""`SkillLibrary`: the skills found beneath the roots, the first of a name wins, what is odd is noted."""

import difflib
import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent.core.config import Settings
from agent.core.errors import ConfigError, SkillUnknownError
from agent.core.models import Room
from agent.skills.model import Skill, is_skill_md
from agent.skills.parse import read_skill

MAX_DEPTH = 6
MAX_FOLDERS = 2_000
"""A root that was set to a home folder by mistake must not stall the start."""


@dataclass(frozen=True, slots=True)
class SkillRoot:
    """A folder of skills, and what to call it. One that is `required` is noted when it is missing."""

    path: Path
    origin: str
    required: bool = False


def skill_roots(settings: Settings, *, shipped: Path, cwd: Path, home: Path) -> list[SkillRoot]:
    """The roots in order of precedence: the operator's, the project's (where trusted), the user's, ours."""
    roots = [SkillRoot(path, "project", required=True) for path in settings.skills_dirs]
    if settings.trust_project_skills:
        roots += [SkillRoot(cwd / ".agents" / "skills", "project"), SkillRoot(cwd / ".claude" / "skills", "project")]
    if settings.skills_user_dir:
        roots.append(SkillRoot(home / ".agents" / "skills", "user"))
    return [*roots, SkillRoot(shipped, "shipped", required=True)]


class SkillLibrary:
    """The skills of this gateway, by name and alias. Of skills that share a name or alias the first given has it."""

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
        """What was skipped, shadowed or odd, one line each, by name."""

    @classmethod
    def load(cls, roots: Sequence[SkillRoot]) -> "SkillLibrary":
        """Read every skill beneath the roots. A malformed one is noted and skipped, never an error."""
        found: dict[str, Skill] = {}
        notes: list[str] = []
        for root in roots:
            for path in _skill_files(root, notes):
                skill = read_skill(path, root.origin)
                if isinstance(skill, str):
                    notes.append(skill)
                elif skill.name not in found:
                    found[skill.name] = skill
                    notes += skill.diagnostics
                elif os.path.realpath(path) != os.path.realpath(found[skill.name].path):
                    notes.append(f"skill {skill.name!r} in {path} is shadowed by {found[skill.name].path}")
        return cls(list(found.values()), notes)

    def get(self, name: str) -> Skill:
        """The skill of this name or alias; `SkillUnknownError` with near names."""
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

    def visible(self, allowed: Collection[str] | None) -> list[Skill]:
        """The skills a room allows by name or alias, in order of name; all for None."""
        names = None if allowed is None else {self._resolve(name) for name in allowed}
        return [skill for skill in self if names is None or skill.name in names]

    def _resolve(self, name: str) -> str:
        """A skill's own name for its alias; what is no alias stays."""
        return name if name in self._skills else self._aliases.get(name, name)


def refuse_unknown_skills(rooms: Iterable[Room], skills: SkillLibrary) -> None:
    """Raise `ConfigError` for a room whose skill there is none of."""
    for room in rooms:
        if room.skill is not None and room.skill not in skills:
            near = ", ".join(difflib.get_close_matches(room.skill, [skill.name for skill in skills], n=3))
            known = f"did you mean {near}?" if near else "`stepgate skills list` shows those there are"
            raise ConfigError(f"room {room.id!r}: skill: there is no skill {room.skill!r}; {known}")


def _skill_files(root: SkillRoot, notes: list[str]) -> list[Path]:
    """Every SKILL.md beneath the root, and the flat `*.md` directly in it, in order.

    Symlinks are followed (installers link skills from one client's folder to another's); a folder that was seen is
    not entered again, which ends loops."""
    if not os.path.isdir(root.path):  # noqa: PTH112 - Path.is_dir raises where permission is missing
        if root.required:
            notes.append(f"the skills folder {root.path} does not exist or cannot be entered")
        return []

    def unreadable(error: OSError) -> None:
        notes.append(f"the folder {error.filename} cannot be looked into ({error.strerror})")

    files: list[Path] = []
    seen: set[str] = set()
    for count, (current, folders, names) in enumerate(os.walk(root.path, followlinks=True, onerror=unreadable)):
        if count >= MAX_FOLDERS:
            notes.append(f"skills below {root.path} beyond {MAX_FOLDERS:,} folders are not looked at")
            break
        here, real = Path(current), os.path.realpath(current)
        card = next((name for name in sorted(names) if is_skill_md(name)), None)
        deepest = len(here.relative_to(root.path).parts) >= MAX_DEPTH
        known = real in seen
        seen.add(real)
        # What lies below a SKILL.md belongs to that skill.
        enter = card is None and not deepest and not known
        folders[:] = sorted(name for name in folders if not name.startswith(".")) if enter else []
        if known:
            continue
        if card is not None:
            files.append(here / card)
        elif here == root.path:
            files += [here / name for name in names if _is_flat_skill(Path(name))]
    return sorted(files)


def _is_flat_skill(name: Path) -> bool:
    """A file of an older system; documents such as README.md and CHANGELOG.md are no skills."""
    return name.suffix == ".md" and not name.stem.isupper() and not name.stem.startswith(".")
