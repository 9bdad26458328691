"""What a capable planner writes for a user's task: reads, extractions, list steps and changes, in one plan.

The plan is made from the task's ground truth, and holds no value that the request does not hold: such a value is taken
out of an earlier result by `extract` and referred to. Where a request means every item of something, the plan has one
list step, since nobody can know beforehand how many there are. Runs in the peer's environment.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.bench.injection.worlds import Job, is_read

CHOSEN_BY_CONTENT: Mapping[str, frozenset[str]] = {
    # The text that is read says what to do: no fixed plan can know the tools.
    "workspace": frozenset({"user_task_13", "user_task_19"}),
    "slack": frozenset({"user_task_18", "user_task_20"}),
    "banking": frozenset({"user_task_12"}),
    "travel": frozenset(),
}
EACH: Mapping[str, frozenset[str]] = {
    # The number of calls is known only after reading.
    "workspace": frozenset({"user_task_25"}),
    "slack": frozenset(f"user_task_{number}" for number in (4, 5, 8, 9, 10, 11, 13, 14, 15, 19)),
    "banking": frozenset(),
    "travel": frozenset(),
}
GUARDED: Mapping[str, frozenset[str]] = {  # the change depends on a condition: a step stops the plan if it fails
    "workspace": frozenset({"user_task_4", "user_task_6", "user_task_20"}),
    "travel": frozenset({"user_task_0", "user_task_1"}),
    "banking": frozenset({"user_task_14"}),
    "slack": frozenset(),
}
LOOKED_UP = frozenset({  # arguments that look as if they were known
    ("workspace", "user_task_10", "day"), ("workspace", "user_task_12", "start_time"),
    ("workspace", "user_task_12", "end_time"), ("workspace", "user_task_21", "start_time"),
    ("workspace", "user_task_21", "end_time"), ("workspace", "user_task_15", "start_time"),
    ("workspace", "user_task_15", "end_time"), ("workspace", "user_task_18", "start_time"),
    ("workspace", "user_task_18", "end_time"), ("workspace", "user_task_29", "content"),
    ("banking", "user_task_0", "subject"), ("travel", "user_task_3", "subject"), ("travel", "user_task_4", "title"),
    ("travel", "user_task_7", "title"), ("travel", "user_task_8", "title"), ("banking", "user_task_3", "amount"),
    ("banking", "user_task_4", "amount"), ("banking", "user_task_6", "amount"), ("banking", "user_task_9", "amount"),
})  # fmt: skip
WRITTEN = frozenset({  # what a planner writes itself
    "query", "n", "recurring", "filename", "permission", "date", "subject", "title", "start_time", "end_time", "day",
    "start_day", "end_day", "status", "city", "departure_city", "arrival_city", "sender",
})  # fmt: skip
NAMES = {"hotel_names": "hotels", "restaurant_names": "restaurants", "company_name": "car_rental"}
"""Arguments that name all of something in a city, by the word in the function that lists them."""


class NotPlannableError(Exception):
    """No fixed plan can do the task."""


def is_said(value: Any, prompt: str) -> bool:
    """Whether a request holds a value."""
    if isinstance(value, bool) or value is None:
        return True
    if isinstance(value, int | float):
        return re.search(rf"(?<![\d.]){re.escape(f'{value:g}')}(?:\.0+)?(?!\d)", prompt) is not None
    if isinstance(value, str):
        return value == "" or value.casefold() in prompt.casefold()
    if isinstance(value, list):
        return all(is_said(item, prompt) for item in value)
    if isinstance(value, dict):
        return all(is_said(item, prompt) for name, item in value.items() if name != "type")
    return False


def describe_field(value: Any) -> Any:
    """The type of a field of `extract` that holds a value."""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, list):
        return [describe_field(value[0]) if value else "string"]
    if isinstance(value, dict):
        return {"type": "object", "properties": {name: describe_field(item) for name, item in value.items()}}
    return "string"


@dataclass
class _Draft:
    """A plan while it is written."""

    job: Job
    steps: list[dict[str, Any]] = field(default_factory=list)
    extractions: dict[str, tuple[dict[str, Any], str]] = field(default_factory=dict)
    reads: list[str] = field(default_factory=list)
    """Steps whose results may hold what a later step needs."""
    names: dict[str, tuple[str, str]] = field(default_factory=dict)
    seen: dict[str, str] = field(default_factory=dict)
    """Reading calls that the plan makes already, by their inputs."""
    guard: str = ""

    def add(self, tool: str, args: Mapping[str, Any], intent: str, after: Iterable[str] = ()) -> str:
        """Adds a step and returns its id."""
        name = f"s{len(self.steps) + 1}"
        inputs = [
            {"name": key, "value": value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}
            for key, value in args.items()
        ]
        self.steps.append({"id": name, "tool": tool, "inputs": inputs, "depends_on": [*after], "intent": intent})
        return name

    def extract(self, values: Mapping[str, Any], wanted: str, function: str = "") -> dict[str, str]:
        """Adds an extraction of the values and returns the reference to each."""
        tag = str(len(self.extractions) + 1)
        self.extractions[tag] = (dict(values), function)
        fields = {name: describe_field(value) for name, value in values.items()}
        sources = [f"${name}" for name in self.reads]
        if not sources:
            raise NotPlannableError("nothing was read that could hold a value")
        step = self.add("extract", {"value": sources, "fields": fields, "wanted": f"[E{tag}] {wanted}"}, wanted[:200])
        return {name: f"${step}.output.{name}" for name in values}


def build_plan(job: Job) -> dict[str, Any]:
    """The plan of a job as the planner writes it, and notes in the job what its extractions return.

    Raises `NotPlannableError`.
    """
    suite, user = job.suite, job.user_id
    if user in CHOSEN_BY_CONTENT[suite]:
        raise NotPlannableError("a text that is read says what to do")
    draft = _Draft(job)
    calls = list(job.truth)
    if user in EACH[suite]:
        order = list(dict.fromkeys(call.function for call in calls))
        for function in order:
            _add_group(draft, [call for call in calls if call.function == function])
    else:
        for call in calls:
            _add_call(draft, call)
    if len(draft.steps) > job.max_steps - 1:
        raise NotPlannableError(f"{len(draft.steps) + 1} steps")
    job.extractions = draft.extractions
    return {
        "kind": "plan",
        "reasoning": "as asked",
        "goal": job.task.PROMPT[:200],
        "language": "en",
        "answer_tier": "fast",
        "steps": draft.steps,
    }


def _split_args(job: Job, call: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The arguments that the planner writes itself, and those that must be looked up."""
    known: dict[str, Any] = {}
    unknown: dict[str, Any] = {}
    for name, value in call.args.items():
        if value is None or (value == "" and name != "query"):
            continue
        must_look = (job.suite, job.user_id, name) in LOOKED_UP
        is_known = not must_look and (name in WRITTEN or is_said(value, job.task.PROMPT))
        (known if is_known else unknown)[name] = value
    return known, unknown


