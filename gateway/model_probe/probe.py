"""`ModelProbe`: asks the tasks one after another, keeps the outcomes, and goes on where it was interrupted."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from time import monotonic

from agent.core.errors import ModelError, PlanInvalidError
from agent.core.models import JsonObject
from agent.llm.profile import MeasuredTask
from gateway.model_probe.asked_model import LOST, AskedModel, Speed
from gateway.model_probe.tasks import PROBE_TASKS, ProbeTask, TaskKind, TaskResult

PROBE_SECONDS = 300.0
"""Time limit of all tasks together."""
_SPEED_TEXT = "Continue this list with ten more towns, one in each line:\n" + "\n".join(
    f"{number}. {town}" for number, town in enumerate(("Oslo", "Lund", "Bergen", "Turku", "Odense", "Visby") * 6, 1)
)
"""About 200 tokens that are in no cache."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one task."""

    kind: TaskKind
    name: str
    right: bool
    note: str = ""


class ModelProbe:
    """The probe of one model. `run` may be cancelled and called again: only the missing tasks are asked then."""

    def __init__(self, model: AskedModel, tasks: Sequence[ProbeTask] = PROBE_TASKS) -> None:
        self.model = model
        self.outcomes: list[Outcome] = []
        self.speed: Speed | None = None
        self.seconds = 0.0
        self.tasks = tuple(tasks)

    @property
    def is_complete(self) -> bool:
        """Whether every task was asked."""
        return self.speed is not None and self._find_missing() is None

    def resume(self, former: Iterable[MeasuredTask]) -> None:
        """Takes over the outcomes of a measurement that was cut off. Those of other tasks count as not asked."""
        by_name = {(one.kind, one.name): one for one in former}
        same = [(task, by_name.get((task.kind, task.name))) for task in self.tasks]
        self.outcomes = [Outcome(task.kind, task.name, one.right, one.note) for task, one in same if one is not None]

    async def run(
        self, *, seconds: float = PROBE_SECONDS, report: Callable[[Outcome], None] = lambda outcome: None
    ) -> None:
        """Asks the tasks that are missing, one at a time, until `seconds` are over in all.

        Raises `ModelError` if the endpoint is down, busy or refuses the key: nothing is learnt of the model then. Other
        errors count as a wrong reply.
        """
        while not self.is_complete and self.seconds < seconds:
            started = monotonic()
            try:
                if self.speed is None:
                    self.speed = await self._measure_speed()
                else:
                    task = self._find_missing()
                    assert task is not None
                    outcome = await self._ask(task)
                    self.outcomes.append(outcome)
                    report(outcome)
            finally:
                self.seconds += monotonic() - started

    def _find_missing(self) -> ProbeTask | None:
        """The first task that was not asked yet."""
        done = {(one.kind, one.name) for one in self.outcomes}
        return next((task for task in self.tasks if (task.kind, task.name) not in done), None)

    async def _ask(self, task: ProbeTask) -> Outcome:
        self.model.lost = None
        try:
            reply = await task.run(self.model)
        except (ModelError, PlanInvalidError) as error:
            reply = TaskResult(False, error.message)
        if self.model.lost is not None:
            raise self.model.lost
        return Outcome(task.kind, task.name, reply.right, reply.note[:200])

    async def _measure_speed(self) -> Speed:
        messages: tuple[JsonObject, ...] = ({"role": "user", "content": _SPEED_TEXT},)
        try:
            return await self.model.measure_speed(messages)
        except LOST:
            raise
        except ModelError:
            return Speed(0.0, 0.0, 0.0)
