"""`run_python`: runs a short program in a sandbox (`agent.sandbox`) on values and on files below the file roots.

Where the machine cannot lock a process, programs run in the interpreter, without files.
"""

import asyncio
import os
import stat
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Protocol
from urllib.parse import quote

from pydantic import Field, JsonValue

from agent.core.content_blocks import build_artifact_block, get_artifact_type, limit_blocks
from agent.core.errors import ToolError, ToolInputError, ToolTimeoutError
from agent.core.models import DeferredModel, JsonObject, Source
from agent.core.settings import Settings
from agent.sandbox.client import Sandbox
from agent.sandbox.interpreted_programs import MODULES, InterpretedPrograms
from agent.sandbox.interpreter import find_missing_interpreter
from agent.sandbox.limits import MAX_FILES, Artifact, ProgramResult, SandboxLimits
from agent.sandbox.probe import find_missing_feature
from agent.tools import PlanHints, ToolContext, ToolResult, TypedTool
from mcp_tools.builtin.file_roots import FileRoots

MAX_CODE_CHARS = 50_000
MAX_ERROR_CHARS = 2_000
"""Printed text in the message of a program that failed: its last characters."""


INTERPRETED = (
    "Run a short Python 3 program for computing that no other tool does: dates and calendars, parsing and converting "
    f"text, checksums, simulations. It may import {MODULES}; it has no files, no generators, no class inheritance, and "
    "no network. Pass values in `inputs`; it knows no facts. Not for sums, filters and joins of table files: use "
    "query_table. Not for plain arithmetic: use calculator."
)
"""The tool's description where programs run in the interpreter."""


class ProgramSandbox(Protocol):
    """Runs the programs: `Sandbox`, or `InterpretedPrograms` where there is none."""

    limits: SandboxLimits

    @property
    def has_files(self) -> bool:
        """Whether programs get files, and may leave some."""
        ...

    async def run(self, code: str, inputs: JsonObject, files: Mapping[str, int]) -> ProgramResult:
        """Runs a program. Raises `SandboxError`; errors of the program are in the result."""
        ...

    async def aclose(self) -> None:
        """Ends its processes."""
        ...


class RunPythonInput(DeferredModel):
    """Arguments of `run_python`."""

    code: str = Field(
        min_length=1,
        max_length=MAX_CODE_CHARS,
        description="the program; the value of its last expression, or else of the variable `result`, is returned",
    )
    inputs: dict[str, JsonValue] = Field(
        default={}, description='values that the program reads as inputs["name"]; results of earlier steps go here'
    )
    files: list[str] = Field(
        default=[],
        max_length=MAX_FILES,
        description='files to read, relative to a readable folder; the program opens "files/PATH"',
    )


class ArtifactOutput(DeferredModel):
    """A file that the program wrote."""

    name: str
    media_type: str
    size: int = Field(description="bytes")
    url: str = Field(description="where its owner can fetch it")


class RunPythonOutput(DeferredModel):
    """What the program returned, printed and wrote."""

    result: JsonValue = None
    printed: str = ""
    artifacts: list[ArtifactOutput] = Field(default=[])
    omitted_artifacts: int = Field(default=0, description="files that were too large or too many to be kept")
    files: list[str] = Field(default=[], description="the files it could read")


