"""The probe keeps what it learnt, learns nothing from an endpoint that is down, and chooses the bolder way only after
every task of it was right."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.core.errors import ModelRateLimitError, ModelTimeoutError, ModelUnreachableError
from agent.llm.measured_models import MeasuredModels
from agent.llm.port import ModelReply, ModelRequest
from agent.llm.profile import CAPABLE, SMALL, Count, ModelProfile, choose_profile, get_profile_source
from gateway.model_probe import PROBE_TASKS, AskedModel, ModelProbe, Outcome, build_record
from gateway.model_probe.record import choose_measured_profile
from gateway.model_probe.report import format_record
from gateway.model_probe.tasks import ANSWERED, TaskKind
from tests.support.recorded_model import RecordedModel, load_recorded, name_tasks
from tests.support.script import Script, says
from tests.support.scripted_client import ScriptedClient

KINDS: tuple[TaskKind, ...] = ("schema", "rounds", "plans", "answers", "catalogue", "tools", "verdicts", "languages")


class FailingClient(ScriptedClient):
    """Answers with one text, and fails where `fail` says so by the number of the call."""

    def __init__(self, fail: Callable[[int], Exception | None]) -> None:
        super().__init__(Script([says("no idea")]))
        self.fail = fail
        self.count = 0

    async def complete(self, request: ModelRequest) -> ModelReply:
        self.count += 1
        await asyncio.sleep(0)  # a real call waits
        if (error := self.fail(self.count)) is not None:
            raise error
        return await super().complete(request)


def make_probe(client: ScriptedClient | RecordedModel) -> ModelProbe:
    return ModelProbe(AskedModel(client, "tiny", timeout_s=5))


def outcomes(*, asked: int = len(PROBE_TASKS), **wrong: str) -> list[Outcome]:
    """The first `asked` tasks all right, but for the last one of each named kind; its note is the value."""
    last = {task.kind: task.name for task in PROBE_TASKS if task.kind in wrong}
    return [
        Outcome(task.kind, task.name, False, wrong[task.kind])
        if last.get(task.kind) == task.name
        else Outcome(task.kind, task.name, True)
        for task in PROBE_TASKS[:asked]
    ]


def count_tasks(*kinds: TaskKind) -> int:
    """The tasks up to the last one of these kinds."""
    return max(place for place, task in enumerate(PROBE_TASKS, 1) if task.kind in kinds)


def test_there_are_about_25_tasks_of_every_kind() -> None:
    assert {task.kind for task in PROBE_TASKS} == {*KINDS}
    assert 20 <= len(PROBE_TASKS) <= 30
    assert len({(task.kind, task.name) for task in PROBE_TASKS}) == len(PROBE_TASKS)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ([], SMALL),
        (outcomes(), CAPABLE.model_copy(update={"translates": False})),
        (outcomes(plans=""), ModelProfile(decides="rounds", judges=True, checks_answers=False)),
        (outcomes(rounds=""), ModelProfile(judges=True)),
        (outcomes(catalogue=ANSWERED), ModelProfile(decides="plans", judges=True, checks_answers=True)),
        ([one for one in outcomes() if one.kind != "plans"], ModelProfile(decides="rounds", judges=True)),
        ([one for one in outcomes() if one.kind != "rounds"], ModelProfile(judges=True)),
        (outcomes(asked=3), SMALL),
        (outcomes(asked=count_tasks("rounds")), SMALL),
        (outcomes(asked=count_tasks("rounds", "answers") + 1), SMALL),
        (outcomes(asked=count_tasks("plans")), ModelProfile(decides="plans")),
        (outcomes(asked=count_tasks("catalogue")), ModelProfile(decides="plans", checks_answers=False)),
        (outcomes(asked=count_tasks("verdicts") - 1), ModelProfile(decides="plans", checks_answers=False)),
    ],
)
def test_the_bolder_way_is_chosen_only_if_all_of_it_was_right(found: list[Outcome], expected: ModelProfile) -> None:
    assert choose_measured_profile(found) == expected


async def test_a_model_that_cannot_do_anything_gets_the_safe_profile_and_its_costs() -> None:
    probe = make_probe(FailingClient(lambda _: None))
    await probe.run()
    record = build_record(probe, model="m", base_url="u", fingerprint="f", context_tokens=None, at=1.0)
    assert (record.profile, record.takes_schema, record.is_complete) == (SMALL, False, True)
    assert (record.longest_catalogue, record.call_forms, record.languages) == (0, (), ())
    assert record.counts["schema"] == Count(0, 2)
    assert record.calls >= len(PROBE_TASKS)
    assert record.prompt_tokens > 0
    assert "JSON schemas bind its replies: 0 of 2" in format_record(record)


async def test_a_model_that_thinks_is_told_with_the_switch_for_it() -> None:
    thinking, plain = (make_probe(ScriptedClient(Script([says("Oslo", reasoning=text)]))) for text in ("hm", ""))
    reports = []
    for probe in (thinking, plain):
        await probe.run()
        record = build_record(probe, model="m", base_url="u", fingerprint="f", context_tokens=None, at=1.0)
        reports.append(format_record(record))
    assert ["AGENT_LLM_EXTRA_BODY may turn that off" in report for report in reports] == [True, False]


async def test_a_cancelled_probe_goes_on_where_it_was() -> None:
    client = FailingClient(lambda _: None)
    probe = make_probe(client)

    def stop_after_three(outcome: Outcome) -> None:
        if len(probe.outcomes) == 3:
            task.cancel()

    task = asyncio.create_task(probe.run(report=stop_after_three))
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(probe.outcomes) == 3
    await probe.run()
    assert [(one.kind, one.name) for one in probe.outcomes] == [(task.kind, task.name) for task in PROBE_TASKS]
    assert len([one for one in client.purposes() if one != "probe"]) == 0


@pytest.mark.parametrize("number", [1, 3, 9])
@pytest.mark.parametrize("kind", [ModelUnreachableError, ModelRateLimitError])
async def test_an_endpoint_that_is_down_or_busy_says_nothing_of_its_model(
    number: int, kind: type[ModelUnreachableError]
) -> None:
    client = FailingClient(lambda count: kind("gone", agent_id="models") if count == number else None)
    probe = make_probe(client)
    with pytest.raises(kind):
        await probe.run()
    before = len(probe.outcomes)
    assert before < len(PROBE_TASKS)
    await probe.run()
    assert probe.is_complete, "it goes on when the endpoint is back"


async def test_a_reply_that_takes_too_long_counts_as_wrong_and_the_time_as_a_whole_is_limited() -> None:
    slow = make_probe(FailingClient(lambda _: ModelTimeoutError("slow", agent_id="models")))
    await slow.run()
    assert not any(one.right for one in slow.outcomes)
    probe = make_probe(FailingClient(lambda _: None))
    await probe.run(seconds=0)
    assert (probe.outcomes, probe.is_complete) == ([], False)


def test_a_setting_wins_over_what_was_measured(tmp_path: Path) -> None:
    record = build_record(make_probe(ScriptedClient(Script([]))), model="m", base_url="u", fingerprint="f",
                          context_tokens=None, at=1.0).model_copy(update={"profile": CAPABLE})  # fmt: skip
    assert choose_profile("auto", record) == CAPABLE
    assert choose_profile("small", record) == SMALL
    assert choose_profile("auto") == SMALL
    assert [get_profile_source(name, record) for name in ("auto", "small")] == ["measured", "setting"]
    assert get_profile_source("auto", None) == "default"

    store = MeasuredModels(tmp_path / "data/model_profiles.json")
    store.save(record)
    store.save(record.model_copy(update={"model": "other"}))
    store.save(record.model_copy(update={"fingerprint": "g"}))
    assert [(one.model, one.fingerprint) for one in store.read()] == [("m", "g"), ("other", "f")]
    found = store.find("u", "m")
    assert (found, store.find("v", "m")) == (record.model_copy(update={"fingerprint": "g"}), None)
    (tmp_path / "data/model_profiles.json").write_text(json.dumps([{"model": 1}]))
    assert store.read() == [], "measured again"


async def test_what_the_real_small_model_replied_gives_its_profile() -> None:
    """Recorded from Qwen2.5-Coder-1.5B-Instruct: `python -m tests.support.recorded_model`."""
    client = load_recorded()
    probe = ModelProbe(AskedModel(client, "qwen", timeout_s=5), name_tasks(client))
    await probe.run()
    record = build_record(probe, model="qwen", base_url="u", fingerprint="f", context_tokens=16_384, at=1.0)
    assert record.is_complete
    assert record.takes_schema, "llama.cpp binds replies to a schema"
    assert record.profile.decides == "rounds"
    assert record.counts["rounds"].asked == 6, "recorded before rounds asked for each step: not as many are right"