def _add_call(draft: _Draft, call: Any) -> None:
    job = draft.job
    known, unknown = _split_args(job, call)
    wanted = f"what {call.function} needs to serve: {job.task.PROMPT}"
    references: dict[str, str] = {}
    if not is_read(call.function):
        after = [_add_guard(draft)] if job.user_id in GUARDED[job.suite] else []
        references = draft.extract(unknown, wanted, call.function) if unknown else {}
        draft.reads.append(draft.add(job.tools[call.function], {**known, **references}, f"do {call.function}", after))
        return
    for name in [name for name in unknown if name in NAMES and job.suite == "travel"]:
        city = _find_city(job, call)
        if name not in draft.names or draft.names[name][1] != city:
            listed = _list_names(job, name, city) or call.args[name]
            reference = draft.extract({"names": listed}, f"all names for {name} in {city}")["names"]
            draft.names[name] = (reference, city)
        references[name] = draft.names[name][0]
        unknown.pop(name)
    if unknown:
        references |= draft.extract(unknown, wanted, call.function)
    key = json.dumps([call.function, known, references], sort_keys=True)
    if key not in draft.seen:
        draft.seen[key] = draft.add(job.tools[call.function], {**known, **references}, f"read with {call.function}")
        draft.reads.append(draft.seen[key])


def _add_group(draft: _Draft, calls: list[Any]) -> None:
    """Adds the calls of one function: as they are where the request says all of it, else as one list step."""
    job = draft.job
    split = [_split_args(job, call) for call in calls]
    if all(not unknown for _, unknown in split):
        for call in calls:
            _add_call(draft, call)
        return
    varying = sorted({name for known, unknown in split for name in (*known, *unknown)})
    fixed = {
        name: split[0][0][name]
        for name in varying
        if all(name in known and known[name] == split[0][0].get(name) for known, _ in split)
    }
    rows = [{name: {**known, **unknown}.get(name) for name in varying if name not in fixed} for known, unknown in split]
    function = calls[0].function
    wanted = f"every item for which {function} is called to serve: {job.task.PROMPT}"
    items = draft.extract({"items": rows}, wanted, function)["items"]
    inputs = {"for_each": items, **fixed, **{name: f"$item.{name}" for name in varying if name not in fixed}}
    after = [_add_guard(draft)] if job.user_id in GUARDED[job.suite] and not is_read(function) else []
    draft.reads.append(draft.add(job.tools[function], inputs, f"{function} for each", after))


def _add_guard(draft: _Draft) -> str:
    """Adds, once, the steps that stop the plan unless the request's condition holds."""
    if not draft.guard:
        holds = draft.extract({"holds": True}, f"does the condition of this request hold? {draft.job.task.PROMPT}")
        code = "assert inputs['holds'] is True, 'the condition does not hold'\nresult = 'it holds'"
        draft.guard = draft.add(
            "run_python", {"code": code, "inputs": {"holds": holds["holds"]}}, "stop unless it holds"
        )
    return draft.guard


def _find_city(job: Job, call: Any) -> str:
    """The city of a travel call: that of the names it is about."""
    argument = next(name for name in call.args if name in NAMES)
    value = call.args[argument]
    wanted = set(value if isinstance(value, list) else [value])
    for read in job.truth:
        lists = read.function.startswith("get_all_") and NAMES[argument] in read.function
        if lists and wanted & set(_list_names(job, argument, read.args["city"])):
            return str(read.args["city"])
    return ""


def _list_names(job: Job, argument: str, city: str) -> list[str]:
    places = job.before
    if argument == "hotel_names":
        return [one.name for one in places.hotels.hotel_list if one.city == city]
    if argument == "restaurant_names":
        return [one.name for one in places.restaurants.restaurant_list if one.city == city]
    return [one.name for one in places.car_rental.company_list if one.city == city]
