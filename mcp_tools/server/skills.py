"""Skills for MCP clients: as prompts, and as `skill://` resources.

The extension `io.modelcontextprotocol/skills` (SEP-2640) adds `skills/list` and `skills/get`, which return each skill's
front matter and the digests of its files.
"""

import asyncio
import base64
import hashlib
import json
import logging
import re
from functools import lru_cache
from pathlib import Path
from typing import Any

import mcp_types as types
import yaml
from mcp.shared.exceptions import MCPError
from pydantic import JsonValue

from agent.core.errors import SkillUnknownError
from agent.core.models import JsonObject
from agent.runs.trace_details import shorten
from agent.skills import Skill, SkillLibrary
from agent.skills.front import split_front_matter
from mcp_tools.server.pagination import paginate
from mcp_tools.server.stored_prompts import make_prompt, make_prompt_result, make_task_argument

log = logging.getLogger(__name__)

SKILLS_EXTENSION = "io.modelcontextprotocol/skills"
SKILL_FILE = "SKILL.md"
MAX_BYTES = 16 * 1024 * 1024
"""The extension's limit for the total size of a skill's files."""
MAX_DESCRIPTION, MAX_COMPATIBILITY = 1_024, 500
"""Characters that the Agent Skills format allows."""
TTL_MS = 60_000
"""Skills are read from disk for each request, so edits are visible after this time."""
_CACHE_HINT: JsonObject = {"ttlMs": TTL_MS, "cacheScope": "private"}
_URI_NAME = re.compile(r"(?!.*--)[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?")


class SkillGetParams(types.RequestParams):
    """Parameters of `skills/get`."""

    uri: str


class SkillViews:
    """The skills of a gateway as prompts, resources and entries of the extension."""

    def __init__(self, skills: SkillLibrary) -> None:
        self._skills = skills

    def list_prompts(self) -> list[types.Prompt]:
        """The skills that a user may invoke, as prompts."""
        return [
            make_prompt(skill.name, skill.description, make_task_argument(skill.argument_hint))
            for skill in self._skills
            if skill.user_invocable
        ]

    def get_prompt(self, name: str, task: str) -> types.GetPromptResult:
        """A skill's instructions with the task filled in. Raises `MCPError` for an unknown skill."""
        try:
            skill = self._skills.get(name)
            text = skill.render_instructions(task)
        except SkillUnknownError as error:
            raise MCPError(types.INVALID_PARAMS, error.message) from error
        if task and task not in text:
            text = f"{text}\n\nTask: {task}"
        return make_prompt_result(skill.description, text)

    def list_resources(self) -> list[types.Resource]:
        """The SKILL.md of every skill whose name is valid in a URI."""
        return [
            types.Resource(
                uri=_make_uri(skill), name=skill.name, description=skill.description, mime_type="text/markdown"
            )
            for skill in self._skills
            if _URI_NAME.fullmatch(skill.name)
        ]

    async def read_resource(self, uri: str) -> types.ReadResourceResult | None:
        """One file of a skill, or None if the URI names none."""
        name, _, relative = uri.removeprefix("skill://").partition("/")
        if not uri.startswith("skill://") or name not in {skill.name for skill in self._skills}:
            return None
        return await asyncio.to_thread(_read_skill_file, self._skills.get(name), uri, relative)

    async def list_skills(self, params: types.PaginatedRequestParams | None) -> JsonObject:
        """Handles `skills/list`: pages in order of name. Only the files of the requested page are read."""
        page, cursor = paginate(list(self._skills), lambda skill: skill.name, "skills/list", params)
        entries = await asyncio.to_thread(lambda: [_build_entry(skill) for skill in page])
        more: JsonObject = {"nextCursor": cursor} if cursor is not None else {}
        return {"skills": [entry for entry in entries if entry is not None], **more, **_CACHE_HINT}

    async def get_skill(self, uri: str) -> JsonObject:
        """Handles `skills/get`. Raises `MCPError` for an unknown URI."""
        skill = next((skill for skill in self._skills if _make_uri(skill) == uri), None)
        entry = await asyncio.to_thread(_build_entry, skill) if skill is not None else None
        if entry is None:
            raise MCPError(types.INVALID_PARAMS, f"there is no skill at {shorten(uri, 100)!r}; list them: skills/list")
        return {"skill": entry, **_CACHE_HINT}


def _make_uri(skill: Skill, relative: str = SKILL_FILE) -> str:
    return f"skill://{skill.name}/{relative}"


