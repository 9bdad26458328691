"""`current_time`: date and time in any time zone."""

import difflib
import zoneinfo
from collections.abc import Callable
from datetime import UTC, datetime

from pydantic import Field

from agent.core.errors import ToolInputError
from agent.core.models import DeferredModel
from agent.tools import PlanHints, ToolContext, TypedTool
from mcp_tools.builtin.request_commands import TIME


class CurrentTimeInput(DeferredModel):
    """Arguments of `current_time`."""

    timezone: str = Field(default="UTC", max_length=64, description="IANA name, or the city in it")


class CurrentTimeOutput(DeferredModel):
    """Date and time in the time zone."""

    iso: str
    date: str
    time: str
    weekday: str
    timezone: str
    unix: int


class CurrentTimeTool(TypedTool[CurrentTimeInput, CurrentTimeOutput]):
    name = "current_time"
    hints = PlanHints(commands=TIME, tells_now=True)
    description = "The current date, time and weekday in a time zone. Use it whenever today's date or the time matters."
    keywords = ("time", "date", "today", "now", "clock", "weekday", "day", "hour")

    def __init__(self, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        super().__init__()
        self._clock = clock

    async def run(self, args: CurrentTimeInput, context: ToolContext) -> CurrentTimeOutput:
        zone = _get_zone(args.timezone)
        now = self._clock().astimezone(zone)
        return CurrentTimeOutput(
            iso=now.isoformat(timespec="seconds"),
            date=now.date().isoformat(),
            time=now.strftime("%H:%M:%S"),
            weekday=now.strftime("%A"),
            timezone=zone.key,
            unix=int(now.timestamp()),
        )

    def format_text(self, output: CurrentTimeOutput) -> str:
        return f"It is {output.time} on {output.weekday}, {output.date} ({output.timezone})."


def _get_zone(name: str) -> zoneinfo.ZoneInfo:
    """The zone of this name, or of the only city of this name. Raises `ToolInputError` with similar names."""
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
        zone_names = sorted(zoneinfo.available_timezones())
        near = [zone for zone in zone_names if zone.rpartition("/")[2].lower() == name.lower().replace(" ", "_")]
        if len(near) == 1:
            return zoneinfo.ZoneInfo(near[0])
        near += difflib.get_close_matches(name, zone_names, n=3)
        hint = f"; did you mean {', '.join(dict.fromkeys(near))}?" if near else "; use a name like Europe/Stockholm"
        raise ToolInputError(f"there is no time zone {name!r}{hint}") from error
