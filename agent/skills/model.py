"""A `Skill`: its fields in memory, its body and files on disk until they are used."""

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from agent.core.errors import SkillUnknownError, ToolError, ToolInputError
from agent.core.models import Tier
from agent.skills.front import split_front_matter

MAX_FILES = 200
MAX_FILE_BYTES = 200_000
"""More than a model's context holds. A skill with larger files should say which part to read."""
DEFAULT_TURNS = 8


def is_skill_md(name: str) -> bool:
    """Whether a file of this name makes its folder a skill. Some authors write it in lower case."""
    return name in ("SKILL.md", "skill.md")


@dataclass(frozen=True, slots=True)
class Skill:
    """One skill. `allowed_tools` are names of our tools; empty if the skill declares none."""

    name: str
    description: str
    path: Path
    """The SKILL.md (or the flat file)."""
    origin: str = "shipped"
    license: str = ""
    compatibility: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)
    allowed_tools: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    argument_hint: str | None = None
    user_invocable: bool = True
    model_invocable: bool = True
    tier: Tier | None = None
    max_turns: int = DEFAULT_TURNS
    briefing: str | None = None
    """The tool that runs before the skill of a room and whose result the skill gets (`metadata.agent-briefing`)."""
    rules_tools: tuple[str, ...] = ()
    """Tools that do the work of the skill without a model (`metadata.agent-rules-tools`)."""
    diagnostics: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        """The skill's folder."""
        return self.path.parent

    @property
    def is_flat(self) -> bool:
        """Whether this is a single file of an older system, without a folder of its own."""
        return not is_skill_md(self.path.name)

    def select_tools(self, available: Collection[str]) -> tuple[str, ...]:
        """The tools this skill may call, out of `available`."""
        return tuple(name for name in self.allowed_tools if name in available)

    def select_rules_tools(self, available: Collection[str]) -> tuple[str, ...]:
        """The tools that rules may call in the skill's place, out of `available`: those named for rules first,
        then its own.
        """
        return tuple(name for name in dict.fromkeys((*self.rules_tools, *self.allowed_tools)) if name in available)

    def read_body(self) -> str:
        """Reads the instructions. Raises `SkillUnknownError` if the file has gone since it was loaded."""
        try:
            text = self.path.read_text("utf-8-sig", errors="replace")
        except OSError as error:
            raise SkillUnknownError(
                f"skill {self.name!r} can no longer be read from {self.path} ({error.strerror}); "
                "restore the file or restart without it",
                agent_id=self.name,
            ) from error
        parts = split_front_matter(text)
        return parts[1] if parts else text.strip()

    def render_instructions(self, arguments: str) -> str:
        """The body with `$ARGUMENTS` and `{baseDir}` filled in. Embedded commands stay text."""
        return self.read_body().replace("{baseDir}", ".").replace("$ARGUMENTS", arguments)

    def list_files(self) -> list[str]:
        """The folder's other files as relative paths in order, at most 200."""
        if self.is_flat:
            return []
        files: list[str] = []
        for root, folders, names in os.walk(self.folder):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for name in sorted(names):
                path = Path(root, name)
                if path != self.path and not name.startswith(".") and _is_plain_file(path):
                    files.append(path.relative_to(self.folder).as_posix())
                    if len(files) >= MAX_FILES:
                        return files
        return files

    def read_file(self, relative: str) -> str:
        """One of the skill's files. Raises `ToolInputError` for anything but a file inside of the folder,
        `ToolError` for one that is too large or no text.
        """
        path = self._resolve_inside_folder(relative)
        try:
            if path.stat().st_size > MAX_FILE_BYTES:
                raise ToolError(
                    f"{relative} is larger than the limit of {MAX_FILE_BYTES:,} bytes; continue without it",
                    agent_id=self.name,
                )
            return path.read_text("utf-8-sig")
        except UnicodeDecodeError as error:
            raise ToolError(f"{relative} is not UTF-8 text; continue without it", agent_id=self.name) from error
        except OSError as error:
            raise ToolError(f"{relative} cannot be read ({error.strerror})", agent_id=self.name) from error

    def _resolve_inside_folder(self, relative: str) -> Path:
        """The file's path. Resolves every symlink first, so that none leads out of the folder."""
        try:
            path = self.folder.joinpath(relative).resolve(strict=True)
            inside = not self.is_flat and path.is_relative_to(self.folder.resolve()) and path.is_file()
        except (OSError, RuntimeError, ValueError):  # absent; a symlink loop; NUL or a lone surrogate
            inside = False
        if not inside:
            listed = ", ".join(self.list_files()[:20]) or "none"
            raise ToolInputError(
                f"skill {self.name!r} has no file {relative[:200]!r}; its files: {listed}", agent_id=self.name
            )
        return path


def _is_plain_file(path: Path) -> bool:
    try:
        return path.is_file() and not path.is_symlink()
    except OSError:  # its folder can be listed but not entered
        return False
