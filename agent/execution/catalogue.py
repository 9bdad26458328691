"""The catalogue of one run: the skills and tools its room and its caller allow, as the planner sees them."""

from collections.abc import Iterable

from agent.core.models import Effect
from agent.execution.run import Run
from agent.execution.skill_executor import allowed_tools
from agent.planning.catalogue import Catalogue, SkillCard

_WORST: tuple[Effect, ...] = ("read", "idempotent", "effect")


def catalogue_of(run: Run) -> Catalogue:
    """Skills in order of name, then tools in order of name: the same bytes for the same room (prompt caches)."""
    specs = run.engine.registry.specs(allowed_tools(run))
    effects = {spec.name: spec.effect for spec in specs}
    allowed = tuple(effects)
    cards = []
    wanted = run.state.request.metadata.get("skills")
    for skill in run.engine.skills.visible(run.room.skills):
        if skill.model_invocable and not (isinstance(wanted, list) and skill.name not in wanted):
            tools = skill.scope(allowed)
            cards.append(
                SkillCard(
                    name=skill.name,
                    description=skill.description,
                    argument_hint=skill.argument_hint or "",
                    effect=worst_effect(effects[name] for name in tools),
                    tools=tools,
                )
            )
    return Catalogue(skills=tuple(cards), tools=tuple(specs))


def worst_effect(effects: Iterable[Effect]) -> Effect:
    """The effect class of something that may have any of `effects`."""
    return max(effects, key=_WORST.index, default="read")
