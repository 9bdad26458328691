"""Right answers against the rate of damage to the model's replies: `python -m tests.bench.degraded [RATE ...]`.

The model is scripted (`tests/support/reference_model.py`): it knows a correct plan for every task and plans nothing by
itself. The table shows how the gateway holds up when correct replies arrive damaged, and nothing about any real model.
The families `knowledge` and `refusal` are left out: in the first the knowledge room's own rules answer, in the second
nothing is planned. Three tasks of each other family; `AGENT_TRANSLATE=off`, because the script translates nothing.
"""

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from gateway.features.evaluation.damage import DAMAGE
from gateway.features.evaluation.degraded import DegradedModel, serve_degraded_in_thread
from gateway.features.evaluation.inspect_tasks import read_results, run_evaluation
from gateway.features.evaluation.report import Report, format_call_ratio, format_failures, format_report, format_table
from gateway.features.evaluation.task_files import EvalTask, load_tasks, select_tasks
from tests.support.reference_model import ReferenceModel

RATES = (0.0, 0.1, 0.2, 0.4, 0.8)
SEED = 1
TASKS_PER_FAMILY = 3
LEFT_OUT = frozenset({"knowledge", "refusal"})
PARALLEL = 2
COLUMNS = ("damaged replies", "right", "model calls", "of the least", "tool calls", "seconds", "damage done")


def choose_tasks() -> list[EvalTask]:
    """The tasks that are measured: the first ones of each family that need no collection."""
    families = sorted({task.family for task in load_tasks()} - LEFT_OUT)
    candidates = [task for task in select_tasks(families) if not task.world.collection]
    return [task for family in families for task in [t for t in candidates if t.family == family][:TASKS_PER_FAMILY]]


def measure(rates: Sequence[float]) -> list[list[str]]:
    """Runs the tasks at each rate and returns the rows of the table."""
    rows = []
    with ReferenceModel() as reference, tempfile.TemporaryDirectory() as folder:
        for rate in rates:
            model = DegradedModel(reference.url, rate, seed=SEED)
            with serve_degraded_in_thread(model) as url:
                settings = {
                    "AGENT_LLM_BASE_URL": url,
                    "AGENT_MODEL_FAST": "reference",
                    "AGENT_TRANSLATE": "off",
                    "AGENT_MODEL_PROFILE": "capable",
                }
                log = run_evaluation(choose_tasks(), settings, log_dir=Path(folder), parallel=PARALLEL)
            report = Report(results=read_results(log))
            print(f"\nrate {rate:g}\n{format_report(report)}\n{format_failures(report)}", file=sys.stderr, flush=True)
            rows.append(_format_row(rate, report, model))
    return rows


def _format_row(rate: float, report: Report, model: DegradedModel) -> list[str]:
    count = len(report.results)
    damage = ", ".join(f"{model.counts[kind]} {kind}" for kind in DAMAGE if model.counts[kind])
    return [
        f"{rate:.0%}",
        f"{report.right_count} of {count}",
        f"{sum(result.model_calls for result in report.results) / count:.1f}",
        format_call_ratio(report.results),
        f"{sum(result.calls for result in report.results) / count:.1f}",
        f"{sum(result.seconds for result in report.results) / count:.1f}",
        damage or "none",
    ]


if __name__ == "__main__":
    print(format_table(COLUMNS, measure([float(rate) for rate in sys.argv[1:]] or RATES)))
