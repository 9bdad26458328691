"""Skills for MCP clients: as prompts, and as `skill://` resources by the extension `io.modelcontextprotocol/skills`
(SEP-2640): `skills/list` and `skills/get` give each skill's front matter and the digests of its files."""

import asyncio
import base64
import hashlib
import json
import re
from typing import Any

import mcp_types as types
import yaml
from mcp.shared.exceptions import MCPError
from pydantic import JsonValue

from agent.core.errors import SkillUnknownError
from agent.core.models import JsonObject
from agent.core.trace import shorten
from agent.skills import Skill, SkillLibrary
from agent.skills.front import split_front
from mcp_tools.server_pages import page_of

SKILLS_EXTENSION = "io.modelcontextprotocol/skills"
CARD = "SKILL.md"
MAX_BYTES = 16 * 1024 * 1024
"""The extension's limit for all files of a skill together."""
TTL_MS = 60_000
"""Skills are read from disk when asked for; edits show within a minute."""
_CACHE: JsonObject = {"ttlMs": TTL_MS, "cacheScope": "private"}
_NAME = re.compile(r"(?!.*--)[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?")


class SkillGetParams(types.RequestParams):
    """Parameters of `skills/get`."""

    uri: str


class SkillShelf:
    """The skills of a gateway as clients see them."""

    def __init__(self, skills: SkillLibrary) -> None:
        self._skills = skills

    def prompts(self) -> list[types.Prompt]:
        """Every skill a person may call."""
        return [
            types.Prompt(
                name=skill.name,
                description=shorten(skill.description, 1024),
                arguments=[
                    types.PromptArgument(name="task", description=skill.argument_hint or "what to do", required=False)
                ],
            )
            for skill in self._skills
            if skill.user_invocable
        ]

    def prompt(self, name: str, task: str) -> types.GetPromptResult:
        """A skill's instructions, with the task filled in."""
        try:
            skill = self._skills.get(name)
            text = skill.instructions(task)
        except SkillUnknownError as error:
            raise MCPError(types.INVALID_PARAMS, error.message) from error
        if task and task not in text:
            text = f"{text}\n\nTask: {task}"
        message = types.PromptMessage(role="user", content=types.TextContent(type="text", text=text))
        return types.GetPromptResult(description=shorten(skill.description, 1024), messages=[message])

    def resources(self) -> list[types.Resource]:
        """The SKILL.md of every skill whose name can stand in a URI."""
        return [
            types.Resource(uri=_uri(skill), name=skill.name, description=skill.description, mime_type="text/markdown")
            for skill in self._skills
            if _NAME.fullmatch(skill.name)
        ]

    async def read(self, uri: str) -> types.ReadResourceResult | None:
        """One file of a skill; None when the URI names none."""
        name, _, relative = uri.removeprefix("skill://").partition("/")
        if not uri.startswith("skill://") or name not in {skill.name for skill in self._skills}:
            return None
        return await asyncio.to_thread(_read, self._skills.get(name), uri, relative)

    async def list(self, params: types.PaginatedRequestParams | None) -> JsonObject:
        """The result of `skills/list`: in pages, in order of name; only the files of a page are read."""
        page, cursor = page_of(list(self._skills), lambda skill: skill.name, "skills/list", params)
        entries = await asyncio.to_thread(lambda: [_entry(skill) for skill in page])
        more: JsonObject = {"nextCursor": cursor} if cursor is not None else {}
        return {"skills": [entry for entry in entries if entry is not None], **more, **_CACHE}

    async def get(self, uri: str) -> JsonObject:
        """The result of `skills/get`."""
        skill = next((skill for skill in self._skills if _uri(skill) == uri), None)
        entry = await asyncio.to_thread(_entry, skill) if skill is not None else None
        if entry is None:
            raise MCPError(types.INVALID_PARAMS, f"there is no skill at {shorten(uri, 100)!r}; list them: skills/list")
        return {"skill": entry, **_CACHE}


def _uri(skill: Skill, relative: str = CARD) -> str:
    return f"skill://{skill.name}/{relative}"


def _entry(skill: Skill) -> JsonObject | None:
    """A skill of the list; None for one that another client could not use as it is: a front matter without the
    fields the format requires or with another name, files that are too large or have gone."""
    try:
        files = {relative: skill.folder.joinpath(relative).read_bytes() for relative in skill.files()}
        card = skill.path.read_bytes()
    except OSError:
        return None
    front = _front(card)
    fits = front is not None and front.get("name") == skill.name and bool(front.get("description"))
    if not fits or not _NAME.fullmatch(skill.name) or sum(map(len, files.values())) + len(card) > MAX_BYTES:
        return None
    listed: list[JsonValue] = [_triple(skill, relative, data) for relative, data in {CARD: card, **files}.items()]
    return {"uri": _uri(skill), "frontmatter": front, "resources": listed}


def _triple(skill: Skill, relative: str, data: bytes) -> JsonObject:
    return {"uri": _uri(skill, relative), "digest": f"sha256:{hashlib.sha256(data).hexdigest()}", "size": len(data)}


def _read(skill: Skill, uri: str, relative: str) -> types.ReadResourceResult | None:
    """Only what the skill lists can be read, so no path leads out of its folder."""
    if relative != CARD and relative not in skill.files():
        return None
    try:
        data = (skill.path if relative == CARD else skill.folder / relative).read_bytes()
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


def _front(card: bytes) -> dict[str, Any] | None:
    """The front matter as JSON, values of the types YAML 1.2 gives them; None when it is no mapping."""
    parts = split_front(card.decode("utf-8-sig", errors="replace").replace("\r\n", "\n"))
    try:
        front = yaml.load(parts[0], _CoreLoader) if parts else None  # noqa: S506 - a SafeLoader
        return json.loads(json.dumps(front)) if isinstance(front, dict) else None
    except (yaml.YAMLError, TypeError, ValueError, RecursionError):
        return None


class _CoreLoader(yaml.SafeLoader):
    """YAML's core schema, as other clients read it: no dates, and `no` is a word."""


_CoreLoader.yaml_implicit_resolvers = {}


for _tag, _pattern, _first in (
    ("null", r"~|null|Null|NULL|", "~nN\0"),
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?(?:0|[1-9][0-9]*)", "-+0123456789"),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9]+\.[0-9]*)(?:[eE][-+][0-9]+)?", "-+.0123456789"),
):
    _CoreLoader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_pattern})$"), list(_first))
