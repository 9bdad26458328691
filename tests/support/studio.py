"""Rules of a scripted model for the room `studio`: what its router reads, and what its sub-agents end with."""

import json
from typing import Any

from tests.support.script import Call, Rule, says


def intent(category: str, action: str, *, confidence: float = 0.95, **entities: Any) -> dict[str, Any]:
    """One intent on the wire. `request` and `depends_on` may be among the entities."""
    told = {name: entities.pop(name) for name in ("request", "depends_on") if name in entities}
    pairs = [{"name": name, "value": value} for name, value in entities.items()]
    return {
        "category": category,
        "action": action,
        "entities": pairs,
        "request": told.get("request", ""),
        "depends_on": told.get("depends_on", []),
        "confidence": confidence,
    }


def routes(*intents: dict[str, Any], question: str = "", **conditions: Any) -> Rule:
    """A rule: the router reads these intents, and asks this."""
    reply = {"reasoning": "r", "goal": "the goal", "intents": list(intents), "question": question}
    return says(json.dumps(reply), to="router", **conditions)


def acts(tool: str, args: dict[str, Any] | None = None, *, call_id: str = "a1", **conditions: Any) -> Rule:
    """A rule: a sub-agent's model calls a tool."""
    return says("", to="subagent", calls=(Call(tool, args or {}, id=call_id),), **conditions)


def concludes(answer: str = "", question: str = "", **conditions: Any) -> Rule:
    """A rule: a sub-agent's model ends."""
    return says(json.dumps({"answer": answer, "question": question}), to="subagent", **conditions)
