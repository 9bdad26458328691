"""`prompts_list`, `prompt_show`, `prompt_save`, `prompt_apply`, `prompt_remove`: the caller's prompt library.

Everybody keeps prompts of their own. Applying one edits a room: only callers who administer may do that.
"""

from typing import ClassVar

from pydantic import Field

from agent.core.errors import AgentError
from agent.core.models import DeferredModel, JsonObject
from agent.policy.approval import format_value
from agent.tools import READ_ONLY, Tool, ToolContext, declare_roles
from agent.tools.stored_things import (
    CHANGES,
    DESTROYS,
    SAVES,
    Arguments,
    ReviewedVersions,
    StoredThingList,
    StoredThingTool,
    omit_outside_text,
)
from agent.tools.tool import In, Out
from gateway.features.studio.engine.prompt import Prompt
from gateway.features.studio.engine.prompt_library import PromptLibrary
from gateway.features.studio.engine.room_editor import RoomEditor
from gateway.features.studio.prompt_forms import (
    SAVE_ROLES,
    PromptLine,
    PromptOutput,
    PromptSaveInput,
    to_change,
    to_output,
)
from gateway.features.studio.tools.rooms import AuthorizeEditor, replace_room_name

_KEYWORDS = ("prompt", "prompts", "library", "studio")


class PromptTool(StoredThingTool[In, Out]):
    """The base class of the tools over the caller's prompts."""

    keywords: ClassVar[tuple[str, ...]] = _KEYWORDS

    def __init__(self, prompts: PromptLibrary) -> None:
        super().__init__()
        self._prompts = prompts


class PromptsListInput(Arguments):
    """Arguments of `prompts_list`: none."""


class PromptsListOutput(DeferredModel):
    """The caller's prompts, in order of name."""

    prompts: list[PromptLine]


class PromptsListTool(StoredThingList, PromptTool[PromptsListInput, PromptsListOutput]):
    name = "prompts_list"
    description = "List the saved prompts of the user."
    annotations = READ_ONLY

    async def run(self, args: PromptsListInput, context: ToolContext) -> PromptsListOutput:
        prompts = await self._prompts.list_prompts(context.owner)
        return PromptsListOutput(prompts=[omit_outside_text(line) for line in PromptLine.from_records(prompts)])

    def format_text(self, output: PromptsListOutput) -> str:
        lines = [
            f"- {one.name} (version {one.version}){f': {one.description}' if one.description else ''}"
            for one in output.prompts
        ]
        return "\n".join(lines) or "No prompts are saved."


class PromptShowInput(Arguments):
    """Arguments of `prompt_show`."""

    name: str = Field(max_length=200, description="the prompt's name")
    version: int | None = Field(default=None, ge=1, description="its version; unset: the newest")


class _PromptTextTool:
    """Shows prompts to people and models as their text."""

    def format_text(self, output: PromptOutput) -> str:
        return f"Prompt {output.name}, version {output.version} of {len(output.versions)}\n{output.text}"


class PromptShowTool(_PromptTextTool, PromptTool[PromptShowInput, PromptOutput]):
    name = "prompt_show"
    description = "Show a saved prompt: its text and its versions."
    annotations = READ_ONLY

    async def run(self, args: PromptShowInput, context: ToolContext) -> PromptOutput:
        prompt = await self._prompts.get_prompt(context.owner, args.name, args.version)
        return to_output(prompt, await self._prompts.list_versions(context.owner, args.name))


class PromptSaveTool(_PromptTextTool, PromptTool[PromptSaveInput, PromptOutput]):
    name = "prompt_save"
    description = "Save a prompt in the user's library, as a new version if there is one of this name."
    annotations = SAVES
    argument_roles = SAVE_ROLES
    keywords = (*_KEYWORDS, "save", "keep", "store")

    async def check(self, args: PromptSaveInput, context: ToolContext) -> None:
        """Raises what keeps the prompt from being saved: its name, its text, or a version that is not the newest."""
        await self._prompts.check_save(context.owner, args.name, to_change(args), version=args.version)

    async def run(self, args: PromptSaveInput, context: ToolContext) -> PromptOutput:
        change = to_change(args, from_outside=context.tainted)
        saved = await self._prompts.save_prompt(
            context.owner, args.name, change, by=_name_caller(context), version=args.version
        )
        return to_output(saved, await self._prompts.list_versions(context.owner, saved.name))


class PromptApplyInput(Arguments):
    """Arguments of `prompt_apply`."""

    name: str = Field(max_length=200, description="the prompt's name")
    room_id: str = Field(max_length=200, description="the room whose system_prompt it becomes")
    version: int | None = Field(default=None, ge=1, description="its version; unset: the newest")


