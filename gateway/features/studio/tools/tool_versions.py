"""Versions of generated tools as people and models read them: what is listed, what is reviewed, what has changed."""

import difflib
import re

from pydantic import Field

from agent.core.models import JsonObject
from agent.core.principal import Principal
from agent.core.record_item import RecordItem
from gateway.features.studio.engine.generated_tools.models import Manifest, ToolVersion
from gateway.features.studio.engine.generated_tools.service import GeneratedTools


class ToolLine(RecordItem):
    """A generated tool with its newest version."""

    name: str
    version: int
    state: str
    is_active: bool
    description: str


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


def format_version(shown: ToolVersionOutput) -> str:
    """A version as Markdown: what it is, its permissions, code, tests and review."""
    used = ", in use" if shown.is_active else ""
    lines = [f"Tool {shown.name}, version {shown.version} ({shown.state}{used}): {shown.description}"]
    if shown.state == "staged":
        lines.append("It is staged: it can be used once you apply it.")
    permissions = Manifest.model_validate(shown.permissions).list_wider(Manifest())
    lines.append(f"Permissions: {'; '.join(permissions) or 'none'}.")
    lines += [f"New permission: {wider}." for wider in shown.wider]
    tests = "\n".join(test.strip() for test in shown.tests)
    lines += ["", _fence(shown.code, "python"), "", "Tests, all passed in the sandbox:", "", _fence(tests, "python")]
    lines += [f"Warning: {warning}" for warning in shown.warnings]
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


async def to_output(tools: GeneratedTools, principal: Principal, version: ToolVersion) -> ToolVersionOutput:
    """A version with everything that a person reviews."""
    versions = await tools.list_versions(principal, version.name)
    return ToolVersionOutput(
        **dict(ToolLine.model_validate(version)),
        sha256=version.sha256,
        code=version.code,
        tests=list(version.tests),
        permissions=version.manifest.model_dump(mode="json"),
        review=version.review.model_dump(mode="json"),
        warnings=list(version.warnings),
        wider=await tools.list_wider(principal, version),
        versions=[f"{one.version} ({one.state}{', in use' if one.is_active else ''})" for one in versions],
    )
