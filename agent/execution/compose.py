"""Answers without a model: results joined by rule, what a gateway in rules mode can do, and honest partial answers."""

import json
import re

from agent.core.events import StepOutput
from agent.core.models import Outcome, PlanStep
from agent.execution.decide import halting_step
from agent.execution.outputs import cap, results
from agent.execution.run import Run
from agent.execution.skill_executor import allowed_tools
from agent.planning.routing import LISTINGS

RESULT_CHARS = 6_000
"""How much of one result a composed answer shows."""

_TITLE_WORDS = 5
_CHAT = re.compile(r"<chat_history>(.*?)</chat_history>", re.DOTALL)


def compose(outcomes: list[tuple[PlanStep, StepOutput]]) -> str:
    """The results as they are: one alone is the answer, several get a heading each."""
    if len(outcomes) == 1:
        return cap(outcomes[0][1].text, RESULT_CHARS)
    sections = [f"**{step.intent or step.tool}**\n\n{cap(output.text, RESULT_CHARS)}" for step, output in outcomes]
    return "\n\n".join(sections)


def without_results(run: Run) -> str:
    """What is said without a model and without results: a listing that was asked for, the JSON of a background
    prompt, or what a gateway in rules mode can do."""
    route = run.state.understood.route if run.state.understood else "direct"
    if route == "task":
        return rules_task(run.state.prompt)
    return listing(run) if route == "command" else _capabilities(run)


def listing(run: Run) -> str:
    """The skills and tools of this room, as `/help`, `/skills` and `/tools` show them."""
    command = run.state.prompt.strip().split()[0].lower()
    lines: list[str] = []
    if command.removeprefix("/") not in LISTINGS:
        lines += [f"There is no skill `{command}`.", ""]
    if command != "/tools":
        lines += ["**Skills** (call one with `/name what to do`)", ""]
        skills = [skill for skill in run.engine.skills.visible(run.room.skills) if skill.user_invocable]
        lines += [f"- `/{skill.name}`: {_first_sentence(skill.description)}" for skill in skills] or ["- none"]
    if command != "/skills":
        specs = run.engine.registry.specs(allowed_tools(run))
        lines += ["", "**Tools**", ""] if command != "/tools" else ["**Tools**", ""]
        lines += [f"- `{spec.name}`: {_first_sentence(spec.description)}" for spec in specs] or ["- none"]
    return "\n".join(lines)


def _first_sentence(text: str) -> str:
    return text.split(". ", 1)[0].rstrip(".") + "."


def _capabilities(run: Run) -> str:
    state = run.state
    names = allowed_tools(run)
    opening = "Hello! " if state.understood is not None and state.understood.route == "greeting" else ""
    lines = [
        f"{opening}Stepgate runs in rules mode: no language model is configured, so I cannot write free answers.",
        "",
        "What works now, without any model:",
    ]
    lines += [f"- {text}" for name, text in _EXAMPLES if name in names] or ["- nothing: this room allows no tools"]
    lines += [
        "",
        "To get a model, set `AGENT_LLM_BASE_URL` and `AGENT_MODEL_FAST` (for example "
        "`AGENT_LLM_BASE_URL=http://127.0.0.1:11434/v1 AGENT_MODEL_FAST=llama3.1`), then start Stepgate again.",
    ]
    return "\n".join(lines)


_EXAMPLES = (
    ("web_fetch", "read a web page: `fetch https://example.org`"),
    ("calculator", "calculate: `what is 17.5 * 240?`"),
    ("current_time", "tell the time: `what time is it in Stockholm?`"),
    ("list_files", "list your files: `list files`"),
    ("search_files", 'search them: `search my files for "invoice"`'),
    ("read_file", "read one: `read notes.txt`"),
)


def rules_task(prompt: str) -> str:
    """The JSON a chat page's background prompt wants (title, tags, follow-ups, queries), from its words alone."""
    head = prompt[:2000].lower()
    if "follow" in head:
        return json.dumps({"follow_ups": []})
    if "tags" in head:
        return json.dumps({"tags": ["General"]})
    if "quer" in head and "title" not in head:
        return json.dumps({"queries": []})
    chat = _CHAT.search(prompt)
    first = next((line for line in (chat[1] if chat else "").splitlines() if line.strip()), "Conversation")
    words = re.sub(r"^\s*(user|assistant)\s*:\s*", "", first, flags=re.IGNORECASE).split()
    return json.dumps({"title": " ".join(words[:_TITLE_WORDS]) or "Conversation"}, ensure_ascii=False)


def stop_reason(run: Run) -> str:
    """Why the run ends before its plan is done, in one sentence a person understands."""
    state = run.state
    if state.cancel is not None:
        return state.cancel.reason
    step = halting_step(state)
    if step is None:
        failed = [f"{gate.gate}: {gate.reason}" for gate in state.gates if not gate.passed]
        return "the result did not pass verification (" + "; ".join(failed) + ")" if failed else "the plan was not done"
    attempt = state.step(step.id).last
    if attempt is not None and attempt.unknown is not None:
        return attempt.unknown.message
    verdict = attempt.verdict if attempt else None
    reason = verdict.reason if verdict else "it did not finish"
    if verdict is not None and verdict.outcome is Outcome.REPLAN:
        tried = f" and {state.replans} new plans did not help" if state.replans else ""
        return f"step {step.id} ({step.title}) failed{tried}: {reason}"
    return f"step {step.id} ({step.title}) failed: {reason}"


async def partial_answer(run: Run) -> str:
    """The honest end of a run that could not finish: why, what is known, what is missing."""
    state = run.state
    outcomes = await results(run)
    lines = [f"I could not finish this: {stop_reason(run)}"]
    if outcomes:
        lines += ["", "What is known so far:", "", compose(outcomes)]
    missing = [s for s in (state.plan.steps if state.plan else ()) if state.step(s.id).status != "succeeded"]
    missing = [step for step in missing if not step.is_completion]
    if missing:
        lines += ["", "What is missing:"]
        lines += [f"- {step.intent or step.tool} ({step.id}, {state.step(step.id).status})" for step in missing]
    return "\n".join(lines)