class PromptApplyOutput(DeferredModel):
    """The room and the version of the prompt that it has now. `room_version` changes with every change of the room."""

    room_id: str
    room_version: str
    name: str
    version: int


class PromptApplyTool(PromptTool[PromptApplyInput, PromptApplyOutput]):
    name = "prompt_apply"
    description = "Make a saved prompt the system prompt of a managed room."
    annotations = CHANGES
    argument_roles = declare_roles(name="id", room_id="where", version="id")
    keywords = (*_KEYWORDS, "apply", "use", "room")

    def __init__(self, prompts: PromptLibrary, editor: RoomEditor, authorize: AuthorizeEditor) -> None:
        super().__init__(prompts)
        self._editor, self._authorize = editor, authorize
        self._reviewed = ReviewedVersions[Prompt]()

    async def replace_names(self, args: JsonObject, context: ToolContext) -> JsonObject:
        """Takes the room's name for its id."""
        return await replace_room_name(args, self._editor, await self._authorize(context))

    async def check(self, args: PromptApplyInput, context: ToolContext) -> None:
        """Raises what keeps the prompt from being applied: no such prompt, no such room, one that may not be edited."""
        editor = await self._authorize(context)
        prompt = await self._prompts.get_prompt(context.owner, args.name, args.version)
        await self._editor.check_edit(args.room_id, prompt.room_fields, editor)

    async def explain(self, args: JsonObject, context: ToolContext) -> str:
        """The version that would be applied, with its whole text."""
        wanted = PromptApplyInput.model_validate(args)
        self._reviewed.note(context, None)
        try:
            prompt = await self._prompts.get_prompt(context.owner, wanted.name, wanted.version)
        except AgentError as error:  # it was changed since the question
            return error.message
        self._reviewed.note(context, prompt)
        warning = ", which may be a text that a model had read" if prompt.from_outside else ""
        return f"   Prompt `{prompt.name}`, version {prompt.version}{warning}: {format_value(prompt.text, None)}"

    async def run(self, args: PromptApplyInput, context: ToolContext) -> PromptApplyOutput:
        """Sets the room's prompt; everything else of the room stays."""
        editor = await self._authorize(context)
        # A number does not say which text was shown: after a removal, numbers begin again.
        prompt = self._reviewed.take(context) or await self._prompts.get_prompt(context.owner, args.name, args.version)
        view = await self._editor.edit_room(args.room_id, prompt.room_fields, editor, version=None)
        return PromptApplyOutput(
            room_id=view.room_id, room_version=view.version, name=prompt.name, version=prompt.version
        )

    def format_text(self, output: PromptApplyOutput) -> str:
        return f"The room {output.room_id} has the prompt {output.name}, version {output.version}, now."


class PromptRemoveInput(Arguments):
    """Arguments of `prompt_remove`."""

    name: str = Field(max_length=200, description="the prompt's name")


class PromptRemoveOutput(DeferredModel):
    """The name of the removed prompt, and how many versions it had."""

    removed: str
    versions: int


class PromptRemoveTool(PromptTool[PromptRemoveInput, PromptRemoveOutput]):
    name = "prompt_remove"
    description = "Remove a saved prompt with all its versions. Rooms that use its text keep it."
    annotations = DESTROYS
    argument_roles = declare_roles(name="id")
    keywords = (*_KEYWORDS, "delete", "remove")

    async def check(self, args: PromptRemoveInput, context: ToolContext) -> None:
        """Raises `NotFoundError` if there is no such prompt."""
        await self._prompts.get_prompt(context.owner, args.name, None)

    async def run(self, args: PromptRemoveInput, context: ToolContext) -> PromptRemoveOutput:
        count = await self._prompts.remove_prompt(context.owner, args.name, by=_name_caller(context))
        return PromptRemoveOutput(removed=args.name, versions=count)

    def format_text(self, output: PromptRemoveOutput) -> str:
        return f"Removed the prompt {output.removed} with its {output.versions} version(s)."


def make_prompt_tools(prompts: PromptLibrary, editor: RoomEditor, authorize: AuthorizeEditor) -> tuple[Tool, ...]:
    """The tools over the prompt library."""
    return (
        PromptsListTool(prompts),
        PromptShowTool(prompts),
        PromptSaveTool(prompts),
        PromptApplyTool(prompts, editor, authorize),
        PromptRemoveTool(prompts),
    )


def _name_caller(context: ToolContext) -> str:
    return f"{context.owner} (run {context.run_id})"
