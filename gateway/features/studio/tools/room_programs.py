"""`room_programs_allow`: makes a change of a room that starts programs or sends a stored credential to a new address,
once a person has seen the commands, or the credential and the address.

`doors/rooms.py` starts a run with one call of it where a caller may add these but not without a question. The change
is in the run's log, withheld from its readers: the values of a program's environment are shown to nobody.
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace

from pydantic import Field, TypeAdapter

from agent.core.errors import ToolInputError
from agent.core.models import JsonObject
from agent.policy.approval import format_value
from agent.tools import ToolAnnotations, ToolContext, declare_roles
from agent.tools.stored_things import Arguments
from gateway.features.studio.engine.room_changes import RoomChange, check_change, make_change
from gateway.features.studio.engine.room_editor import RoomEditor
from gateway.features.studio.engine.room_privileges import PrivilegesNeedApprovalError, RoomPrivileges
from gateway.features.studio.engine.room_view import Editor, allow_asked
from gateway.features.studio.room_forms import RoomOutput, format_room, to_output
from gateway.features.studio.tools.rooms import AuthorizeEditor, RoomTool

ROOM_PROGRAMS_TOOL = "room_programs_allow"
WITHHELD_CHANGE = "room_change"
"""The key of the change in `RunCreated.withheld`."""
_CHANGE: TypeAdapter[RoomChange] = TypeAdapter(RoomChange)

ReadWithheld = Callable[[str], Awaitable[JsonObject]]
"""The values that the log of a run withholds from its readers."""


class RoomProgramsInput(Arguments):
    """Arguments of `room_programs_allow`. They say what a person is asked; the run holds the change itself."""

    room_id: str = Field(max_length=200, description="the room")
    servers: list[str] = Field(max_length=100, description="its MCP servers about which a person is asked")


class RoomProgramsTool(RoomTool[RoomProgramsInput, RoomOutput]):
    name = ROOM_PROGRAMS_TOOL
    description = (
        "Let a room start programs on this machine, or send a stored credential to an address. Only the gateway calls "
        "it; use mcp_server_add."
    )
    annotations = ToolAnnotations(read_only=False, destructive=False, idempotent=False, open_world=True)
    argument_roles = declare_roles(room_id="id", servers="other")
    requires_approval = True

    def __init__(self, editor: RoomEditor, authorize: AuthorizeEditor, read_withheld: ReadWithheld) -> None:
        super().__init__(editor, authorize)
        self._read_withheld = read_withheld

    async def check(self, args: RoomProgramsInput, context: ToolContext) -> None:
        """Raises what the change would raise now, except that a person is needed."""
        await self._find_privileges(await self._read_change(context), await self._authorize_connecting(context))

    async def explain(self, args: JsonObject, context: ToolContext) -> str:
        """The commands, credentials and addresses as a list."""
        change = await self._read_change(context)
        return format_privileges(await self._find_privileges(change, await self._authorize_connecting(context)))

    async def run(self, args: RoomProgramsInput, context: ToolContext) -> RoomOutput:
        """Makes the change."""
        change = await self._read_change(context)
        editor = await self._authorize_connecting(context)
        editor = replace(editor, programs=allow_asked(editor.programs), pairings=allow_asked(editor.pairings))
        return to_output(await make_change(self._editor, change, editor))

    def format_text(self, output: RoomOutput) -> str:
        return format_room(output)

    async def _authorize_connecting(self, context: ToolContext) -> Editor:
        """The editor, who may connect servers: the door has checked the list of tools of their key."""
        return replace(await self._authorize(context), may_connect=True)

    async def _read_change(self, context: ToolContext) -> RoomChange:
        """The change that the run was started for. Raises `ToolInputError` in any other run."""
        change = (await self._read_withheld(context.run_id)).get(WITHHELD_CHANGE)
        if change is None:
            raise ToolInputError("only the gateway calls this tool; mcp_server_add connects a room to a server")
        return _CHANGE.validate_python(change)

    async def _find_privileges(self, change: RoomChange, editor: Editor) -> RoomPrivileges:
        """What the change would add now that a person must allow. Raises what refuses the change."""
        try:
            await check_change(self._editor, change, editor)
        except PrivilegesNeedApprovalError as error:
            return error.privileges
        return RoomPrivileges()


def format_privileges(privileges: RoomPrivileges) -> str:
    """Formats what a person is asked as Markdown: what would run on this machine, with the names of its environment's
    variables, and which stored credential would go to which address.

    Nothing is cut: what a person has not seen would run too.
    """
    lines: list[str] = []
    if privileges.programs:
        lines.append(
            "   These programs would run on the gateway's machine, with its user's rights, now and at each start:"
        )
    for program in privileges.programs:
        lines.append(f"   - server `{program.server}` runs {format_value(program.command, None)}")
        lines += [f"     - argument {format_value(arg, None)}" for arg in program.args]
        names = ", ".join(f"`{name}`" for name in program.env)
        lines += [f"     - environment variables, values not shown: {names}"] if names else []
        lines += [
            f"     - the stored credential {format_value(one, None)} as `{name}`" for name, one in program.secret_env
        ]
    if privileges.pairings:
        lines.append("   These stored credentials would be sent to these addresses, now and with each request:")
    for pairing in privileges.pairings:
        credential, url = format_value(pairing.credential, None), format_value(pairing.url, None)
        lines.append(f"   - server `{pairing.server}` gets the credential {credential} at {url}")
    return "\n".join(lines)
