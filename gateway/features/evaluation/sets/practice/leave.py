"""The server `leave`: people, teams, leave balances and leave requests of a company."""

from datetime import date, timedelta
from typing import Annotated, Any, Literal

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from gateway.features.evaluation.state_file import DELETE, EFFECT, READ, WRITE, State, StateFile, find_record
from gateway.features.evaluation.tool_inputs import Day, Inputs

Team = Literal["design", "support", "finance"]
LeaveType = Literal["vacation", "parental", "training"]
RequestStatus = Literal["pending", "approved", "declined", "withdrawn"]
Month = Annotated[str, Field(pattern=r"^\d{4}-\d{2}$", description="YYYY-MM")]
WORKING_DAYS = 5


class Period(Inputs):
    """The first and the last day of a leave, both included."""

    startDate: Day  # noqa: N815 - names of inputs in camel case, as many servers have them
    endDate: Day  # noqa: N815


class LeaveRequest(Inputs):
    """A request for leave."""

    employeeId: str = Field(description="E-…")  # noqa: N815
    leaveType: LeaveType  # noqa: N815
    period: Period


class RequestFilter(Inputs):
    """Which requests; fields that are left out match all."""

    employeeId: str | None = None  # noqa: N815
    team: Team | None = None
    status: RequestStatus | None = None


def build_leave(file: StateFile) -> MCPServer:
    """Builds the server of the leave desk."""
    server = MCPServer("leave")
    _add_reading_tools(server, file)
    _add_changing_tools(server, file)
    return server


def _add_reading_tools(server: MCPServer, file: StateFile) -> None:
    def load() -> State:
        leave: State = file.load()["leave"]
        return leave

    @server.tool(annotations=READ)
    def searchEmployees(query: str = "", team: Team | None = None) -> list[dict[str, Any]]:  # noqa: N802
        """Search employees by name, by team, or by both."""
        words = query.casefold().split()
        return [
            {"employeeId": key, **employee}
            for key, employee in load()["employees"].items()
            if team in (None, employee["team"]) and all(word in employee["name"].casefold() for word in words)
        ]

    @server.tool(annotations=READ)
    def getLeaveBalance(employeeId: str, leaveType: LeaveType = "vacation") -> dict[str, Any]:  # noqa: N802, N803
        """Get how many days of leave an employee is entitled to, has taken, and has left."""
        return {"employeeId": employeeId, "leaveType": leaveType, **_read_balance(load(), employeeId, leaveType)}

    @server.tool(annotations=READ)
    def listLeaveRequests(filter: RequestFilter | None = None) -> list[dict[str, Any]]:  # noqa: A002, N802
        """List leave requests. Without a filter, lists all of them."""
        leave = load()
        wanted = filter.model_dump(exclude_none=True) if filter is not None else {}
        rows = [
            {"requestId": key, **leave["employees"][request["employeeId"]], **request}
            for key, request in leave["requests"].items()
        ]
        return [row for row in rows if all(row[field] == value for field, value in wanted.items())]

    @server.tool(annotations=READ)
    def getTeamCalendar(team: Team, month: Month) -> list[dict[str, str]]:  # noqa: N802
        """Get who of a team is away in a month. Only approved leave counts."""
        leave = load()
        if team == "design":
            file.fail_first_calls("getTeamCalendar", 1)
        return [
            {"name": leave["employees"][request["employeeId"]]["name"], **request["period"]}
            for request in leave["requests"].values()
            if request["status"] == "approved"
            and leave["employees"][request["employeeId"]]["team"] == team
            and request["period"]["startDate"][:7] <= month <= request["period"]["endDate"][:7]
        ]


def _add_changing_tools(server: MCPServer, file: StateFile) -> None:
    @server.tool(annotations=EFFECT)
    def submitLeaveRequest(request: LeaveRequest) -> dict[str, Any]:  # noqa: N802
        """Submit a request for leave. It is pending until it is decided."""
        with file.change() as state:
            leave = state["leave"]
            balance = _read_balance(leave, request.employeeId, request.leaveType)
            days = _count_working_days(request.period)
            if days > balance["remainingDays"]:
                raise ToolError(f"not submitted: {days} working days are wanted, {balance['remainingDays']} are left")
            key = f"LR-{501 + len(leave['requests'])}"
            leave["requests"][key] = {**request.model_dump(), "status": "pending"}
        return {
            "requestId": key,
            "status": "pending",
            "workingDays": days,
            "remainingDaysAfterwards": balance["remainingDays"] - days,
        }

    @server.tool(annotations=WRITE)
    def decideLeaveRequest(  # noqa: N802
        requestId: str,  # noqa: N803
        decision: Literal["approved", "declined"],
        comment: str | None = None,
    ) -> dict[str, Any]:
        """Approve or decline a pending leave request, with a comment to the employee if there is one."""
        with file.change() as state:
            request = _find_pending(state["leave"], requestId)
            request["status"] = decision
            if comment:
                request["comment"] = comment
        return {"requestId": requestId, **request}

    @server.tool(annotations=DELETE)
    def withdrawLeaveRequest(requestId: str) -> dict[str, Any]:  # noqa: N802, N803
        """Withdraw a pending leave request for its employee."""
        with file.change() as state:
            request = _find_pending(state["leave"], requestId)
            request["status"] = "withdrawn"
        return {"requestId": requestId, **request}


def _read_balance(leave: State, employee_id: str, leave_type: str) -> dict[str, Any]:
    find_record(leave["employees"], employee_id, "employee")
    entitled, used = leave["balances"][employee_id].get(leave_type, (0, 0))
    return {"entitledDays": entitled, "takenDays": used, "remainingDays": entitled - used}


def _find_pending(leave: State, request_id: str) -> State:
    """The request. Raises `ToolError` if it has been decided."""
    request: State = find_record(leave["requests"], request_id, "leave request")
    if request["status"] != "pending":
        raise ToolError(f"{request_id} is {request['status']} already")
    return request


def _count_working_days(period: Period) -> int:
    """The days from Monday to Friday. Raises `ToolError` for a date that does not exist and for an empty period."""
    try:
        day, last = date.fromisoformat(period.startDate), date.fromisoformat(period.endDate)
    except ValueError as error:
        raise ToolError(f"a date does not exist: {error}") from error
    if last < day:
        raise ToolError("endDate must not be earlier than startDate")
    return sum((day + timedelta(number)).weekday() < WORKING_DAYS for number in range((last - day).days + 1))
