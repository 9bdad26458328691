"""`GeneratedTools`: makes, lists, applies, refines, restores and removes tools, for all doors and for tools in runs."""

import asyncio
import logging
from collections.abc import Callable, Collection
from dataclasses import replace

from agent.core.errors import AgentError, ConflictError
from agent.core.models import JsonObject
from agent.core.principal import Principal
from agent.core.throttled_log import ThrottledLog
from agent.storage.audit import AuditAction, AuditEvent, AuditLog
from agent.tools import ToolModel, ToolRegistry, WithheldTool, is_shown_call_by_call
from gateway.features.studio.engine.errors import ValidationError, VersionConflictError
from gateway.features.studio.engine.generated_tools.generated_tool import GENERATED_ORIGIN, GeneratedTool
from gateway.features.studio.engine.generated_tools.generation import ToolGeneration
from gateway.features.studio.engine.generated_tools.host_functions import HostFunctions
from gateway.features.studio.engine.generated_tools.identifiers import sanitize_identifier
from gateway.features.studio.engine.generated_tools.models import (
    MAX_DESCRIPTION_CHARS,
    Candidate,
    Manifest,
    ToolRequest,
    ToolVersion,
    compute_sha256,
)
from gateway.features.studio.engine.generated_tools.producer import ToolProducer
from gateway.features.studio.engine.generated_tools.tool_runner import ToolRunner
from gateway.features.studio.engine.generated_tools.version_store import ToolVersionStore

log = logging.getLogger(__name__)

MAX_TOOLS = 200
"""Generated tools of one owner."""
POLL_SECONDS = 2.0
"""How often a gateway looks for versions that another process has put into use."""
ReportProgress = Callable[[str], None]


def _ignore_progress(line: str) -> None:
    """Ignores the line: nobody listens."""


