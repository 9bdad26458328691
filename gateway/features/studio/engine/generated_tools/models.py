"""A generated tool and its parts, and the replies of models that make one."""

import hashlib
import json
from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from agent.core.models import JsonObject

VersionState = Literal["staged", "applied", "discarded"]
"""`staged` versions wait for a person; an `applied` one was in use at least once; a `discarded` one never will be."""
SandboxTier = Literal["interpreter", "process"]
"""Where a version runs: in the Python interpreter of `agent.sandbox.interpreter`, or in a locked process of CPython."""
HOST_FUNCTIONS: dict[str, str] = {"http_get": "hosts", "read_file": "folders", "call_tool": "tools"}
"""The functions of the gateway that a tool may call, and the permission that each needs."""

MAX_CODE_CHARS = 20_000
MAX_TEST_CASES = 20
MAX_DESCRIPTION_CHARS = 8_000


class Manifest(BaseModel):
    """What a tool may use besides computing; by default nothing."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    hosts: tuple[str, ...] = Field(default=(), max_length=20, description="web hosts, as `host` or `host:port`")
    folders: tuple[str, ...] = Field(default=(), max_length=20, description="folders below the readable folders")
    tools: tuple[str, ...] = Field(default=(), max_length=20, description="names of tools that it calls")
    seconds: float = Field(default=5.0, gt=0, le=30, description="computing time of a call")
    memory_mb: int = Field(default=128, ge=16, le=512, description="memory of a call")

    def describe_flow(self) -> str:
        """One sentence on what a tool may send where, for the person who approves it; "" if it cannot send what it
        reads. That approval allows it: nobody can be asked within a call.
        """
        kinds = {"files in the folders": self.folders, "results of the tools": self.tools}
        sources = [f"{kind} {', '.join(names)}" for kind, names in kinds.items() if names]
        if not sources or not self.hosts:
            return ""
        return f"It may send what it reads ({'; '.join(sources)}) to {', '.join(self.hosts)}."

    def list_wider(self, other: "Manifest") -> list[str]:
        """The permissions that this manifest has and `other` does not, one phrase each."""
        wider = [
            f"{kind} {name}"
            for kind in HOST_FUNCTIONS.values()
            for name in getattr(self, kind)
            if name not in getattr(other, kind)
        ]
        if self.seconds > other.seconds:
            wider.append(f"{self.seconds:g} seconds")
        if self.memory_mb > other.memory_mb:
            wider.append(f"{self.memory_mb} MB of memory")
        return wider


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """The tool to make. `permissions` is the most the tool may ask for; None: what the tests name."""

    description: Annotated[str, Field(description="what the tool should do")]
    name: Annotated[str | None, Field(description="its name; default: the model chooses one")] = None
    permissions: Manifest | None = None
    earlier_code: str | None = None
    """The code of the version that is refined."""


class GeneratedCode(BaseModel):
    """A model's code of a tool."""

    code: str = Field(max_length=MAX_CODE_CHARS, description="a Python module")
    function_name: str = Field(max_length=200)
    description: str = Field(max_length=2_000, description="what the tool does, for the person who reviews it")
    test_cases: list[str] = Field(
        default_factory=list, max_length=MAX_TEST_CASES, description="further tests, in the form of the given ones"
    )


class CodeReview(BaseModel):
    """A model's opinion of code. It can veto; only a person approves."""

    approved: bool
    issues: list[str] = Field(default_factory=list, max_length=50)
    suggestions: list[str] = Field(default_factory=list, max_length=50)
    severity: Literal["blocker", "major", "minor", "none"]

    @property
    def is_veto(self) -> bool:
        """Whether the code may not be staged. A blocker is a veto even if the review approves."""
        return not self.approved or self.severity == "blocker"


class ToolTests(BaseModel):
    """The contract of a tool, written before there is any code: its interface, its tests and its permissions."""

    function_name: str = Field(max_length=200, description="a Python identifier in snake case")
    interface: str = Field(
        max_length=MAX_CODE_CHARS,
        description="the Pydantic models and the async function with its docstring, whose body is `...`",
    )
    test_cases: list[str] = Field(min_length=2, max_length=MAX_TEST_CASES, description="Python statements with asserts")
    permissions: Manifest = Manifest()


@dataclass(frozen=True, slots=True)
class ToolVersion:
    """One immutable version of a generated tool; only its state changes. Times are UTC seconds since 1970."""

    owner: str
    name: str
    version: int
    sha256: str
    code: str
    tests: tuple[str, ...]
    manifest: Manifest
    review: CodeReview
    description: str
    tier: SandboxTier
    state: VersionState
    created_at: float
    parent: int | None = None
    """The version it refines."""
    warnings: tuple[str, ...] = ()
    """The findings that do not keep it from being used."""
    run_id: str = ""
    author: str = ""
    """On whose behalf it was made."""
    approved_by: str = ""
    is_active: bool = False
    from_outside: bool = False
    """Whether it was asked for after external text was read, and no person has read and applied it since."""

    @property
    def notices(self) -> tuple[str, ...]:
        """What a person should know before approving it: where it may send what it reads, and the warnings."""
        return (*filter(None, [self.manifest.describe_flow()]), *self.warnings)


@dataclass(frozen=True, slots=True)
class Candidate:
    """Code that passed everything, before it is stored."""

    name: str
    code: str
    tests: tuple[str, ...]
    manifest: Manifest
    review: CodeReview
    description: str
    tier: SandboxTier
    warnings: tuple[str, ...]
    rounds: int

    def list_stored_fields(self) -> dict[str, Any]:
        """The fields that a version of the tool takes from it, by name."""
        stored = {field.name for field in fields(ToolVersion)}
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name in stored}


def compute_sha256(code: str, manifest: Manifest) -> str:
    """The SHA-256 (hex) of code and manifest, which an approval is bound to."""
    content: JsonObject = {"code": code, "manifest": manifest.model_dump(mode="json")}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode("utf-8", "surrogatepass")).hexdigest()
