"""The forms of a generated tool: as routes and commands send a version, as tools and people read it, and as a tool is
asked for.

A field of a version is defined in `ToolVersion`, and in `Candidate` if making the tool yields it
(`engine/generated_tools/models.py`). It is added here to each form that has it, and stored without a column of its own.
A field of the request is one of `ToolRequest` there, and is then an option of `stepgate tools generate`, too.
"""

import difflib
import re
from dataclasses import fields
from typing import Any

from pydantic import Field

from agent.core.models import JsonObject
from agent.core.principal import Principal
from agent.core.record_item import RecordItem
from agent.tools import declare_roles
from agent.tools.stored_things import Arguments
from gateway.doors.strict_body import StrictBody
from gateway.features.studio.engine.generated_tools.models import (
    CodeReview,
    Manifest,
    SandboxTier,
    ToolRequest,
    ToolVersion,
    VersionState,
)
from gateway.features.studio.engine.generated_tools.service import GeneratedTools

GENERATE_ROLES = declare_roles(description="content", name="id", permissions="other")
"""The roles of `ToolGenerateInput`."""
REFINE_ROLES = declare_roles(name="id", change="content", permissions="other")
"""The roles of `ToolRefineInput`."""


class ToolVersionItem(RecordItem):
    """A version of a generated tool. `is_active`: it is the one in use."""

    name: str
    version: int
    state: VersionState
    is_active: bool
    from_outside: bool = Field(
        default=False,
        description="whether a model asked for it that had read external text, and nobody has applied it since",
    )
    description: str
    sha256: str = Field(description="of code and permissions; an approval is bound to it")
    permissions: Manifest = Field(validation_alias="manifest")
    sandbox: SandboxTier = Field(validation_alias="tier")
    warnings: list[str]
    parent: int | None
    author: str
    approved_by: str
    created_at: float = Field(description="UTC seconds since 1970")
    run_id: str


class ToolVersionDetail(ToolVersionItem):
    """A version with its code, its tests and its review. `wider`: what it may do and the version in use may not."""

    code: str
    tests: list[str]
    review: CodeReview
    wider: list[str]


class ToolLine(RecordItem):
    """A generated tool with its newest version."""

    name: str
    version: int
    state: str
    is_active: bool
    description: str
    from_outside: bool = False


class ToolVersionOutput(ToolLine):
    """A version with everything that a person reviews. `versions` are those there are, the newest first."""

    sha256: str
    code: str
    tests: list[str]
    permissions: JsonObject
    review: JsonObject
    warnings: list[str]
    wider: list[str] = Field(description="what it may do and the version in use may not")
    versions: list[str]


class GenerateBody(StrictBody):
    """What a tool should do. `permissions` is the most it may ask for; unset: what its description needs."""

    description: str
    name: str | None = None
    permissions: Manifest | None = None

    def to_request(self) -> ToolRequest:
        """The tool that is asked for."""
        return ToolRequest(**dict(self))


class ToolGenerateInput(Arguments):
    """Arguments of `tool_generate`."""

    description: str = Field(min_length=1, max_length=8_000, description="completely what the tool takes and returns")
    name: str = Field(default="", max_length=300, description="its name; empty: chosen by the model")
    permissions: Manifest | None = Field(default=None, description="the most it may ask for; unset: what it needs")

    def to_request(self) -> ToolRequest:
        """The tool that is asked for. Models send "" for what they leave out."""
        return ToolRequest(**{**dict(self), "name": self.name or None})


class RefineBody(StrictBody):
    """What should change about a tool."""

    change: str
    permissions: Manifest | None = None

    def to_request(self) -> ToolRequest:
        """The change that is asked for."""
        return ToolRequest(description=self.change, permissions=self.permissions)


class ToolRefineInput(Arguments):
    """Arguments of `tool_refine`."""

    name: str = Field(max_length=200, description="the tool's name")
    change: str = Field(min_length=1, max_length=8_000, description="what should change")
    permissions: Manifest | None = Field(default=None, description="the most it may ask for; unset: what it needs")

    def to_request(self) -> ToolRequest:
        """The change that is asked for."""
        return ToolRequest(description=self.change, permissions=self.permissions)


async def to_detail(tools: GeneratedTools, principal: Principal, version: ToolVersion) -> ToolVersionDetail:
    """A version as routes send it, for a review."""
    wider = await tools.list_wider(principal, version)
    return ToolVersionDetail.model_validate({**_collect_fields(version), "wider": wider})


async def to_output(tools: GeneratedTools, principal: Principal, version: ToolVersion) -> ToolVersionOutput:
    """A version with everything that a person reviews, as tools show it."""
    versions = await tools.list_versions(principal, version.name)
    own = {
        "permissions": version.manifest.model_dump(mode="json"),
        "review": version.review.model_dump(mode="json"),
        "wider": await tools.list_wider(principal, version),
        "versions": [f"{one.version} ({one.state}{', in use' if one.is_active else ''})" for one in versions],
    }
    return ToolVersionOutput.model_validate({**_collect_fields(version), **own})


def format_version(shown: ToolVersionOutput) -> str:
    """A version as Markdown: what it is, its permissions, code, tests and review."""
    used = ", in use" if shown.is_active else ""
    lines = [f"Tool {shown.name}, version {shown.version} ({shown.state}{used}): {shown.description}"]
    if shown.state == "staged":
        lines.append("It is staged: it can be used once you apply it.")
    permissions = Manifest.model_validate(shown.permissions).list_wider(Manifest())
    lines.append(f"Permissions: {'; '.join(permissions) or 'none'}.")
    lines += [f"New permission: {wider}." for wider in shown.wider]
    lines += [f"Warning: {warning}" for warning in shown.warnings]  # above the code, which is long
    tests = "\n".join(test.strip() for test in shown.tests)
    lines += [
        "",
        _fence(shown.code, "python"),
        "",
        "Tests, all passed in the sandbox:",
        "",
        _fence(tests, "python"),
    ]
    lines += ["", f"SHA-256 of code and permissions: {shown.sha256}. Versions: {', '.join(shown.versions)}."]
    return "\n".join(lines)


def format_difference(active: ToolVersion | None, found: ToolVersion) -> str:
    """The difference of a version from the one in use; "" if there is none."""
    if active is None or active.version == found.version:
        return ""
    old, new = f"version {active.version}", f"version {found.version}"
    lines = difflib.unified_diff(active.code.splitlines(), found.code.splitlines(), old, new, lineterm="")
    return "\n\nDifference from the version in use:\n\n" + _fence("\n".join(lines), "diff")


def _fence(text: str, language: str) -> str:
    """A fenced block that the text cannot close: code is written by a model, and a person decides about it."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.strip()}\n{fence}"


def _collect_fields(version: ToolVersion) -> dict[str, Any]:
    """The fields that forms pick from."""
    return {field.name: getattr(version, field.name) for field in fields(version)} | {"warnings": version.notices}