class GeneratedTools:
    """The generated tools of this gateway. A tool of the owner `local` is shared with all, like rooms are.

    Methods raise `StoreError`; those that name a tool raise `NotFoundError` if the principal has none of this name.
    """

    def __init__(
        self,
        store: ToolVersionStore,
        registry: ToolRegistry,
        runner: ToolRunner,
        functions: HostFunctions,
        audit: AuditLog,
        list_rooms_with: Callable[[str, str], Collection[str]],
    ) -> None:
        """`list_rooms_with` returns the ids of the rooms that name a tool of this owner and may use it."""
        self._store = store
        self._registry = registry
        self.runner = runner
        self._functions = functions
        self._audit = audit
        self._list_rooms_with = list_rooms_with
        self._stamp: object = None
        self._called: frozenset[str] = frozenset()
        """The tools that the tools in use may call."""
        self._refreshing = asyncio.Lock()
        self.faults: dict[str, str] = {}
        """Why an applied tool is not offered, by name."""

    async def generate(
        self,
        principal: Principal,
        request: ToolRequest,
        *,
        model: ToolModel,
        run_id: str = "",
        from_outside: bool = False,
        report: ReportProgress = _ignore_progress,
    ) -> ToolVersion:
        """Makes a tool and stages it; a person applies it.

        Raises `ValidationError` for a bad name or description, `ReflectionFailed` if no round succeeds,
        `SandboxMissingError`, `ConflictError` for a name that is taken, `ModelError`, `BudgetError`. Nothing is stored
        then.
        """
        name = await self.check_request(principal, request.description, request.name)
        made = await self._make(principal.owner, replace(request, name=name), model, report)
        await self._check_name(principal, made.name)
        return await self._stage(principal, made, run_id, parent=None, from_outside=from_outside)

    async def check_request(self, principal: Principal, description: str, name: str | None) -> str | None:
        """The name as it will be. Raises what `generate` would raise before it asks a model."""
        _check_description(description)
        if name is not None:
            name = sanitize_identifier(name)
            await self._check_name(principal, name)
        newest = await self._store.list_newest(principal.owner)
        if len(newest) >= MAX_TOOLS:
            raise ConflictError(f"there are {MAX_TOOLS} generated tools; remove one first", agent_id="studio")
        return name

    async def refine(
        self,
        principal: Principal,
        name: str,
        change: ToolRequest,
        *,
        model: ToolModel,
        run_id: str = "",
        from_outside: bool = False,
        report: ReportProgress = _ignore_progress,
    ) -> ToolVersion:
        """Makes a changed version of a tool and stages it; the version in use stays. The description of `change` says
        what should change. Raises as `generate` does.
        """
        _check_description(change.description)
        parent = await self.get(principal, name)
        description = f"{parent.description}\n\nChange it: {change.description}"
        request = replace(change, description=description, name=parent.name, earlier_code=parent.code)
        made = await self._make(principal.owner, request, model, report)
        from_outside = from_outside or parent.from_outside
        return await self._stage(principal, made, run_id, parent=parent.version, from_outside=from_outside)

    async def list_tools(self, principal: Principal) -> list[ToolVersion]:
        """The newest version of each of the principal's tools, by name."""
        return await self._store.list_newest(principal.owner)

    async def get(self, principal: Principal, name: str, version: int | None = None) -> ToolVersion:
        """A version; by default the newest one that is not discarded, else the newest."""
        versions = await self._store.list_versions(principal.owner, name)
        if version is None:
            return next((one for one in versions if one.state != "discarded"), versions[0])
        stored = next((one for one in versions if one.version == version), None)
        if stored is None:
            version_numbers = ", ".join(str(one.version) for one in versions)
            raise ValidationError(f"{name} has no version {version}; there are {version_numbers}", "version")
        return stored

    async def get_active(self, principal: Principal, name: str) -> ToolVersion | None:
        """The version in use, or None."""
        versions = await self._store.list_versions(principal.owner, name)
        return next((one for one in versions if one.is_active), None)

    async def list_versions(self, principal: Principal, name: str) -> list[ToolVersion]:
        """Every version of a tool, the newest first."""
        return await self._store.list_versions(principal.owner, name)

    async def apply(
        self, principal: Principal, name: str, *, version: int | None = None, sha256: str | None = None
    ) -> ToolVersion:
        """Puts a staged version into use: from now on it is a tool like any other. `sha256` is what was reviewed.

        Raises `ScopeError` for a principal who may not approve, `VersionConflictError` if `sha256` is another one,
        `ConflictError` if it is not staged or its name is taken, `SandboxMissingError`, `ValidationError` if this
        release refuses the code.
        """
        chosen = await self.get_staged(principal, name, version, sha256=sha256)
        return await self._activate(principal, chosen, "tool.apply")

    async def restore(self, principal: Principal, name: str, version: int, *, sha256: str | None = None) -> ToolVersion:
        """Puts a version into use that was in use before. Raises as `apply` does."""
        chosen = await self.get_restorable(principal, name, version, sha256=sha256)
        return await self._activate(principal, chosen, "tool.restore")

    async def get_restorable(
        self, principal: Principal, name: str, version: int, *, sha256: str | None = None
    ) -> ToolVersion:
        """A version that was in use. Raises `ConflictError` if it never was or `sha256` is another one."""
        chosen = await self.get(principal, name, version)
        if chosen.state != "applied":
            raise ConflictError(
                f"version {version} of {name!r} was never in use; apply a staged version instead",
                agent_id="studio",
                stage="state",
            )
        _check_sha256(chosen, sha256)
        return chosen

    async def discard(self, principal: Principal, name: str, *, version: int | None = None) -> ToolVersion:
        """Discards a staged version. Raises `ConflictError` if it is not staged."""
        chosen = await self.get_staged(principal, name, version)
        async with self._audit.record_before(_make_event("tool.discard", principal, chosen)):
            await self._store.discard(chosen, by=principal.name)
        return await self.get(principal, name, chosen.version)

    async def remove(self, principal: Principal, name: str) -> int:
        """Deletes a tool with all of its versions and returns their number.

        Raises `ConflictError` while rooms name the tool.
        """
        newest = await self.check_removal(principal, name)
        async with self._audit.record_before(_make_event("tool.remove", principal, newest)):
            removed = await self._store.remove(principal.owner, name)
        await self.refresh()
        return removed

    async def check_removal(self, principal: Principal, name: str) -> ToolVersion:
        """The newest version of a tool. Raises `ConflictError` while rooms name it."""
        newest = (await self._store.list_versions(principal.owner, name))[0]
        is_active = await self.get_active(principal, name) is not None
        rooms = self._list_rooms_with(name, principal.owner) if is_active else ()
        if rooms:
            raise ConflictError(
                f"the rooms {', '.join(sorted(rooms))} use the tool {name!r}; remove it from them first",
                agent_id="studio",
                stage="rooms",
                rooms=[*sorted(rooms)],
            )
        return newest

    async def list_wider(self, principal: Principal, version: ToolVersion) -> list[str]:
        """The permissions of a version that the version in use does not have; all of them if none is in use."""
        active = await self.get_active(principal, version.name)
        return version.manifest.list_wider(Manifest() if active is None else active.manifest)

    async def refresh(self) -> None:
        """Offers exactly the versions that are in use now. A version that cannot be offered is in `faults`."""
        async with self._refreshing:
            rows = await self._store.read_stamp()
            # A tool that is called may appear later than its caller, or change what it does.
            if (rows, self._describe_called()) == self._stamp:
                return
            tools: list[GeneratedTool] = []
            faults: dict[str, str] = {}
            withheld: dict[str, WithheldTool] = {}
            active = await self._store.list_active()
            for version in active:
                try:
                    tools.append(self._build(version))
                except AgentError as error:
                    faults[version.name] = error.message
                    reason = f"the generated tool {version.name!r} cannot be used: {error.message}"
                    withheld[version.name] = WithheldTool(reason, version.owner)
                    log.warning("the generated tool %s is not offered: %s", version.name, error.message)
            self._registry.replace(GENERATED_ORIGIN, tools)
            self._registry.withhold(GENERATED_ORIGIN, withheld)
            self.faults = faults
            self._called = frozenset(name for version in active for name in version.manifest.tools)
            self._stamp = (rows, self._describe_called())

    async def watch(self) -> None:
        """Follows changes that other processes make, until it is cancelled."""
        trouble = ThrottledLog(log, "generated tools cannot be compared")
        while True:
            await asyncio.sleep(POLL_SECONDS)
            with trouble.guard():
                await self.refresh()

    async def aclose(self) -> None:
        """Ends the sandboxes."""
        await self.runner.aclose()

    async def _make(self, owner: str, request: ToolRequest, model: ToolModel, report: ReportProgress) -> Candidate:
        callable_tools = [
            tool.spec.name
            for tool in self._registry
            if tool.spec.is_visible_to(owner)
            and tool.spec.origin != GENERATED_ORIGIN
            and not is_shown_call_by_call(tool)
        ]
        producer = ToolProducer(model, request.description)
        return await ToolGeneration(producer, self.runner, callable_tools, report).run(request)

    async def _stage(
        self, principal: Principal, made: Candidate, run_id: str, *, parent: int | None, from_outside: bool
    ) -> ToolVersion:
        version = ToolVersion(
            **made.list_stored_fields(),
            owner=principal.owner,
            version=0,
            sha256=compute_sha256(made.code, made.manifest),
            state="staged",
            created_at=0.0,
            parent=parent,
            run_id=run_id,
            author=principal.name,
            from_outside=from_outside,
        )
        return await self._store.add(version)

    async def _activate(self, principal: Principal, chosen: ToolVersion, action: AuditAction) -> ToolVersion:
        principal.require_approval_right()
        if chosen.sha256 != compute_sha256(chosen.code, chosen.manifest):
            raise ValidationError(f"the stored code of {chosen.name!r} is damaged", "version", recoverable=False)
        await self._check_name(principal, chosen.name, is_new=False)
        self._build(chosen)
        async with self._audit.record_before(_make_event(action, principal, chosen)):
            await self._store.activate(chosen, by=principal.name, sha256=chosen.sha256)
        await self.refresh()
        return replace(await self.get(principal, chosen.name, chosen.version), is_active=True)

    def _build(self, version: ToolVersion) -> GeneratedTool:
        """The version as a tool. Raises `ValidationError`, `SandboxMissingError`, `ToolUnknownError`."""
        if version.tier not in self.runner.tiers:
            raise ValidationError(
                f"{version.name} needs the sandbox {version.tier!r}, which this machine does not have",
                "sandbox",
                recoverable=False,
            )
        called = [self._registry.get(name, version.owner).spec for name in version.manifest.tools]
        return GeneratedTool(version, called, self.runner, self._functions)

    def _describe_called(self) -> dict[str, object]:
        """The properties of the tools that are called, as far as their callers pass them on."""
        specs = {name: self._registry.get(name).spec for name in sorted(self._called) if name in self._registry}
        return {
            name: [spec.annotations.model_dump(), spec.requires_approval, spec.tainted] for name, spec in specs.items()
        }

    async def get_staged(
        self, principal: Principal, name: str, version: int | None, *, sha256: str | None = None
    ) -> ToolVersion:
        """A staged version; without a number the newest one. Raises `ConflictError` if it is not staged or
        `sha256` is another one.
        """
        if version is not None:
            chosen = await self.get(principal, name, version)
        else:
            versions = await self._store.list_versions(principal.owner, name)
            chosen = next((one for one in versions if one.state == "staged"), versions[0])
        if chosen.state != "staged":
            raise ConflictError(
                f"the tool {name!r} has no staged version; version {chosen.version} is {chosen.state}",
                agent_id="studio",
                stage="state",
            )
        _check_sha256(chosen, sha256)
        return chosen

    async def _check_name(self, principal: Principal, name: str, *, is_new: bool = True) -> None:
        """Raises `ConflictError` if another tool has this name, or with `is_new` one of the principal's own."""
        if is_new and "__" in name:  # a server that is down now, or a room's own, would lose its tool to this one
            raise ValidationError(f"{name!r}: names with `__` are those of the tools of MCP servers", "identifier")
        spec = self._registry.find_spec(name)
        is_other = spec is not None and spec.origin != GENERATED_ORIGIN
        if is_other or await self._store.is_taken(principal.owner, name):
            raise ConflictError(f"there is a tool {name!r} already; choose another name", stage="identifier")
        if is_new:
            newest = await self._store.list_newest(principal.owner)
            if any(one.name == name and one.state != "discarded" for one in newest):
                raise ConflictError(
                    f"you have a tool {name!r} already; refine it, remove it, or choose another name",
                    stage="identifier",
                )


def _check_description(text: str) -> None:
    if not text.strip():
        raise ValidationError("description: say what the tool should do", "description")
    if len(text) > MAX_DESCRIPTION_CHARS:
        raise ValidationError(
            f"description: {len(text):,} characters are too many; at most {MAX_DESCRIPTION_CHARS:,}", "description"
        )


def _check_sha256(version: ToolVersion, reviewed: str | None) -> None:
    """Raises `VersionConflictError` if what was reviewed is not this version."""
    if reviewed is not None and reviewed != version.sha256:
        raise VersionConflictError(f"the tool {version.name!r}, version {version.version},", version.sha256)


def _make_event(action: AuditAction, principal: Principal, version: ToolVersion) -> AuditEvent:
    detail: JsonObject = {
        "version": version.version,
        "sha256": version.sha256,
        "permissions": version.manifest.model_dump(mode="json"),
    }
    return AuditEvent(action, version.name, owner=principal.owner, by=principal.name, detail=detail)
