"""Builds the catalogue of one run: the skills and tools that its room and its caller allow."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from agent.core.models import Plan
from agent.policy.redaction.requests import redact_client_tools
from agent.run_context.run import Run
from agent.tools import ToolSpec, UserSource
from agent.tools.catalogue import Catalogue, SkillCard, find_worst_effect
from agent.tools.client_tools import build_client_specs

CACHED_CATALOGUES = 100
"""Cached catalogues; one for each room and each choice of tools by callers."""


def build_catalogue(run: Run) -> Catalogue:
    """The skills, then the tools, each sorted by name: the same text for the same room, for prompt caches."""
    wanted = run.state.request.metadata.get("skills")
    names = run.allowed_tools
    registry, skills = run.engine.registry, run.room.skills
    offered = tuple(hooks.get_catalogue_key(run) for hooks in run.hooks)
    key = (registry.version, *names, "/", *(skills or ()), skills is None, repr(wanted), offered)
    catalogues = run.engine.catalogues
    if key not in catalogues:
        if len(catalogues) >= CACHED_CATALOGUES:
            catalogues.clear()
        catalogues[key] = _make_catalogue(run, registry.list_specs(names), wanted if isinstance(wanted, list) else None)
    return _add_client_tools(run, catalogues[key])


def _add_client_tools(run: Run, known: Catalogue) -> Catalogue:
    """The catalogue with the tools that the client of this run offers. They replace tools of the same name that
    only this owner or another room has: a name must not decide who runs a call.
    """
    if not run.state.request.client_tools or not run.room.offers_client_tools:
        return known
    specs = build_client_specs(redact_client_tools(run.state.request, run.room.guard_input))
    names = {spec.name for spec in specs}
    return replace(known, tools=(*(spec for spec in known.tools if spec.name not in names), *specs))


def _make_catalogue(run: Run, specs: Sequence[ToolSpec], wanted: Sequence[object] | None) -> Catalogue:
    effects = {spec.name: spec.effect for spec in specs}
    allowed = tuple(effects)
    cards = []
    for skill in run.engine.skills.list_visible(run.room.skills):
        if skill.model_invocable and (wanted is None or skill.name in wanted):
            tools = skill.select_tools(allowed)
            cards.append(
                SkillCard(
                    name=skill.name,
                    description=skill.description,
                    argument_hint=skill.argument_hint or "",
                    effect=find_worst_effect(effects[name] for name in tools),
                    tools=tools,
                    declared_tools=skill.allowed_tools,
                    tool_effects=tuple(effects[name] for name in tools),
                )
            )
    catalogue = Catalogue(skills=tuple(cards), tools=tuple(specs))
    if not run.room.planning or run.room.skill is not None:
        return catalogue
    offered = [spec for hooks in run.hooks for spec in hooks.list_catalogue_tools(run, catalogue)]
    wished = [spec for spec in offered if wanted is None or spec.name in wanted]
    return replace(catalogue, tools=(*catalogue.tools, *wished)) if wished else catalogue


def list_callable(catalogue: Catalogue) -> Catalogue:
    """The catalogue of what steps may call, without the tools that stand for steps of a feature."""
    if not any(spec.hints.stands_for_steps for spec in catalogue.tools):
        return catalogue
    return replace(catalogue, tools=tuple(spec for spec in catalogue.tools if not spec.hints.stands_for_steps))


def list_read_claims(run: Run, plan: Plan) -> dict[str, str]:
    """The tools of a plan that only read, as the server that is named says; see `ToolSpec.read_claim`."""
    specs = [run.engine.registry.find_spec(step.tool) for step in plan.steps if step.action != "skill"]
    return {spec.name: spec.read_claim for spec in specs if spec is not None and spec.read_claim}


def drop_unusable(catalogue: Catalogue, empty: Collection[UserSource]) -> Catalogue:
    """The catalogue without the tools whose source is empty, and without the skills that are left no tool."""
    lost = {spec.name for spec in catalogue.tools if spec.hints.source in empty}
    if not lost:
        return catalogue
    return Catalogue(
        skills=tuple(card for card in catalogue.skills if not card.tools or set(card.tools) - lost),
        tools=tuple(spec for spec in catalogue.tools if spec.name not in lost),
    )
