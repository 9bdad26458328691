"""The server `home`: devices, sensors, scenes and schedules of a smart home."""

from typing import Any, Literal

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from gateway.features.evaluation.state_file import DELETE, EFFECT, READ, WRITE, State, StateFile, find_record
from gateway.features.evaluation.tool_inputs import Clock, Inputs

Room = Literal["kitchen", "hallway", "living_room", "bedroom", "study", "cellar", "outside"]
Kind = Literal["light", "thermostat", "blind", "lock", "switch", "sensor"]
Weekday = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]


class DeviceState(Inputs):
    """What to set. A device refuses what it does not have."""

    power: Literal["on", "off"] | None = None
    brightness: int | None = Field(default=None, ge=0, le=100, description="percent; lights")
    target: float | None = Field(default=None, ge=5, le=30, description="degrees Celsius; thermostats")
    position: int | None = Field(default=None, ge=0, le=100, description="percent; blinds, 0 is closed, 100 is open")
    lock: Literal["locked", "unlocked"] | None = None


class Schedule(Inputs):
    """When a device is switched on or off."""

    device_id: str
    action: Literal["on", "off"]
    time: Clock
    days: list[Weekday] = Field(min_length=1)


def build_home(file: StateFile) -> MCPServer:
    """Builds the server of the home's hub."""
    server = MCPServer("home")
    _add_reading_tools(server, file)
    _add_changing_tools(server, file)
    return server


def _add_reading_tools(server: MCPServer, file: StateFile) -> None:
    def load() -> State:
        home: State = file.load()["home"]
        return home

    @server.tool(annotations=READ)
    def list_devices(room: Room | None = None, kind: Kind | None = None) -> list[dict[str, Any]]:
        """List devices and sensors with their ids and current state. Sensors are read with read_sensor."""
        return [
            {"device_id": key, **device}
            for key, device in load()["devices"].items()
            if room in (None, device["room"]) and kind in (None, device["kind"])
        ]

    @server.tool(annotations=READ)
    def read_sensor(sensor_id: str) -> dict[str, Any]:
        """Read the current value of a sensor."""
        sensors = {key: device for key, device in load()["devices"].items() if device["kind"] == "sensor"}
        find_record(sensors, sensor_id, "sensor")
        return {"sensor_id": sensor_id, **load()["readings"][sensor_id]}

    @server.tool(annotations=READ)
    def list_scenes() -> list[dict[str, Any]]:
        """List the scenes: a name, and the device states that it sets."""
        return [{"scene_id": key, **scene} for key, scene in load()["scenes"].items()]

    @server.tool(annotations=READ)
    def list_schedules() -> list[dict[str, Any]]:
        """List the schedules with their ids."""
        return [{"schedule_id": key, **schedule} for key, schedule in load()["schedules"].items()]


def _add_changing_tools(server: MCPServer, file: StateFile) -> None:
    @server.tool(annotations=WRITE)
    def set_device(device_id: str, state: DeviceState) -> dict[str, Any]:
        """Set the state of a device: power, brightness, target temperature, position or lock."""
        wanted = state.model_dump(exclude_none=True)
        with file.change() as world:
            device = find_record(world["home"]["devices"], device_id, "device")
            if unknown := wanted.keys() - device["state"].keys():
                raise ToolError(f"{device_id} has no {min(unknown)}; it has {', '.join(device['state']) or 'no state'}")
            device["state"].update(wanted)
        return {"device_id": device_id, "state": device["state"]}

    @server.tool(annotations=WRITE)
    def activate_scene(scene_id: str) -> dict[str, Any]:
        """Set all devices of a scene."""
        with file.change() as world:
            home = world["home"]
            scene = find_record(home["scenes"], scene_id, "scene")
            file.fail_first_calls("activate_scene", 1)
            for device_id, wanted in scene["sets"].items():
                home["devices"][device_id]["state"].update(wanted)
        return {"scene_id": scene_id, **scene}

    @server.tool(annotations=EFFECT)
    def create_schedule(schedule: Schedule) -> dict[str, Any]:
        """Switch a device on or off at a time on certain days of the week. Returns the schedule's id."""
        with file.change() as world:
            home = world["home"]
            device = find_record(home["devices"], schedule.device_id, "device")
            if "power" not in device["state"]:
                raise ToolError(f"{schedule.device_id} cannot be switched on or off")
            key = f"sch-{1 + len(home['schedules'])}"
            home["schedules"][key] = schedule.model_dump()
        return {"schedule_id": key, **schedule.model_dump()}

    @server.tool(annotations=WRITE)
    def update_schedule(
        schedule_id: str, time: Clock | None = None, days: list[Weekday] | None = None
    ) -> dict[str, Any]:
        """Change the time or the days of a schedule."""
        with file.change() as world:
            schedule = find_record(world["home"]["schedules"], schedule_id, "schedule")
            schedule.update({name: value for name, value in (("time", time), ("days", days)) if value})
        return {"schedule_id": schedule_id, **schedule}

    @server.tool(annotations=DELETE)
    def delete_schedule(schedule_id: str) -> str:
        """Delete a schedule."""
        with file.change() as world:
            find_record(world["home"]["schedules"], schedule_id, "schedule")
            del world["home"]["schedules"][schedule_id]
        return f"{schedule_id} is deleted"
