"""An evaluation that was interrupted goes on, a sample is the same each time, and answerers stand in one table."""

from collections import Counter
from pathlib import Path

import pytest

from agent.core.errors import ConfigError
from gateway.features.evaluation.answerers import format_beside, list_answerers
from gateway.features.evaluation.progress import ProgressFile
from gateway.features.evaluation.report import Report, TaskResult
from gateway.features.evaluation.task_files import load_tasks, sample_tasks
from tests.unit.evaluation.test_report import result

ABOUT = {"model": "tiny", "seed": 0}


def test_results_are_kept_as_they_come_for_each_answerer(tmp_path: Path) -> None:
    file = tmp_path / "kept/progress.jsonl"
    first = ProgressFile(file, ABOUT, TaskResult)
    first.add("gateway", result("a", right=True))
    first.add("rules", result("a", right=False))
    first.add("gateway", result("b", right=False).model_copy(update={"status": "error"}))
    with file.open("a") as torn:
        torn.write('{"answerer": "gateway", "resu')
    again = ProgressFile(file, ABOUT, TaskResult)
    assert again.find("gateway", "a") == result("a", right=True)
    assert again.find("rules", "a") == result("a", right=False)
    assert again.find("gateway", "b") is None, "a task that was not measured is run again"
    odd = result("c", right=False).model_copy(update={"failures": ("a line\u2028separator",)})
    again.add("gateway", odd)
    once_more = ProgressFile(file, ABOUT, TaskResult)
    assert once_more.find("gateway", "c") == odd, "what follows a line that a killed process began is read"
    with pytest.raises(ConfigError, match="another evaluation"):
        ProgressFile(file, {"model": "large", "seed": 0}, TaskResult)
    (tmp_path / "other").write_text("no json")
    with pytest.raises(ConfigError, match="not a file written by"):
        ProgressFile(tmp_path / "other", ABOUT, TaskResult)


def test_a_sample_has_as_many_tasks_of_each_family_and_is_the_same_for_a_seed() -> None:
    tasks = load_tasks()
    chosen = sample_tasks(tasks, 20, seed=0)
    assert len(chosen) == 20
    assert set(Counter(task.family for task in chosen).values()) <= {1, 2}
    assert [task.id for task in chosen] == [task.id for task in sample_tasks(tasks, 20, seed=0)]
    assert [task.id for task in chosen] != [task.id for task in sample_tasks(tasks, 20, seed=1)]
    assert sample_tasks(tasks, 1000, seed=0) == [*tasks]


def test_answerers_differ_in_their_settings_and_share_one_table() -> None:
    settings = {"AGENT_LLM_BASE_URL": "http://127.0.0.1:9/v1", "AGENT_MODEL_FAST": "m", "AGENT_TRANSLATE": "off"}
    gateway, rules, model = list_answerers(settings, ["rules", "model"])
    assert (gateway.settings, gateway.room) == (settings, "")
    assert (rules.settings, rules.room) == ({"AGENT_TRANSLATE": "off"}, "")
    assert (model.settings, model.room) == (settings, "chat")
    table = format_beside(
        {
            "gateway": Report(results=(result("a", right=True), result("b", right=True))),
            "model": Report(results=(result("a", right=True), result("b", right=False))),
        }
    )
    lines = [[cell.strip() for cell in line.split("|")[1:4]] for line in table.splitlines()]
    assert ["tables", "2 of 2", "1 of 2"] in lines
    assert ["tokens a right task", "1000", "2000"] in lines
