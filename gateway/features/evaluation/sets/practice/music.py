"""The server `music`: pupils, lessons and invoices of a music teacher. Its tools have names with hyphens."""

from datetime import datetime, timedelta
from typing import Any, Literal

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from gateway.features.evaluation.state_file import DELETE, EFFECT, READ, WRITE, State, StateFile, find_record
from gateway.features.evaluation.tool_inputs import Clock, Day, Inputs

Minutes = Literal[30, 45, 60]
LessonStatus = Literal["planned", "cancelled"]


class Slot(Inputs):
    """When a lesson begins."""

    day: Day
    time: Clock


class Payment(Inputs):
    """When and how an invoice was paid."""

    paid_on: Day
    method: Literal["cash", "bank_transfer", "card"]


def build_music(file: StateFile) -> MCPServer:
    """Builds the server of the music teacher."""
    server = MCPServer("music")
    _add_reading(server, file)
    _add_lessons(server, file)
    _add_invoices(server, file)
    return server


def _add_reading(server: MCPServer, file: StateFile) -> None:
    """Adds the tools about pupils, and the list of lessons."""

    @server.tool(name="find-pupils", annotations=READ)
    def find_pupils(name: str) -> list[dict[str, Any]]:
        """Look up pupils by name or a part of it."""
        return [
            {"pupil_id": key, "name": pupil["name"], "instrument": pupil["instrument"]}
            for key, pupil in file.load()["music"]["pupils"].items()
            if name.casefold() in pupil["name"].casefold()
        ]

    @server.tool(name="get-pupil", annotations=READ)
    def get_pupil(pupil_id: str) -> dict[str, Any]:
        """Everything about a pupil: instrument, parent, price of a lesson, and the notes of the last lessons."""
        return {"pupil_id": pupil_id, **find_record(file.load()["music"]["pupils"], pupil_id, "pupil")}

    @server.tool(name="list-lessons", annotations=READ)
    def list_lessons(
        first_day: Day | None = None,
        last_day: Day | None = None,
        pupil_id: str | None = None,
        status: LessonStatus | None = None,
    ) -> list[dict[str, Any]]:
        """List lessons in a period (both days included), of all pupils or of one."""
        music = file.load()["music"]
        return [
            {"lesson_id": key, "pupil": music["pupils"][lesson["pupil_id"]]["name"], **lesson}
            for key, lesson in music["lessons"].items()
            if (first_day or "") <= lesson["day"] <= (last_day or "9999")
            and pupil_id in (None, lesson["pupil_id"])
            and status in (None, lesson["status"])
        ]


def _add_lessons(server: MCPServer, file: StateFile) -> None:
    """Adds the tools that change the calendar of lessons."""

    @server.tool(name="book-lesson", annotations=EFFECT)
    def book_lesson(pupil_id: str, slot: Slot, minutes: Minutes = 45) -> dict[str, Any]:
        """Book a lesson for a pupil. Fails if the time is taken."""
        with file.change() as state:
            music = state["music"]
            find_record(music["pupils"], pupil_id, "pupil")
            lesson = {"pupil_id": pupil_id, **slot.model_dump(), "minutes": minutes, "status": "planned"}
            key = f"L-{301 + len(music['lessons'])}"
            _check_free(music, key, lesson)
            music["lessons"][key] = lesson
        return {"lesson_id": key, **lesson}

    @server.tool(name="move-lesson", annotations=WRITE)
    def move_lesson(lesson_id: str, new_slot: Slot) -> dict[str, Any]:
        """Move a planned lesson to another day or time. Its length stays. Fails if the time is taken."""
        with file.change() as state:
            lesson = _find_planned(state["music"], lesson_id)
            lesson.update(new_slot.model_dump())
            _check_free(state["music"], lesson_id, lesson)
        return {"lesson_id": lesson_id, **lesson}

    @server.tool(name="cancel-lesson", annotations=DELETE)
    def cancel_lesson(
        lesson_id: str, reason: Literal["pupil_ill", "teacher_ill", "holiday", "other"]
    ) -> dict[str, Any]:
        """Cancel a planned lesson. The parents get a message."""
        with file.change() as state:
            lesson = _find_planned(state["music"], lesson_id)
            lesson.update(status="cancelled", reason=reason)
        return {"lesson_id": lesson_id, **lesson}


def _add_invoices(server: MCPServer, file: StateFile) -> None:
    """Adds the tools of invoices."""

    @server.tool(name="list-invoices", annotations=READ)
    def list_invoices(
        pupil_id: str | None = Field(default=None, description="S and two digits; all pupils if left out"),
        status: Literal["open", "paid"] | None = None,
    ) -> list[dict[str, Any]]:
        """List the monthly invoices with amount in EUR."""
        invoices = file.load()["music"]["invoices"]
        file.fail_first_calls("list-invoices", 1)
        return [
            {"invoice_id": key, **invoice}
            for key, invoice in invoices.items()
            if pupil_id in (None, invoice["pupil_id"]) and status in (None, invoice["status"])
        ]

    @server.tool(name="mark-invoice-paid", annotations=WRITE)
    def mark_invoice_paid(invoice_id: str, payment: Payment) -> dict[str, Any]:
        """Note that an open invoice was paid."""
        with file.change() as state:
            invoice = find_record(state["music"]["invoices"], invoice_id, "invoice")
            if invoice["status"] == "paid":
                raise ToolError(f"{invoice_id} is paid already; nothing was changed")
            invoice.update(status="paid", payment=payment.model_dump())
        return {"invoice_id": invoice_id, **invoice}


def _find_planned(music: State, lesson_id: str) -> State:
    """The lesson. Raises `ToolError` if it is cancelled."""
    lesson: State = find_record(music["lessons"], lesson_id, "lesson")
    if lesson["status"] != "planned":
        raise ToolError(f"{lesson_id} is {lesson['status']} already; nothing was changed")
    return lesson


def _check_free(music: State, lesson_id: str, lesson: State) -> None:
    """Raises `ToolError` if another lesson takes place at the same time."""
    begin, end = _read_period(lesson)
    for key, other in music["lessons"].items():
        if key == lesson_id or other["status"] != "planned":
            continue
        other_begin, other_end = _read_period(other)
        if begin < other_end and other_begin < end:
            name = music["pupils"][other["pupil_id"]]["name"]
            raise ToolError(f"nothing was changed: the time is taken by {key}, {name}, {other['time']}")


def _read_period(lesson: State) -> tuple[datetime, datetime]:
    try:
        begin = datetime.fromisoformat(f"{lesson['day']}T{lesson['time']}")
    except ValueError as error:
        raise ToolError(f"the date or the time does not exist: {error}") from error
    return begin, begin + timedelta(minutes=lesson["minutes"])
