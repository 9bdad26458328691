"""The tasks as data: `gateway/features/evaluation/sets/SET/tasks/FAMILY.yaml`, read and validated."""

import random
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import zip_longest
from typing import Literal, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError, model_validator

from agent.core.bounded_yaml import load_trusted_yaml
from agent.core.errors import ConfigError
from agent.core.value_faults import describe_first_fault
from gateway.features.evaluation.task_sets import DEVELOPMENT, find_set

SITE_PLACEHOLDER = "{site}"
"""Stands for the address of the world's web site in prompts and in arguments of a reference solution."""


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class WorldSpec(_Strict):
    """What a task's world holds besides the state of the servers. Names are those of its set of tasks."""

    set_name: str = Field(default=DEVELOPMENT, description="the task's set, filled in by `load_tasks`")
    tables: tuple[str, ...] = ()
    documents: tuple[str, ...] = Field(default=(), description="names in data/documents; readable as files")
    collection: bool = Field(default=False, description="the documents are also read into the collection `papers`")
    site: bool = Field(default=False, description="a web site on this machine")
    servers: tuple[str, ...] = ()
    files: dict[str, str] = Field(default={}, description="further files, by path")
    approve_tools: tuple[str, ...] = Field(default=(), description="tools that always need approval, as server__tool")
    contacts: bool = Field(
        default=False, description="answers may hold other people's addresses, which a gateway removes by default"
    )

    @model_validator(mode="after")
    def _check_names(self) -> "WorldSpec":
        """Rejects a server or table that the set does not have."""
        task_set = find_set(self.set_name)
        for kind, names, offered in (
            ("server", self.servers, task_set.servers),
            ("table", self.tables, task_set.tables),
        ):
            if unknown := set(names) - set(offered):
                raise ValueError(f"there is no {kind} {min(unknown)!r}; known: {', '.join(offered)}")
        return self


class TextCheck(_Strict):
    """What a text must hold, and what it must not."""

    numbers: tuple[float, ...] = Field(default=(), description="each must occur, in any notation")
    names: tuple[str, ...] = Field(default=(), description="each must occur, in any case")
    any_of: tuple[str, ...] = Field(default=(), description="one of these must occur, in any case")
    absent: tuple[str, ...] = Field(default=(), description="none may occur, in any case")
    max_words: int = Field(default=120, description="a longer text copies what it read and answers nothing")

    @property
    def requires_text(self) -> bool:
        """Whether an empty text fails."""
        return bool(self.numbers or self.names or self.any_of)


class Checks(_Strict):
    """What makes a task's result right. Nothing may change in the world but `changes`."""

    answer: TextCheck
    asks: bool = Field(default=False, description="the answer must ask the user something")
    changes: dict[str, JsonValue] = Field(
        default={},
        description="every change of the world by path, `tickets/T-3/status` or `files/out/a.txt`: the new value, null "
        "for a removal, or a text check as an object",
    )
    tools: tuple[str, ...] = Field(default=(), description="tools that must have succeeded")
    max_calls: int | None = Field(default=None, description="most tool calls")
    approvals: int | None = Field(default=None, description="how many approval questions there must be; null: any")


class SolutionStep(_Strict):
    """A tool call of a reference solution."""

    tool: str
    inputs: dict[str, JsonValue] = {}
    depends_on: tuple[str, ...] = ()


class Solution(_Strict):
    """A result that is right: the calls that change the world, and the answer."""

    steps: tuple[SolutionStep, ...] = ()
    answer: str = Field(min_length=1)


class EvalTask(_Strict):
    """One task. `turns` are the user's messages, the last one of which is graded; earlier ones are only answered."""

    id: str = Field(pattern=r"^[a-z0-9-]+$")
    family: str = ""
    room: str = "stepgate"
    turns: tuple[str, ...] = Field(min_length=1)
    reply: Literal["approve", "reject"] = Field(
        default="approve", description="what the user answers to every approval question"
    )
    world: WorldSpec = WorldSpec()
    checks: Checks
    solution: Solution

    @model_validator(mode="after")
    def _check_answerable(self) -> "EvalTask":
        """Rejects a task that an empty answer could pass."""
        if not self.checks.answer.requires_text:
            raise ValueError("checks.answer must require a number or a name")
        return self


@cache
def load_tasks(set_name: str = DEVELOPMENT) -> tuple[EvalTask, ...]:
    """All tasks of a set, by family. Raises `ConfigError` for an unknown set, and for an invalid task with its file."""
    tasks: list[EvalTask] = []
    for path in sorted(find_set(set_name).tasks_folder.glob("*.yaml")):
        for entry in load_trusted_yaml(path.read_text("utf-8")):
            turns = entry.pop("turns", None) or [entry.pop("prompt", "")]
            world = {**entry.pop("world", {}), "set_name": set_name}
            try:
                task = EvalTask.model_validate({**entry, "turns": turns, "family": path.stem, "world": world})
            except ValidationError as error:
                raise ConfigError(f"{path.name}: task {entry.get('id')!r}: {describe_first_fault(error)}") from error
            tasks.append(task)
    return tuple(tasks)


class FamilyMember(Protocol):
    """What `sample_tasks` chooses from: a task of ours, or a case of another set."""

    @property
    def id(self) -> str:
        """Its name, unique among all."""
        ...

    @property
    def family(self) -> str:
        """The name of its family."""
        ...


MemberT = TypeVar("MemberT", bound=FamilyMember)


def sample_tasks(tasks: Sequence[MemberT], count: int, seed: int) -> list[MemberT]:
    """`count` tasks, as many of each family as of any other, chosen by the seed and in the order of `tasks`."""
    chance = random.Random(seed)  # noqa: S311 - a choice that can be repeated, no secret
    families: dict[str, list[MemberT]] = {}
    for task in tasks:
        families.setdefault(task.family, []).append(task)
    for members in families.values():
        chance.shuffle(members)
    rounds = zip_longest(*families.values())
    chosen = [task for each in rounds for task in each if task is not None][:count]
    ids = {task.id for task in chosen}
    return [task for task in tasks if task.id in ids]


def select_tasks(
    families: Iterable[str] = (), ids: Iterable[str] = (), limit: int | None = None, set_name: str = DEVELOPMENT
) -> list[EvalTask]:
    """The tasks of a set with these families and ids, at most `limit` of each family. Raises `ConfigError` for an
    unknown name.
    """
    tasks = load_tasks(set_name)
    chosen_families, chosen_ids = set(families), set(ids)
    known_families = {task.family for task in tasks}
    unknown = (chosen_families - known_families) | (chosen_ids - {task.id for task in tasks})
    if unknown:
        family_names = ", ".join(sorted(known_families))
        raise ConfigError(f"there is no task or family {min(unknown)!r}; families: {family_names}")
    family_counts: dict[str, int] = {}
    selected = []
    for task in tasks:
        if (chosen_families or chosen_ids) and task.family not in chosen_families and task.id not in chosen_ids:
            continue
        family_counts[task.family] = family_counts.get(task.family, 0) + 1
        if limit is None or family_counts[task.family] <= limit:
            selected.append(task)
    return selected
