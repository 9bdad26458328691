"""Looks at what a call works on, before the call: the columns of a table before a query of it.

A capable model looks by itself. A small one writes the query with names that it makes up, or reads the first lines of a
table of thousands and takes them for all.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath

from pydantic import JsonValue

from agent.core.models import PlanStep
from agent.planning.request import PlanningRequest, RoundCall
from agent.planning.rounds.named_files import list_named_files
from agent.tools import ToolSpec


def look_first(steps: Iterable[PlanStep], request: PlanningRequest, notes: list[str]) -> dict[str, PlanStep]:
    """The calls to make in place of steps that work on something unseen, by the ids of these steps."""
    seen = {(call.tool, str(call.args)) for call in request.rounds}
    planned: dict[tuple[str, str], PlanStep] = {}
    looks: dict[str, PlanStep] = {}
    for step in steps:
        look = _build_look(step, request)
        if look is None or (look.tool, str(look.args)) in seen:
            continue
        looks[step.id] = planned.setdefault((look.tool, str(look.args)), look)
        notes.append(f"{step.tool} waits for {look.tool}, which shows what it works on")
    return looks


def list_waiting(steps: Iterable[PlanStep], looks: Mapping[str, PlanStep]) -> list[str]:
    """The tools of the steps that wait for `looks` at one and the same thing; [] if there are several things, each of
    which has steps of its own."""
    are_same = len({str(look.args) for look in looks.values()}) == 1
    return [step.tool for step in steps if step.id in looks and are_same]


def list_followers(request: PlanningRequest) -> list[tuple[ToolSpec, dict[str, list[str]]]]:
    """The tools that work on what the last round looked at, each with the values of the inputs that say what that is.
    One that failed on it is tried again, with its error in view. [] if that round called anything else."""
    done = [call for call in request.rounds if not call.failed]
    looked = {call.tool for call in done}
    following = [spec for spec in request.catalogue.tools if spec.hints.looks_first_with in looked]
    looks = {spec.hints.looks_first_with for spec in following}
    names = {spec.name for spec in following}
    if not all(call.tool in looks or (call.failed and call.tool in names) for call in request.last_calls):
        return []
    return [(spec, _list_looked_at(spec, done)) for spec in following]


def _list_looked_at(spec: ToolSpec, calls: Iterable[RoundCall]) -> dict[str, list[str]]:
    """The texts that were given to the tool that looks, by the inputs that this one has too."""
    inputs = spec.properties
    values: dict[str, list[str]] = {}
    for call in calls:
        for name, value in call.args.items() if call.tool == spec.hints.looks_first_with else ():
            if name in inputs:
                values.setdefault(name, []).extend(str(one) for one in (value if isinstance(value, list) else [value]))
    return {name: [*dict.fromkeys(listed)] for name, listed in values.items()}


def _build_look(step: PlanStep, request: PlanningRequest) -> PlanStep | None:
    spec = request.catalogue.get_tool(step.tool)
    if spec is None:
        return None
    before = request.catalogue.get_tool(spec.hints.looks_first_with)
    if before is not None:
        inputs = before.properties
        args = {name: value for name, value in step.args.items() if name in inputs}
        name = before.hints.file_input
    else:
        path = step.args.get(spec.hints.file_input)
        before = _find_describer(path, request) if isinstance(path, str) and not spec.hints.file_types else None
        if before is None:
            return None
        name = before.hints.file_input
        is_list = before.get_property(name).get("type") == "array"
        args = {name: [path] if is_list else path}
    if before.effect != "read":
        return None
    if isinstance(paths := args.get(name), list):
        args[name] = [*paths, *_list_others(paths, before, request)]
    return step.model_copy(update={"tool": before.name, "args": args, "intent": f"see what {step.tool} works on"})


def _list_others(paths: Sequence[JsonValue], before: ToolSpec, request: PlanningRequest) -> list[str]:
    """The other files that the request names, of the types that a tool describes: a query needs each of them, and a
    small model names one."""
    given = {PurePosixPath(str(path)).name.casefold() for path in paths}
    files = map(PurePosixPath, list_named_files(request.question, request.ground))
    return [
        str(one) for one in files if one.suffix.lower() in before.hints.file_types and one.name.casefold() not in given
    ]


def _find_describer(path: str, request: PlanningRequest) -> ToolSpec | None:
    """The tool that describes files of this type, if there is one that works on them afterwards."""
    suffix = PurePosixPath(path).suffix.lower()
    works_on = {spec.hints.looks_first_with for spec in request.catalogue.tools}
    describing = (spec for spec in request.catalogue.tools if suffix and suffix in spec.hints.file_types)
    return next((spec for spec in describing if spec.name in works_on), None)
