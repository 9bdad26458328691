"""The server `clinic`: patients, practitioners and appointments."""

from typing import Any, Literal

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

from gateway.features.evaluation.state_file import EFFECT, READ, WRITE, State, StateFile, find_record
from gateway.features.evaluation.tool_inputs import Clock, Day, Inputs

Practitioner = Literal["dr-okoye", "dr-lund", "physio-ito"]
Status = Literal["requested", "confirmed", "cancelled", "no-show"]


class AppointmentFilter(Inputs):
    """Which appointments; what is left out does not matter."""

    practitioner: Practitioner | None = None
    date: Day | None = None
    patient_id: str | None = None
    status: Status | None = None


class Moment(Inputs):
    """When."""

    date: Day
    time: Clock


class Slot(Moment):
    """With whom, and when."""

    practitioner: Practitioner


def build_clinic(file: StateFile) -> MCPServer:
    """Builds the server of appointments."""
    server = MCPServer("clinic")

    @server.tool(annotations=READ)
    def find_patients(name: str) -> list[dict[str, Any]]:
        """Find patients by a part of their name."""
        patients = file.load()["patients"]
        return [
            {"patient_id": key, **patient}
            for key, patient in patients.items()
            if name.casefold() in patient["name"].casefold()
        ]

    @server.tool(annotations=READ)
    def list_appointments(where: AppointmentFilter | None = None) -> list[dict[str, Any]]:
        """List appointments with the patient's name, in the order of their ids."""
        state = file.load()
        wanted = where.model_dump(exclude_none=True) if where is not None else {}
        return [
            {"appointment_id": key, "name": state["patients"][record["patient_id"]]["name"], **record}
            for key, record in state["appointments"].items()
            if all(record[field] == value for field, value in wanted.items())
        ]

    @server.tool(annotations=READ)
    def free_times(practitioner: Practitioner, date: Day) -> list[str]:
        """List the times of a day at which a practitioner is free, earliest first."""
        state = file.load()
        return [time for time in state["hours"][practitioner] if _find_taken(state, practitioner, date, time) is None]

    @server.tool(annotations=EFFECT)
    def book_appointment(
        patient_id: str, slot: Slot, reminders: list[Literal["sms", "email", "letter"]] | None = None
    ) -> str:
        """Book an appointment, with reminders if wanted. Returns its id."""
        with file.change() as state:
            find_record(state["patients"], patient_id, "patient")
            _require_free(state, slot.practitioner, slot.date, slot.time)
            key = f"A-{71 + len(state['appointments'])}"
            state["appointments"][key] = {"patient_id": patient_id, **slot.model_dump(), "status": "confirmed"}
            if reminders:
                state["appointments"][key]["reminders"] = sorted(set(reminders))
        return key

    @server.tool(annotations=EFFECT)
    def move_appointment(appointment_id: str, to: Moment) -> str:
        """Move an appointment to another time of the same practitioner."""
        with file.change() as state:
            record = find_record(state["appointments"], appointment_id, "appointment")
            _require_free(state, record["practitioner"], to.date, to.time)
            record.update(to.model_dump())
        return f"{appointment_id} is on {to.date} at {to.time}"

    @server.tool(annotations=WRITE)
    def set_status(appointment_id: str, status: Status) -> str:
        """Confirm or cancel an appointment, or note that nobody came."""
        with file.change() as state:
            find_record(state["appointments"], appointment_id, "appointment")["status"] = status
        return f"{appointment_id} is {status}"

    return server


def _find_taken(state: State, practitioner: str, date: str, time: str) -> str | None:
    """The appointment at that time that is not cancelled, if any."""
    for key, record in state["appointments"].items():
        same = (record["practitioner"], record["date"], record["time"]) == (practitioner, date, time)
        if same and record["status"] != "cancelled":
            return str(key)
    return None


def _require_free(state: State, practitioner: str, date: str, time: str) -> None:
    """Raises `ToolError` if the practitioner does not work then or has another patient."""
    if time not in state["hours"][practitioner]:
        raise ToolError(
            f"{practitioner} has no appointments at {time}; times: {', '.join(state['hours'][practitioner])}"
        )
    if (key := _find_taken(state, practitioner, date, time)) is not None:
        raise ToolError(f"{time} on {date} is taken by {key}")
