"""The values of a request that only the user knows, and that its message does not say: a small model makes them up."""

import json
from collections.abc import Collection, Mapping, Sequence

from agent.planning.request import PlanningRequest
from agent.text.own_words import OwnWords
from agent.tools import ToolSpec
from agent.tools.catalogue import Catalogue
from agent.tools.spec import declares_all
from gateway.features.studio.engine.subagents import find_meant_tools

_STRUCTURAL = frozenset({"field", "version"})
"""Inputs that say where a value goes."""


def find_missing(action: str, entities: Mapping[str, str], catalogue: Catalogue) -> str | None:
    """The name of an input of the action that only the user knows and that was not read; None if none is missing."""
    spec = catalogue.get_tool(action)
    inputs = spec.hints.user_inputs if spec is not None else ()
    return next((name for name in inputs if not entities.get(name, "").strip()), None)


def find_unsaid(
    action: str,
    entities: Mapping[str, str],
    specs: Sequence[ToolSpec],
    request: PlanningRequest,
    *,
    follows_change: bool,
) -> str | None:
    """The name of the first entity whose value a small model has made up, or None. Of an action that is a verb, the
    inputs of the tools are compared that it may mean; its other entities are notes in the model's words.

    A value is in the user's messages or in earlier answers and results, compared as a value; or it names something of
    the gateway, such as a field or a tool. `follows_change`: the action uses what another one makes first, whose name
    nobody can know yet. The plan shows it before anything is done.
    """
    meant = find_meant_tools(action, specs)
    if not any(spec.has_side_effect for spec in meant):
        return None
    texts = [request.original, request.question, request.earlier_plans.replan_reason or ""]
    texts += [one.content for one in request.history]
    texts += [one.text for one in request.earlier_results]
    own, gateway_words = OwnWords(*texts), {*request.catalogue.list_names(), "true", "false", ""}
    for name, value in entities.items():
        is_input = any(declares_all(spec.input_schema, (name,)) for spec in meant)
        if not is_input or name in _STRUCTURAL or _is_said(value, own, gateway_words):
            continue
        items = [item for item in _split_list(value) if not _is_said(item, own, gateway_words)]
        if not all(follows_change and item.replace("-", "_").isidentifier() for item in items):
            return name
    return None


def _is_said(value: str, own: OwnWords, gateway_words: Collection[str]) -> bool:
    """Whether a value is said or names something of the gateway."""
    return value in gateway_words or own.hold(value) or own.hold_name(value)


def _split_list(value: str) -> list[str]:
    """The items of a list as models write it into a text: in JSON, or with commas."""
    try:
        items = json.loads(value) if value.startswith("[") else None
    except ValueError:
        items = None
    return [str(item) for item in items] if isinstance(items, list) else [one.strip() for one in value.split(",")]
