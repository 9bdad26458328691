"""The findings of `stepgate doctor` about the queue."""

from collections.abc import AsyncIterator

from agent.runs.dispatch import LANES
from gateway.bootstrap import Stepgate
from gateway.cli.doctor_finding import DoctorFinding
from gateway.features.fleet.engine.queue_names import get_lane
from gateway.features.fleet.parts import get_queue


async def check_queue(stepgate: Stepgate) -> AsyncIterator[DoctorFinding]:
    """Reports the lanes of the queue, if there is one, and whether somebody takes their jobs. Raises `StoreError`."""
    queue = get_queue(stepgate)
    if queue is None:
        return
    depths, workers = await queue.state.list_depths(), await queue.state.list_workers()
    lanes = {get_lane(worker.queue) for worker in workers}
    waiting = ", ".join(f"{depth.queue} {depth.waiting}" for depth in depths if depth.waiting) or "nothing"
    detail = f"{len({worker.name for worker in workers})} processes take {', '.join(sorted(lanes)) or 'no'} jobs; "
    unserved = sorted({depth.lane for depth in depths if depth.waiting and depth.lane not in lanes})
    if unserved or not workers:
        remedy = f"start `stepgate worker --lanes {','.join(unserved or LANES)}`"
        yield DoctorFinding("queue", False, f"{detail}waiting: {waiting}", remedy, fatal=False)
        return
    if stepgate.settings.redis_url is None:
        detail += "without AGENT_REDIS_URL each process counts the limits of keys for itself; "
    yield DoctorFinding("queue", True, f"{detail}waiting: {waiting}")
