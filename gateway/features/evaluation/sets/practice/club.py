"""The server `club`: members, teams, fees and helpers of a sports club."""

from typing import Any, Literal

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from gateway.features.evaluation.state_file import DELETE, EFFECT, READ, WRITE, StateFile, find_record
from gateway.features.evaluation.tool_inputs import Day, Inputs

LAST_DAYS = ("06-30", "12-31")
"""The days of a year at whose end a membership can end."""
Group = Literal["children", "youth", "adults", "seniors"]
FeeStatus = Literal["paid", "due", "exempt"]
Sport = Literal["volleyball", "judo", "badminton", "swimming"]


class MemberQuery(Inputs):
    """Conditions that must all hold; what is left out does not matter."""

    name: str | None = Field(default=None, description="the name or a part of it")
    group: Group | None = None
    fee_status: FeeStatus | None = None


class MemberPatch(Inputs):
    """The fields that change."""

    group: Group | None = None
    fee_status: FeeStatus | None = None
    fee_eur: float | None = Field(default=None, ge=0)


def build_club(file: StateFile) -> MCPServer:
    """Builds the server of the sports club."""
    server = MCPServer("club")
    _add_members(server, file)
    _add_teams(server, file)
    _add_shifts(server, file)
    return server


def _add_members(server: MCPServer, file: StateFile) -> None:
    """Adds the tools of members and fees."""

    @server.tool(name="members_search", annotations=READ)
    def search_members(query: MemberQuery) -> list[dict[str, Any]]:
        """Searches the register of members.

        Use this to turn a name into a member id, or to list who is in an age group or has not paid. A fee that is
        `due` has not been paid yet.
        """
        wanted = query.model_dump(exclude_none=True, exclude={"name"})
        return [
            {"member_id": key, **member}
            for key, member in file.load()["club"]["members"].items()
            if wanted.items() <= member.items() and (query.name or "").casefold() in member["name"].casefold()
        ]

    @server.tool(name="members_update", annotations=WRITE)
    def update_member(member_id: str, patch: MemberPatch) -> dict[str, Any]:
        """Updates a member's age group, yearly fee in EUR, or whether the fee was paid."""
        with file.change() as state:
            member = find_record(state["club"]["members"], member_id, "member")
            member.update(patch.model_dump(exclude_none=True))
        return {"member_id": member_id, **member}

    @server.tool(name="members_terminate", annotations=DELETE)
    def terminate_member(member_id: str, last_day: Day) -> str:
        """Ends a membership. It can only end on 30 June or 31 December."""
        if last_day[5:] not in LAST_DAYS:
            raise ToolError("not terminated: a membership can only end on 30 June or 31 December")
        with file.change() as state:
            find_record(state["club"]["members"], member_id, "member")["last_day"] = last_day
        return f"{member_id} is a member until {last_day}"

    @server.tool(name="fees_remind", annotations=EFFECT)
    def remind_members(member_ids: list[str], channel: Literal["email", "letter"]) -> str:
        """Sends members a reminder of their fee. Nothing is sent if one of them does not owe a fee."""
        with file.change() as state:
            for member_id in member_ids:
                member = find_record(state["club"]["members"], member_id, "member")
                if member["fee_status"] != "due":
                    raise ToolError(f"nothing was sent: the fee of {member_id} is {member['fee_status']}")
                state["club"]["reminders"][member_id] = channel
        return f"reminded by {channel}: {', '.join(member_ids)}"


def _add_teams(server: MCPServer, file: StateFile) -> None:
    """Adds the tools of teams."""

    @server.tool(name="teams_list", annotations=READ)
    def list_teams(sport: Sport | None = None) -> list[dict[str, Any]]:
        """Lists teams with coach, weekday, time and hall of the training, and the member ids of their players."""
        return [
            {"team_id": key, **team}
            for key, team in file.load()["club"]["teams"].items()
            if sport in (None, team["sport"])
        ]

    @server.tool(name="teams_add_players", annotations=WRITE)
    def add_players(team_id: str, member_ids: list[str]) -> dict[str, Any]:
        """Adds members to a team by their ids."""
        with file.change() as state:
            team = find_record(state["club"]["teams"], team_id, "team")
            for member_id in member_ids:
                find_record(state["club"]["members"], member_id, "member")
            players = {*team["players"], *member_ids}
            if len(players) > team["max_players"]:
                raise ToolError(f"nobody was added: {team['name']} has room for {team['max_players']}")
            team["players"] = sorted(players)
        return {"team_id": team_id, "players": team["players"]}


def _add_shifts(server: MCPServer, file: StateFile) -> None:
    """Adds the tools of helpers."""

    @server.tool(name="shifts_list", annotations=READ)
    def list_shifts(event: str = "", only_open: bool = False) -> list[dict[str, Any]]:
        """Lists the helpers' shifts of all events, or of those with this word in their name."""
        shifts = file.load()["club"]["shifts"]
        file.fail_first_calls("shifts_list", 1)
        return [
            {"shift_id": key, **shift}
            for key, shift in shifts.items()
            if event.casefold() in shift["event"].casefold() and not (only_open and shift["member_id"] != "none")
        ]

    @server.tool(name="shifts_assign", annotations=WRITE)
    def assign_shift(shift_id: str, member_id: str) -> dict[str, Any]:
        """Gives an open shift to a member."""
        with file.change() as state:
            shift = find_record(state["club"]["shifts"], shift_id, "shift")
            find_record(state["club"]["members"], member_id, "member")
            if shift["member_id"] != "none":
                raise ToolError(f"{shift_id} has been given to {shift['member_id']}")
            shift["member_id"] = member_id
        return {"shift_id": shift_id, **shift}