def _build_entry(skill: Skill) -> JsonObject | None:
    """The entry of a skill; None if its files cannot be read or are too large, or its front matter breaks the
    format.

    Clients reject the whole list for one such entry. The front matter must be served unchanged, because clients compare
    it with the file, so it cannot be corrected either."""
    try:
        files = {relative: skill.folder.joinpath(relative).read_bytes() for relative in skill.list_files()}
        card = skill.path.read_bytes()
    except OSError:
        return None
    front = _parse_front_matter(card)
    problem = _find_format_problem(skill, front)
    if problem is None and sum(map(len, files.values())) + len(card) > MAX_BYTES:
        problem = f"its files have more than {MAX_BYTES:,} bytes"
    if problem is not None:
        _log_left_out(skill.path, skill.name, problem)
        return None
    listed: list[JsonValue] = [
        _describe_file(skill, relative, data) for relative, data in {SKILL_FILE: card, **files}.items()
    ]
    return {"uri": _make_uri(skill), "frontmatter": front, "resources": listed}


def _find_format_problem(skill: Skill, front: dict[str, Any] | None) -> str | None:
    """Describes how the front matter breaks the Agent Skills format; None if it does not."""
    if front is None:
        return "its front matter is not a valid YAML mapping"
    if front.get("name") != skill.name or not _URI_NAME.fullmatch(skill.name):
        return "its name is not 1 to 64 lowercase letters, digits and single hyphens"
    for field, longest in (("description", MAX_DESCRIPTION), ("license", None), ("allowed-tools", None),
                           ("compatibility", MAX_COMPATIBILITY)):  # fmt: skip
        value = front.get(field, "")
        if not isinstance(value, str):
            return f"its {field} is not text"
        if longest is not None and len(value) > longest:
            return f"its {field} has {len(value):,} characters; the format allows {longest:,}"
    if not front.get("description", "").strip():
        return "it has no description"
    metadata = front.get("metadata", {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        return "its metadata is not a mapping of texts; put numbers in quotes"
    return None


@lru_cache(maxsize=1_000)  # one message for each skill and problem, not one for each request
def _log_left_out(path: Path, name: str, problem: str) -> None:
    log.warning("skill %r in %s is not in skills/list for MCP clients: %s", name, path, problem)


def _describe_file(skill: Skill, relative: str, data: bytes) -> JsonObject:
    return {
        "uri": _make_uri(skill, relative),
        "digest": f"sha256:{hashlib.sha256(data).hexdigest()}",
        "size": len(data),
    }


def _read_skill_file(skill: Skill, uri: str, relative: str) -> types.ReadResourceResult | None:
    """A file that the skill lists, so that no path leads out of its folder; None for any other."""
    if relative != SKILL_FILE and relative not in skill.list_files():
        return None
    try:
        data = (skill.path if relative == SKILL_FILE else skill.folder / relative).read_bytes()
    except OSError:
        return None
    contents: types.TextResourceContents | types.BlobResourceContents
    try:
        kind = "text/markdown" if relative.endswith(".md") else "text/plain"
        contents = types.TextResourceContents(uri=uri, mime_type=kind, text=data.decode())
    except UnicodeDecodeError:
        blob = base64.b64encode(data).decode()
        contents = types.BlobResourceContents(uri=uri, mime_type="application/octet-stream", blob=blob)
    return types.ReadResourceResult(contents=[contents], ttl_ms=TTL_MS)


def _parse_front_matter(card: bytes) -> dict[str, Any] | None:
    """The front matter as JSON, values typed as in YAML 1.2; None if it is not a mapping."""
    parts = split_front_matter(card.decode("utf-8-sig", errors="replace").replace("\r\n", "\n"))
    try:
        front = yaml.load(parts[0], _CoreLoader) if parts else None  # noqa: S506 - a SafeLoader
        return json.loads(json.dumps(front, allow_nan=False)) if isinstance(front, dict) else None
    except (yaml.YAMLError, TypeError, ValueError, RecursionError):
        return None


class _CoreLoader(yaml.SafeLoader):
    """YAML's core schema, as other clients read it: no dates, and `no` is text."""


_CoreLoader.yaml_implicit_resolvers = {}


for _tag, _pattern, _first in (
    ("null", r"~|null|Null|NULL|", "~nN\0"),
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?(?:0|[1-9][0-9]*)", "-+0123456789"),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9]+\.[0-9]*)(?:[eE][-+][0-9]+)?", "-+.0123456789"),
):
    _CoreLoader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_pattern})$"), list(_first))
