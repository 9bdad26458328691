"""`ChangeQuestions`: which changes a request asks for, as the model says when it is asked for nothing else.

A small model calls a tool that changes something because it is there, because an example did, or because a text that it
has read wants it. Asked about the request alone, on the beginning of the conversation that endpoints have cached, it
knows whether the user wants a change. Only what the user wants is changed.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

from agent.core.models import JsonObject
from agent.llm.prompts import render
from agent.planning.parse import read_last_object
from agent.planning.planner import PlannerModel
from agent.planning.reply import PlanReply, list_calls, list_todo
from agent.planning.request import ACTION, PlanningRequest
from agent.planning.rounds.decision_schema import build_choice_schema, build_choices_schema
from agent.planning.rounds.dialogue import Dialogue, UnaskedChangeError
from agent.planning.rounds.identifier_lookups import may_work_now
from agent.planning.rounds.prompt import choose_tools, format_skill_line, format_tool_line, list_offered, say
from agent.planning.rounds.reply import read_choice
from agent.planning.rounds.tidy_calls import drop_calls
from agent.planning.rounds.tool_need import asks_for_change
from agent.text.own_words import OwnWords
from agent.text.terms import extract_terms, is_filler, map_query_terms
from agent.tools import ToolSpec
from agent.tools.catalogue import CatalogueIndex, is_foreign, split_name
from agent.tools.client_tools import CLIENT_ORIGIN

NO_TOOL = "none"


class ChangeQuestions:
    """Asks a model about the changes of one request, each thing once a run."""

    def __init__(self, model: PlannerModel) -> None:
        self._model = model

    async def leave_out_unasked(self, request: PlanningRequest, dialogue: Dialogue, decision: PlanReply) -> PlanReply:
        """The decision without the changes that the request does not ask for. Raises `UnaskedChangeError` if nothing
        else is left of it, `ModelError`."""
        calls = list_calls(decision.data)
        # An endpoint that ignores the schema may call what is no choice any more, because nobody asked for it.
        names = {str(call.get("tool")) for call in calls}
        others = names - {spec.name for spec in dialogue.tools}
        called = (spec for spec in map(request.catalogue.get_tool, sorted(others)) if spec is not None)
        lines = list_changing_lines(request, (*dialogue.tools, *called))
        changing = names & lines.keys()
        if not changing:
            return decision
        misfits = _select_misfits(request, dialogue, changing)
        fitting = {name: line for name, line in lines.items() if name not in misfits}
        allowed = await self._find_allowed(request, dialogue, fitting, decision) if changing - misfits else frozenset()
        unasked = misfits | (changing - allowed)
        dialogue.decided_changes |= changing - unasked
        if unasked and len(unasked) == len({str(call.get("tool")) for call in calls}):
            raise UnaskedChangeError(unasked)
        places = {place for place, call in enumerate(calls) if call.get("tool") in unasked}
        return PlanReply(drop_calls(decision.data, places)) if places else decision

    async def find_wanted(self, request: PlanningRequest, dialogue: Dialogue) -> frozenset[str]:
        """The tools with which the request asks to change something. Raises `ModelError`.

        Where no decision called one, the model was not asked yet. It is asked about tools of servers: what those
        change, no rule of ours brings up again, and an answer would say that it is done. It says yes to many a tool
        that only fits the words, so it is first asked whether the request wants a change."""
        # All of them: one that was ruled out in this dialogue may be the one that is wanted.
        offered = list_offered(request, choose_tools(request.catalogue, request.question))
        changing = [spec for spec in offered if spec.has_side_effect and is_foreign(spec)]
        if dialogue.may_change is None and request.checks_answers and changing:
            if await self._wants_change(request, dialogue):
                dialogue.may_change = await self._ask_whether(dialogue, list_changing_lines(request, changing))
            else:
                dialogue.may_change = frozenset()
        return dialogue.may_change or frozenset()

    async def find_untried(self, request: PlanningRequest, dialogue: Dialogue) -> dict[str, str]:
        """The lines of the wanted tools that no call was made of, by their names. Raises `ModelError`."""
        wanted = await self.find_wanted(request, dialogue)
        tried = {call.tool for call in request.rounds if not may_work_now(request, call)}
        lines = list_changing_lines(request, dialogue.tools)
        return {name: lines[name] for name in _select_untried(request, sorted(wanted & lines.keys()), tried)}

    async def _find_allowed(
        self, request: PlanningRequest, dialogue: Dialogue, lines: Mapping[str, str], decision: PlanReply
    ) -> AbstractSet[str]:
        """The tools that may change something, of those that a decision calls.

        After text from outside was read, one that has nothing to do with the request's words is refused at once, unless
        the model is asked whether the request wants a change: "ok, halfway please" names nothing."""
        fitting = _select_fitting(request, dialogue.tools, list_calls(decision.data)) & lines.keys()
        if request.progress.has_read_outside and not fitting and not request.checks_answers:
            return frozenset()
        if dialogue.may_change is None and request.checks_answers and not await self._wants_change(request, dialogue):
            dialogue.may_change = frozenset()
        is_first = dialogue.may_change is None
        if is_first:
            chosen = await self._ask_whether(dialogue, lines)
            dialogue.may_change = _prefer_called(request, dialogue, chosen, list_calls(decision.data))
            # The one that stands first is named for its place.
            dialogue.named_changes = (chosen or frozenset()) - (dialogue.may_change or frozenset()) - {*[*lines][:1]}
        if dialogue.may_change is None and not request.progress.has_read_outside:
            return lines.keys()  # the endpoint ignores the schema, and only the user can have asked for it
        allowed = dialogue.may_change or frozenset()
        # What is remembered is not asked about again: unasked, it is just noise.
        lasting = {spec.name for spec in dialogue.tools if spec.effect != "read" and not spec.hints.is_memory}
        new = fitting & lasting - allowed if dialogue.may_change != frozenset() else frozenset()
        calls = list_calls(decision.data)
        is_called = not allowed.isdisjoint(str(call.get("tool")) for call in calls)
        new &= _select_named(request, dialogue, decision) | (set() if is_called else _select_stated(request, calls))
        if new:
            confirmed = await self._ask_which(dialogue, {name: lines[name] for name in sorted(new)})
            # Chosen from all of them, but called by no decision: it stood beside the one that is meant.
            is_guess = is_first and confirmed and not is_called
            allowed = confirmed if is_guess else allowed | confirmed
        dialogue.may_change = allowed
        return allowed

    async def _wants_change(self, request: PlanningRequest, dialogue: Dialogue) -> bool:
        """Whether the request asks for a change. A request that needs an action does: it is not asked about again."""
        return dialogue.need == ACTION or await asks_for_change(self._model, request)

    async def _ask_whether(self, dialogue: Dialogue, lines: Mapping[str, str]) -> frozenset[str] | None:
        """The tool with which the request asks to change something; None for a reply that chooses nothing."""
        question = render("decide_whether", tools="\n".join(lines.values()))
        reply = await self._model.ask(_add_question(dialogue, question), build_choice_schema([NO_TOOL, *lines]))
        chosen = read_choice(reply)
        return frozenset({chosen}) - {NO_TOOL} if chosen in (NO_TOOL, *lines) else None

    async def _ask_which(self, dialogue: Dialogue, lines: Mapping[str, str]) -> frozenset[str]:
        """Those of further tools with which it asks to change something too."""
        question = render("decide_changes", tools="\n".join(lines.values()))
        schema = build_choices_schema([*lines, NO_TOOL], len(lines))
        reply = await self._model.ask(_add_question(dialogue, question), schema)
        named = read_last_object(reply.text, "tools").get("tools")
        chosen = {str(name) for name in (named if isinstance(named, list) else ())}
        return frozenset() if NO_TOOL in chosen else frozenset(lines.keys() & chosen)


def list_changing_lines(request: PlanningRequest, tools: Sequence[ToolSpec]) -> dict[str, str]:
    """The lines of the skills and tools that change something, by their names. Of a client's own tools nothing is
    known: they count once a text from outside may have chosen them."""
    skills = [card for card in request.catalogue.skills if card.effect != "read"]
    changing = [
        spec
        for spec in tools
        if spec.effect != "read" and (spec.origin != CLIENT_ORIGIN or request.progress.has_read_outside)
    ]
    lines = {card.name: format_skill_line(card) for card in skills}
    return lines | {spec.name: format_tool_line(spec) for spec in changing}


def _select_untried(request: PlanningRequest, wanted: Sequence[str], tried: AbstractSet[str]) -> list[str]:
    """The wanted tools that no call was made of, without those that share no word with the request beside a change that
    was made and does: of several changes a small model names another one than it then makes."""
    made = {call.tool for call in request.rounds if not call.failed and call.tool in tried}
    changes = (spec.name for spec in map(request.catalogue.get_tool, made) if spec is not None and spec.has_side_effect)
    spoken = _select_spoken_of(request, {*wanted, *changes})
    is_made = not made.isdisjoint(spoken)
    return [name for name in wanted if name not in tried and (not is_made or name in spoken)]


def _select_spoken_of(request: PlanningRequest, names: AbstractSet[str]) -> frozenset[str]:
    """The tools whose name has a word of the request."""
    spoken_terms = {*extract_terms(f"{request.question}\n{request.original}")}
    terms = {name: extract_terms(split_name(name.rpartition("__")[2])) for name in names}
    return frozenset(name for name in names if not spoken_terms.isdisjoint(terms[name]))


def check_spoken_of(request: PlanningRequest, tools: Sequence[ToolSpec], name: str) -> None:
    """Raises `UnaskedChangeError` for a change whose tool shares no word with the request where another one's does: the
    user would be asked for a value of what was never meant."""
    changing = {spec.name for spec in tools if spec.has_side_effect}
    spoken = _select_spoken_of(request, changing)
    if spoken and name not in spoken:
        raise UnaskedChangeError({name})


def _add_question(dialogue: Dialogue, question: str) -> tuple[JsonObject, ...]:
    """The conversation up to the request, without anything that was read since, with a question."""
    system, first, *_ = dialogue.messages
    return system, say("user", f"{first['content']}\n{question}")


def _select_fitting(request: PlanningRequest, tools: Sequence[ToolSpec], calls: Sequence[JsonObject]) -> frozenset[str]:
    """The tools that have anything to do with the request's words, by their own or by a value of their call.

    A small model says yes to any change that it has just planned."""
    scores = CatalogueIndex([*tools]).compute_scores(request.question)
    words = OwnWords(request.question, request.original)
    skills = {card.name for card in request.catalogue.skills}
    fitting: set[str] = set()
    for call in calls:
        name, inputs = str(call.get("tool")), call.get("inputs")
        values = inputs.values() if isinstance(inputs, dict) else ()
        if scores.get(name, 0.0) > 0 or name in skills or any(map(words.hold, values)):
            fitting.add(name)
    return frozenset(fitting)


def _select_named(request: PlanningRequest, dialogue: Dialogue, decision: PlanReply) -> frozenset[str]:
    """The called tools that a step of the decision names in the request's own words, beside the tool's name. One that
    has nothing but the tool's name, or has it as it is listed, says only what the model sees on offer; so does
    one with words that several tools of a server share: "create ticket" for "close the ticket".

    Asked about a second change alone, a small model says yes to it. A step in the words of a request in another
    language is translated, so all tools count there."""
    calls = list_calls(decision.data)
    if request.answer.language:
        return frozenset(str(call.get("tool")) for call in calls)
    parts = [*list_todo(decision.data), *dialogue.parts]
    spoken_terms = {*extract_terms("\n".join((request.question, *(message.content for message in request.history))))}
    changing = [spec for spec in dialogue.tools if spec.effect != "read"]
    index = CatalogueIndex(changing)
    terms = {spec.name: {*extract_terms(split_name(spec.name))} for spec in changing}
    counts = Counter((spec.origin, term) for spec in changing if is_foreign(spec) for term in terms[spec.name])
    telling = spoken_terms - {term for (_, term), count in counts.items() if count > 1}
    named: set[str] = set()
    for part in (one for one in parts if not any(spec.name in one for spec in changing if "_" in spec.name)):
        scores = index.compute_scores(part)
        best = {name for name, score in scores.items() if score and score == max(scores.values())}
        words = {term for term, word in map_query_terms(split_name(part)).items() if not is_filler(word)}
        if not words or words & telling:
            named |= {name for name in best if words <= spoken_terms | terms[name]}
    return frozenset(named)


def _prefer_called(
    request: PlanningRequest, dialogue: Dialogue, chosen: frozenset[str] | None, calls: Sequence[JsonObject]
) -> frozenset[str] | None:
    """The tool that the model chose, or in its place the one that its decision calls, if the request's words fit that
    one best: asked for one of many, a small model often names the one that stands first."""
    changing = [spec for spec in dialogue.tools if spec.has_side_effect]
    scores = CatalogueIndex(changing).compute_scores(request.question)
    called = {str(call.get("tool")) for call in calls} & scores.keys()
    highest = max(scores.values(), default=0.0)
    best = {name for name in called if scores[name] == highest > 0}
    if not chosen or chosen & called or not best or any(scores.get(name) == highest for name in chosen):
        return chosen
    return frozenset(best)


def _select_stated(request: PlanningRequest, calls: Sequence[JsonObject]) -> set[str]:
    """The called tools all of whose inputs are words of the request."""
    words = OwnWords(request.question, request.original)
    stated = ((str(call.get("tool")), call.get("inputs")) for call in calls)
    return {
        name
        for name, inputs in stated
        if isinstance(inputs, dict) and inputs and all(words.hold(value, label) for label, value in inputs.items())
    }


def _select_misfits(request: PlanningRequest, dialogue: Dialogue, names: AbstractSet[str]) -> frozenset[str]:
    """Those of our own changing tools that share no word with the open part that they are called for, where another
    one does. If none does, nor with a later part, those that share none with the whole request, where one that was not
    called yet does ("say the sum too"): a small model remembers what it was to write into a file."""
    own = {spec.name for spec in dialogue.tools if spec.name in names and not is_foreign(spec)}
    if not own or not dialogue.parts:
        return frozenset()
    changing = [spec for spec in dialogue.tools if spec.effect != "read"]
    index = CatalogueIndex(changing)
    scores, *later = (index.compute_scores(part) for part in dialogue.parts)
    if not any(any(one.values()) for one in (scores, *later)):
        made = {call.tool for call in request.rounds if not call.failed} - own
        scores = CatalogueIndex([spec for spec in changing if spec.name not in made]).compute_scores(request.question)
    return frozenset(name for name in own if not scores.get(name)) if any(scores.values()) else frozenset()
