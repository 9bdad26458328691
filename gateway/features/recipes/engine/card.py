"""A recipe as an Agent Skill: the files of its folder, SKILL.md and plan.json; and as a person is asked about it."""

import json
from collections.abc import Mapping

import yaml
from pydantic import JsonValue

from agent.core.models import PlanStep
from agent.policy.approval import format_value
from gateway.features.recipes.engine.model import Recipe, RecipeTrial, compute_version

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


def format_recipe(recipe: Recipe) -> str:
    """Markdown for the question whether a recipe is taken into use. Nothing is cut: each step that a person allows
    would be called without a planner. The version stands for what differs and is not shown.
    """
    lines = [f"   `{recipe.usage}`, version `{compute_version(recipe)}`, answers {_format_text(recipe.request)}"]
    lines += ["   It was made after text from outside was read: read it with care."] if recipe.tainted else []
    for one in recipe.parameters:
        example = "" if one.example is None else f", example {_format_text(one.example)}"
        lines.append(f"   - parameter `{one.name}` ({one.type}): {_format_text(one.description)}{example}")
    for number, step in enumerate(recipe.steps, start=1):
        if step.is_completion:
            lines.append(f"   {number}. writes the answer from the results: {_format_text(step.intent)}")
            continue
        change = "" if step.effect == "read" else " — *changes something*"
        lines.append(f"   {number}. {_format_text(step.tool)}{change}: {_format_text(step.intent)}")
        lines += [f"      - {_format_text(name)}: {_format_text(value)}" for name, value in step.args.items()]
    return "\n".join(lines)


def _format_text(value: JsonValue) -> str:
    return format_value(value, None)


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
