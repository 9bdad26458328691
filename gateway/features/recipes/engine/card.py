"""A recipe as an Agent Skill: the files of its folder, SKILL.md and plan.json."""

import json
from collections.abc import Mapping

import yaml

from agent.core.models import PlanStep
from gateway.features.recipes.engine.model import Recipe, RecipeTrial

PLAN_FILE = "plan.json"


def render_files(recipe: Recipe) -> Mapping[str, str]:
    """The files of the recipe's folder by name. SKILL.md says the same as the plan, for any agent."""
    plan = recipe.model_dump(mode="json", exclude={"trials", "notes"})
    return {"SKILL.md": render_card(recipe), PLAN_FILE: json.dumps(plan, indent=2, ensure_ascii=False) + "\n"}


def render_card(recipe: Recipe) -> str:
    """The SKILL.md."""
    front: dict[str, object] = {"name": recipe.name, "description": recipe.description}
    tools = [step.tool for step in recipe.steps if step.action in ("tool", "memory")]
    if tools:
        front["allowed-tools"] = " ".join(dict.fromkeys(tools))
    front["metadata"] = {"agent-plan": PLAN_FILE, "agent-from-run": recipe.from_run}
    head = yaml.safe_dump(front, sort_keys=False, allow_unicode=True, width=10_000)
    return f"---\n{head}---\n\n{render_body(recipe)}\n"


def render_body(recipe: Recipe) -> str:
    """The instructions: what it answers, its parameters, its steps, and how it was tried."""
    lines = [f"# {recipe.name}", "", f"Answers requests such as: {' '.join(recipe.request.split())}", ""]
    lines += [f"Call it with `{recipe.usage}`.", ""]
    if recipe.parameters:
        lines += ["## Parameters", ""]
        for one in recipe.parameters:
            example = "" if one.example is None else f" Example: {json.dumps(one.example, ensure_ascii=False)}."
            optional = "" if one.required else " Optional."
            lines.append(f"- `{one.name}` ({one.type}): {one.description or 'no description'}.{optional}{example}")
        lines.append("")
    lines += ["## Steps", ""]
    lines += [_describe_step(number, step) for number, step in enumerate(recipe.steps, start=1)]
    if recipe.trials:
        lines += ["", "## Trials", "", *map(_describe_trial, recipe.trials)]
    return "\n".join(lines)


def _describe_step(number: int, step: PlanStep) -> str:
    if step.is_completion:
        return f"{number}. `{step.id}`: write the answer from the results."
    inputs = json.dumps(step.args, ensure_ascii=False)
    change = "" if step.effect == "read" else " It changes something: ask before."
    after = f" After {', '.join(step.depends_on)}." if step.depends_on else ""
    return f"{number}. `{step.id}`: call `{step.tool}` with `{inputs}`. {step.intent}{change}{after}".rstrip()


def _describe_trial(trial: RecipeTrial) -> str:
    values = json.dumps(trial.values, ensure_ascii=False)
    left = f"; not tried: {', '.join(trial.not_tried)}" if trial.not_tried else ""
    reason = f" ({trial.reason})" if trial.reason else ""
    return f"- {trial.input} input {values}: {trial.status.replace('_', ' ')}{reason}{left}"
