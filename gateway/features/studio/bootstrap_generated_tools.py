"""The generated tools' part of the composition root."""

import asyncio
import os
import stat
from collections.abc import Collection

from agent.core.errors import ToolInputError
from agent.core.models import LOCAL_OWNER
from agent.core.principal import Principal
from agent.core.settings import Settings
from agent.sandbox.client import Sandbox
from agent.sandbox.interpreter import InterpreterPool, find_missing_interpreter
from agent.sandbox.limits import SandboxLimits
from agent.sandbox.probe import find_missing_feature
from agent.storage.api_keys import KeyStore
from agent.tools import ToolContext
from gateway.feature_host import FeatureHost
from gateway.features.studio.engine.generated_tools.host_functions import HostFunctions, ReadFile
from gateway.features.studio.engine.generated_tools.service import GeneratedTools
from gateway.features.studio.engine.generated_tools.tool_runner import ToolRunner
from gateway.features.studio.engine.generated_tools.version_store import ToolVersionStore
from gateway.features.studio.settings import StudioSettings
from gateway.features.studio.tools import AuthorizeEditor, AuthorizeToolMaker
from mcp_tools.builtin.file_roots import FileRoots

MAX_FILE_BYTES = 2 * 2**20
"""The largest file that a generated tool reads."""


def build_generated_tools(host: FeatureHost) -> GeneratedTools:
    """The service of generated tools. `refresh` registers those in use."""
    context, rooms = host.context, host.rooms.rooms

    def list_rooms_with(name: str, owner: str) -> Collection[str]:
        # Who names another owner's tool gets nothing by it, and must not keep its owner from removing it.
        usable = [room for room in rooms if owner == LOCAL_OWNER or room.is_visible_to(owner)]
        return [room.id for room in usable if name in (*(room.tools or ()), *room.required_tools)]

    generated = GeneratedTools(
        ToolVersionStore(context.statements, context.store.clock),
        host.registry,
        build_tool_runner(host.read_settings(StudioSettings), context.settings),
        HostFunctions(context.client, make_file_reader(host.tools.builtins.roots)),
        context.audit,
        list_rooms_with,
    )
    context.stack.push_async_callback(generated.aclose)
    return generated


def build_maker_authorizer(keys: KeyStore, find_editor: AuthorizeEditor) -> AuthorizeToolMaker:
    """The check of who makes tools by tools."""

    async def authorize(context: ToolContext) -> Principal:
        editor = await find_editor(context)
        if context.api_key_id is None:
            return Principal(context.owner, display_name=editor.name)
        key = await keys.get_valid(context.api_key_id)
        return Principal(key.owner, key.id, key.tools, key.limits.parallel_runs, key.has_scope("approve"), editor.name)

    return authorize


def build_tool_runner(own: StudioSettings, settings: Settings) -> ToolRunner:
    """The sandboxes for generated tools that this machine has; none where they are switched off."""
    if own.generated_tools == "off":
        return ToolRunner(None, None)
    parallel = settings.run_python_parallel
    interpreter = InterpreterPool(parallel=parallel) if find_missing_interpreter() is None else None
    process = Sandbox(SandboxLimits(), parallel=parallel) if find_missing_feature() is None else None
    return ToolRunner(interpreter, process)


def make_file_reader(roots: FileRoots) -> ReadFile:
    """The function that reads files below the readable folders for generated tools."""

    def read(path: str) -> str:
        _, descriptor = roots.open(path)
        with os.fdopen(descriptor, "rb") as file:
            info = os.fstat(descriptor)
            if not stat.S_ISREG(info.st_mode):
                raise ToolInputError(f"{path[:200]!r} is not a file")
            if info.st_size > MAX_FILE_BYTES:
                raise ToolInputError(f"{path[:200]!r} has more than {MAX_FILE_BYTES:,} bytes")
            return file.read(MAX_FILE_BYTES).decode("utf-8", "replace")

    async def read_file(path: str) -> str:
        return await asyncio.to_thread(read, path)

    return read_file