class RunPythonTool(TypedTool[RunPythonInput, RunPythonOutput]):
    """Runs programs in the sandbox. Close it with `aclose`."""

    name = "run_python"
    description = (
        "Run a short Python 3 program (standard library, numpy and pandas if installed) for computing that no other "
        "tool does: statistics, dates and calendars, parsing and converting text, checksums, simulations, charts. It "
        "has no network, no threads, and only the files it is given. Pass values in `inputs`; it knows no facts. Files "
        "that it writes to its folder are kept and can be shown (pictures as PNG). "
        "Not for sums, filters and joins of table files: use query_table. Not for plain arithmetic: use calculator."
    )
    tainted = True
    reads = ("files",)
    timeout_s = 180.0
    keywords = (
        "python", "program", "script", "code", "compute", "simulate", "statistics", "median", "deviation", "regression",
        "correlation", "parse", "convert", "regex", "checksum", "hash", "weekday", "calendar", "chart", "plot", "graph",
        "histogram",
    )  # fmt: skip
    hints = PlanHints(heading="Program")

    def __init__(
        self, roots: FileRoots, sandbox: ProgramSandbox, *, max_text_chars: int, max_content_bytes: int
    ) -> None:
        super().__init__()
        if not sandbox.has_files:
            self._spec = replace(self._spec, description=INTERPRETED)
        self._roots = roots
        self._sandbox = sandbox
        self._max_text_chars = max_text_chars
        self._max_content_bytes = max_content_bytes

    async def aclose(self) -> None:
        """Ends the sandbox's processes."""
        await self._sandbox.aclose()

    async def call(self, args: JsonObject, context: ToolContext) -> ToolResult:
        """Runs the program; the files it wrote become content blocks of the result."""
        parsed = RunPythonInput.model_validate(args)
        done = await self._run_program(parsed)
        artifacts, blocks = self._limit_artifacts(done.artifacts)
        result = self.make_result(_build_output(done, artifacts, parsed.files, context.run_id))
        if not blocks:
            return result
        # The text comes last: the artifacts have been measured without it, and a long text is cut.
        return replace(result, content=(*blocks, {"type": "text", "text": result.text}), has_artifacts=True)

    async def run(self, args: RunPythonInput, context: ToolContext) -> RunPythonOutput:
        """Runs the program. Raises `ToolInputError` with the program's error, `ToolTimeoutError`, and `ToolError`."""
        done = await self._run_program(args)
        artifacts, _ = self._limit_artifacts(done.artifacts)
        return _build_output(done, artifacts, args.files, context.run_id)

    async def _run_program(self, args: RunPythonInput) -> ProgramResult:
        with ExitStack() as stack:
            files = await self._open_files(args.files, stack)
            done = await self._sandbox.run(args.code, args.inputs, files)
        if done.problem is not None:
            raise _build_error(done)
        return done

    async def _open_files(self, paths: Sequence[str], stack: ExitStack) -> dict[str, int]:
        """Opens the files by their paths in the sandbox; the stack closes them. Raises `ToolInputError` and
        `ToolDeniedError`.
        """
        files: dict[str, int] = {}
        if paths and not self._sandbox.has_files:
            raise ToolInputError(
                "programs get no files on this machine: read them with read_file or query_table, and pass the values "
                "in `inputs`"
            )
        room = self._sandbox.limits.input_bytes
        for path in dict.fromkeys(paths):
            place, descriptor = await asyncio.to_thread(self._roots.open, path)
            stack.callback(os.close, descriptor)
            info = os.fstat(descriptor)
            if not stat.S_ISREG(info.st_mode):
                raise ToolInputError(f"{place.display_path} is not a file")
            if info.st_size > room:
                limit = self._sandbox.limits.input_bytes
                raise ToolInputError(f"the files have more than {limit:,} bytes together; use query_table for tables")
            room -= info.st_size
            files[place.display_path] = descriptor
        return files

    def _limit_artifacts(self, artifacts: Sequence[Artifact]) -> tuple[list[Artifact], list[JsonObject]]:
        """The artifacts that can be stored whole, and their content blocks."""
        kept_artifacts: list[Artifact] = []
        blocks: list[JsonObject] = []
        for artifact in artifacts:
            tried = [*blocks, build_artifact_block(artifact.name, artifact.content)]
            limited = limit_blocks(tried, self._max_text_chars, self._max_content_bytes)
            if limited[-1] is tried[-1]:
                kept_artifacts, blocks = [*kept_artifacts, artifact], tried
        return kept_artifacts, blocks

    def format_text(self, output: RunPythonOutput) -> str:
        """The result, the printed text, and links to the files."""
        parts = []
        if output.result is not None:
            parts.append(f"Result: {_format_value(output.result)}")
        if output.printed:
            parts.append(f"Printed:\n{output.printed.rstrip()}")
        parts += [_format_artifact(artifact) for artifact in output.artifacts]
        if output.omitted_artifacts:
            parts.append(f"[{output.omitted_artifacts:,} more files were too large or too many to be kept]")
        return "\n\n".join(parts) or "The program returned and printed nothing."

    def list_sources(self, output: RunPythonOutput) -> tuple[Source, ...]:
        quotes = (self.format_text(output)[:300],)
        return tuple(Source(id=number, name=path, quotes=quotes) for number, path in enumerate(output.files, start=1))


def make_run_python(settings: Settings, roots: FileRoots) -> RunPythonTool | None:
    """The tool, or None if it is switched off or this machine cannot sandbox programs.

    A locked process runs all of Python, so that it is preferred to the interpreter.
    """
    if settings.run_python == "off":
        return None
    sandbox: ProgramSandbox
    if find_missing_feature() is None:
        sandbox = Sandbox(build_limits(settings), parallel=settings.run_python_parallel)
    elif find_missing_interpreter() is None:
        sandbox = InterpretedPrograms(build_limits(settings), parallel=settings.run_python_parallel)
    else:
        return None
    return RunPythonTool(
        roots, sandbox, max_text_chars=settings.tool_output_chars, max_content_bytes=settings.tool_content_bytes
    )


def build_limits(settings: Settings) -> SandboxLimits:
    """The limits of a program from the settings."""
    return SandboxLimits(seconds=settings.run_python_timeout_s, memory_bytes=settings.run_python_memory_mb * 2**20)


def _build_output(done: ProgramResult, kept: Sequence[Artifact], files: Sequence[str], run_id: str) -> RunPythonOutput:
    return RunPythonOutput(
        result=done.value,
        printed=done.printed,
        artifacts=[
            ArtifactOutput(
                name=one.name,
                media_type=get_artifact_type(one.name),
                size=len(one.content),
                url=f"/v1/runs/{run_id}/artifacts/{quote(one.name)}",
            )
            for one in kept
        ],
        omitted_artifacts=done.omitted_artifacts + len(done.artifacts) - len(kept),
        files=list(dict.fromkeys(files)),
    )


def _build_error(done: ProgramResult) -> ToolError:
    message = f"{done.error}"
    if done.printed.strip():
        message += f"\nIt printed before:\n{done.printed.rstrip()[-MAX_ERROR_CHARS:]}"
    return ToolTimeoutError(message) if done.problem == "time" else ToolInputError(message)


def _format_value(value: JsonValue) -> str:
    if isinstance(value, str):
        return value
    return RunPythonOutput(result=value).model_dump_json(include={"result"})[len('{"result":') : -1]


def _format_artifact(artifact: ArtifactOutput) -> str:
    mark = "!" if artifact.media_type.startswith("image/") else ""
    return f"{mark}[{artifact.name}]({artifact.url}) ({artifact.size:,} bytes)"
