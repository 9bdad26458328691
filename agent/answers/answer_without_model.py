"""Answers of rules mode, where no step has a result: help, listings, examples, and the JSON of background prompts."""

import json
import re
from collections.abc import Iterable
from difflib import get_close_matches

from agent.core.containers import get_example_address
from agent.core.events import StepOutput
from agent.core.models import JsonObject
from agent.planning.routing import LISTINGS
from agent.planning.rules import find_unknown_part
from agent.run_context.outputs import cut_text
from agent.run_context.run import Run
from agent.skills import Skill
from agent.tools import ToolSpec
from agent.tools.commands import CommandExample

_TITLE_WORDS = 5
_UNKNOWN_CHARS = 200
_THANKS = re.compile(r"^\W*(?:thanks?|thank you|thx|cheers|tack|danke|merci|gracias)\b", re.IGNORECASE)
_CHAT_BEGINS, _CHAT_ENDS = "<chat_history>", "</chat_history>"
_WANTED_KEY = re.compile(r"[\"'](title|tags|follow_ups|queries|text|prompt)[\"']")


def answer_without_results(run: Run) -> str:
    """The answer without a model and without results: the requested listing, the JSON of a background prompt,
    or the commands of rules mode."""
    route = run.state.understanding.route if run.state.understanding else "direct"
    if route == "task":
        return answer_background_prompt(run.state.prompt)
    return format_listing(run) if route == "command" else _describe_capabilities(run)


def format_listing(run: Run) -> str:
    """The skills, the features' commands and the tools of this room for `/help`, `/skills` and `/tools`."""
    command = run.state.prompt.strip().split()[0].lower()
    lines: list[str] = []
    if command != "/tools":
        lines += ["**Skills** (call one with `/name what to do`)", ""]
        skills = _list_commands(run)
        lines += [f"- `/{skill.name}`: {_get_first_sentence(skill.description)}" for skill in skills] or ["- none"]
        for hooks in run.hooks:
            if commands := hooks.list_commands(run):
                lines += ["", f"**{hooks.heading}**", ""]
                lines += [f"- `{one.usage}`: {_get_first_sentence(one.description)}" for one in commands]
    if command != "/skills":
        specs = run.engine.registry.list_specs(run.allowed_tools)
        lines += ["", "**Tools**", ""] if command != "/tools" else ["**Tools**", ""]
        lines += [f"- `{spec.name}`: {_get_first_sentence(spec.description)}" for spec in specs] or ["- none"]
    return "\n".join(lines)


def describe_unknown_command(run: Run) -> str:
    """The reply to an unknown `/name`, with the nearest names; "" for `/help` and the like."""
    name = run.state.prompt.strip().split()[0].lower().removeprefix("/")
    if name in LISTINGS:
        return ""
    names = [*LISTINGS, *(skill.name for skill in _list_commands(run)), *(one.name for one in run.list_commands())]
    near = " or ".join(f"`/{one}`" for one in get_close_matches(name, names))
    return f"There is no command `/{name}`.{f' Did you mean {near}?' if near else ''} `/help` lists the commands."


def _list_commands(run: Run) -> list[Skill]:
    return [skill for skill in run.engine.skills.list_visible(run.room.skills) if skill.user_invocable]


def _get_first_sentence(text: str) -> str:
    return text.split(". ", 1)[0].rstrip(".") + "."


def _describe_capabilities(run: Run) -> str:
    state = run.state
    names = run.allowed_tools
    opening, unknown, alternatives = "", "", describe_alternatives(run)
    if state.understanding is not None and state.understanding.route == "greeting":
        opening = "You are welcome. " if _THANKS.match(state.prompt) else "Hello! "
    elif not run.room.knowledge and not asks_for_help(state.prompt):
        # A room with commands of its own reads whole messages; which part of one the general rules know says nothing.
        specs = run.engine.registry.list_specs(names)
        unknown = state.question if alternatives else find_unknown_part(state.question, specs)
    lines = [
        f"{opening}Stepgate runs in rules mode: no language model is configured, so I cannot write free answers.",
        "",
    ]
    if unknown:
        lines += [
            f"I did not understand: {cut_text(' '.join(unknown.split()), _UNKNOWN_CHARS)!r}. Nothing was done.",
            "",
        ]
    if alternatives:
        lines += ["Without a model I cannot read free text here. These do the same:", "", alternatives, ""]
    examples = list_examples(run.engine.registry.list_specs(names), knowledge=run.room.knowledge)
    works = [f"- {one.purpose}: `{one.text}`" for one in examples]
    if not works and not alternatives:
        works = ["- nothing: this room's tools need a model" if names else "- nothing: this room allows no tools"]
    lines += ["What works now, without any model:", *works, ""] if works else []
    lines += [
        "To get a model, connect one in Models on the web page, or with "
        f"`stepgate models use llama3.1 --at {get_example_address()}`. It is used at once.",
    ]
    return "\n".join(lines)


def asks_for_help(prompt: str) -> bool:
    """Whether a message asks for nothing but what works without a model: the answer to it is whole."""
    return prompt.strip().lower().rstrip("?!. ") in ("", "help")


def describe_alternatives(run: Run) -> str:
    """Names where people do by themselves what this room does with a model; "" if they cannot."""
    return "\n".join(filter(None, (hooks.describe_alternatives(run) for hooks in run.hooks)))


def build_alternatives_output(alternatives: str, reason: str) -> StepOutput:
    """The answer of a room that no model can read requests for: where people do the same by themselves."""
    lines = [
        f"I cannot read free text now: {reason}. Nothing was done. The same without a model:",
        "",
        alternatives,
    ]
    return StepOutput(text="\n".join(lines), value="\n".join(lines), effective="rules", fallback_reason=reason)


def list_examples(specs: Iterable[ToolSpec], *, knowledge: bool = False) -> list[CommandExample]:
    """Examples of requests that need no model but these tools; with `knowledge`, in a room that answers every question
    from documents."""
    commands = [spec.hints.commands for spec in specs if spec.hints.commands is not None]
    examples = (one.knowledge_example if knowledge else one.example for one in commands)
    return sorted((one for one in examples if one is not None), key=lambda one: one.place)


def answer_background_prompt(prompt: str) -> str:
    """The JSON for a chat client's background prompt (title, tags, follow-ups, queries).

    The first key before the quoted chat names the kind; "title" and "follow" occur in many of these prompts."""
    instructions, _, rest = prompt.partition(_CHAT_BEGINS)
    wanted = _WANTED_KEY.search(instructions)
    chat, end, _ = rest.partition(_CHAT_ENDS)
    first = next((line for line in (chat if end else "").splitlines() if line.strip()), "Conversation")
    words = re.sub(r"^\s*(user|assistant)\s*:\s*", "", first, flags=re.IGNORECASE)
    answers: JsonObject = {
        "title": " ".join(words.split()[:_TITLE_WORDS]) or "Conversation",
        "tags": ["General"],
        "follow_ups": [],
        "queries": [],
        "text": "",
        "prompt": words,
    }
    key = wanted[1] if wanted else "title"
    return json.dumps({key: answers[key]}, ensure_ascii=False)
