"""The findings of `stepgate doctor` about rooms."""

from collections.abc import AsyncIterator

from gateway.bootstrap import Stepgate
from gateway.cli.doctor_finding import DoctorFinding
from gateway.features.studio.parts import get_studio


async def check_rooms(stepgate: Stepgate) -> AsyncIterator[DoctorFinding]:
    """Yields the rooms that cannot be used as they are stored."""
    for room_id, fault in sorted(get_studio(stepgate).room_editor.live.faults.items()):
        yield DoctorFinding(f"room {room_id}", False, fault, f"correct {room_id}.yaml; `stepgate rooms check` tries it")
