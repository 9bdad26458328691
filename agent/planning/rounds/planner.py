"""`RoundPlanner`: decides on one batch of calls, a question or the answer, with all earlier results in view.

The reply is bound to a JSON schema whose inputs each tool types. A round is a plan whose last step is `plan_more`; an
answer is a plan of one completion, which has a prompt of its own. An answer that was chosen before any call is
questioned once: small models answer from memory what a tool would look up.
"""

from contextlib import suppress
from dataclasses import replace

from agent.core.errors import ModelContextError, ModelError, ModelUnreachableError, PlanInvalidError
from agent.llm.port import ModelReply
from agent.llm.prompts import quote_inline, render
from agent.planning.open_parts import CHECK, LOOKS_UP, MAY_CHANGE, TOGETHER, WAITS, divide_parts, is_together
from agent.planning.planned import Planned, Rejection
from agent.planning.planner import PlannerModel, append_new_steps, build_completion_plan, build_plan_steps
from agent.planning.reply import Answer, Ask, FindTools, PlanReply, Reply, list_calls, list_todo
from agent.planning.request import NOTHING, PlanningRequest
from agent.planning.rounds.change_lists import ask_for_all_changes
from agent.planning.rounds.change_questions import NO_TOOL, ChangeQuestions, check_spoken_of, list_changing_lines
from agent.planning.rounds.chosen_things import choose_things
from agent.planning.rounds.decision_schema import build_choice_schema
from agent.planning.rounds.dialogue import CopiedStepsError, Dialogue, UnaskedChangeError
from agent.planning.rounds.each_calls import ask_for_each
from agent.planning.rounds.first_looks import list_waiting, look_first
from agent.planning.rounds.made_up_values import (
    MADE_UP,
    MadeUpValueError,
    find_made_up_values,
    format_question,
    select_missing,
)
from agent.planning.rounds.part_texts import find_named_tool, is_made, reword_calls, select_parts
from agent.planning.rounds.prompt import (
    ANSWER,
    build_round_messages,
    choose_tools,
    encode_decision,
    format_tool_line,
    list_offered,
    say,
)
from agent.planning.rounds.repeated_calls import RepeatedCallError, check_calls
from agent.planning.rounds.reply import read_choice, read_decision
from agent.planning.rounds.ruled_rounds import make_further_round, make_join_round, make_ruled_round
from agent.planning.rounds.shared_names import find_shared_names, format_choice
from agent.planning.rounds.steps import (
    build_plan_more,
    defer_effects,
    drop_steps,
    leave_out_unasked,
    mark_round,
    reword_intents,
)
from agent.planning.rounds.tidy_calls import tidy_calls
from agent.planning.rounds.tool_need import ask_need, fits_request, follows_own_thing, may_need_tool
from agent.planning.rules import plan_by_rules
from agent.planning.validate import format_problems
from agent.tools.catalogue import CatalogueIndex
from agent.tools.client_tools import CLIENT_ORIGIN

MAX_REPLIES = 10
"""Replies of the model to one decision, those about parts that it passes over too."""
UNDECIDED = "the model did not say whether one is needed"
"""Why nobody knows whether an answer needs a tool."""


class RoundPlanner:
    """Plans in rounds with a model. Falls back to rules if no first decision can be had."""

    def __init__(self, model: PlannerModel, *, has_writer: bool = True) -> None:
        self._model = model
        self._has_writer = has_writer
        self._changes = ChangeQuestions(model)

    async def plan(self, request: PlanningRequest) -> Planned:
        """A round, an answer or a question. Raises no `ModelError`: on a failure the rules plan."""
        dialogue = _begin_dialogue(request)
        if dialogue is None:
            return _build_answer(request)
        with suppress(PlanInvalidError):  # then the model finds another way
            again = make_ruled_round(request) if not request.progress.doubt else None
            if again is not None:
                return again
        try:
            planned = await self._find_next(request, dialogue)
        except ModelContextError as error:
            if request.history:  # a long conversation in a small context: the newest request by itself may fit
                return await self.plan(replace(request, history=()))
            return self._plan_by_rules(request, dialogue, error.message, None)
        except ModelError as error:
            unreachable = error if isinstance(error, ModelUnreachableError) else None
            return self._plan_by_rules(request, dialogue, error.message, unreachable)
        if planned is None and request.rounds:  # the results so far are the best there is
            planned = _build_answer(request)
        if planned is None:
            problem = dialogue.rejected[-1].problems[0] if dialogue.rejected else "it decided on nothing"
            planned = self._plan_by_rules(request, dialogue, f"the model gave no valid plan: {problem}", None)
        undecided = UNDECIDED if dialogue.is_undecided else planned.fallback_reason
        decided = tuple(sorted(dialogue.decided_changes | (dialogue.may_change or frozenset())))
        rejected = tuple(dialogue.rejected)
        return replace(
            planned, rejected=rejected, fallback_reason=undecided, decided_changes=decided, need=dialogue.need
        )

    async def _find_next(self, request: PlanningRequest, dialogue: Dialogue) -> Planned | None:
        """What follows; None after replies of no use. Raises `ModelError`."""
        if request.is_first_decision:
            dialogue.need = await ask_need(self._model, request, dialogue.tools)
            if dialogue.need == NOTHING and not follows_own_thing(request, dialogue.tools):
                return _build_answer(request)
        planned = await self._decide(request, dialogue)
        if planned is None and await self._misses_change_after_all(request, dialogue):
            planned = await self._decide(request, dialogue)
        return planned

    async def _decide(self, request: PlanningRequest, dialogue: Dialogue) -> Planned | None:
        """Asks until there is a usable decision; None after two unusable ones. Raises `ModelError`.

        Each open part is asked about. One that needs no call, or that the model finds none for, is passed over. Without
        open parts, the model may name what is missing. None, too, after many replies.
        """
        for _ in range(MAX_REPLIES):
            reply = await self._model.ask(dialogue.messages, dialogue.build_schema())
            try:
                decision = self._read_decision(request, dialogue, reply)
                if isinstance(decision, Answer):
                    planned = await self._take_answer(request, dialogue)
                    if planned is not None:
                        return planned
                elif isinstance(decision, FindTools):
                    dialogue.search_tools(decision.query)
                elif isinstance(decision, PlanReply) and await self._misses_request(request, dialogue, decision):
                    return _build_answer(request)
                else:
                    return await self._take_calls(request, dialogue, decision)
            except PlanInvalidError as error:
                if not await self._goes_on(request, dialogue, reply, error):
                    # Not forced to call, the model only finds nothing else to call.
                    return None if _is_forced_change(dialogue, error) else make_further_round(request)
        return None

    async def _goes_on(
        self, request: PlanningRequest, dialogue: Dialogue, reply: ModelReply, error: PlanInvalidError
    ) -> bool:
        """Whether the model is asked again after an unusable reply: for a better one, or about what else is open."""
        if isinstance(error, CopiedStepsError):
            dialogue.decide_on_whole()
            return True
        dialogue.rejected.append(Rejection(tuple(error.problems), reply.text[:500]))
        dialogue.refusals += 1
        is_known = isinstance(error, RepeatedCallError) and not error.call.failed
        is_forced = _is_forced_change(dialogue, error)
        gives_up = dialogue.refusals > 1 or is_forced or (is_known and (dialogue.parts or not request.progress.doubt))
        if not gives_up:
            dialogue.rule_out(error)
            dialogue.add_turn(reply.text, render("planner_reask", problems=format_problems(error.problems)))
        elif len(dialogue.parts) > 1:
            dialogue.pass_part()
        elif is_forced or not await self._misses_change(request, dialogue):
            return False
        else:
            dialogue.refusals = 0
        return True

    async def _take_answer(self, request: PlanningRequest, dialogue: Dialogue) -> Planned | None:
        """The answer, if it may be written now. Else None, and the next decision goes on with what is open."""
        if dialogue.parts and not await self._is_part_done(request, dialogue):
            return None
        if dialogue.parts:  # after the last one, what the parts forgot of the request is asked about
            dialogue.pass_part()
            return None
        earned = await self._is_answer_earned(request, dialogue) and not await self._misses_change(request, dialogue)
        return _build_answer(request) if earned else None

    async def _misses_change(self, request: PlanningRequest, dialogue: Dialogue) -> bool:
        """Whether a change that the request asks for was never tried, and the model says that it is still needed: it
        has read what it needs for it, and takes the request for done. The next decision must then make it."""
        if not request.rounds or dialogue.must_call or dialogue.questioned_part == request.question:
            return False
        missing = await self._changes.find_untried(request, dialogue)
        if not missing:
            return False
        dialogue.questioned_part = request.question
        question = render("decide_step", part=request.question, tools="\n".join(missing.values()))
        messages = (*dialogue.messages, say("assistant", encode_decision(ANSWER)), say("user", question))
        chosen = read_choice(await self._model.ask(messages, build_choice_schema([*missing, NO_TOOL])))
        if chosen in missing:
            dialogue.parts = []
            dialogue.call_now(chosen)
        return chosen in missing

    async def _misses_change_after_all(self, request: PlanningRequest, dialogue: Dialogue) -> bool:
        """Whether a change is missing after replies about other parts that were of no use: without this question the
        answer would say that it is done."""
        dialogue.parts, dialogue.refusals, dialogue.must_call = [], 0, False
        dialogue.tools = list_offered(request, choose_tools(request.catalogue, request.question))
        return await self._misses_change(request, dialogue)

    async def _misses_request(self, request: PlanningRequest, dialogue: Dialogue, decision: PlanReply) -> bool:
        """Whether a client's tool that alone was chosen for a new request does something else. What a client offers it
        may mean for other requests, and a small model calls what there is."""
        calls = list_calls(decision.data)
        names = {str(call.get("tool")) for call in calls}
        spec = next((spec for spec in dialogue.tools if {spec.name} == names and spec.origin == CLIENT_ORIGIN), None)
        is_whole = len(list_todo(decision.data)) <= len(calls)
        if spec is None or not is_whole or not request.is_first_decision or dialogue.must_call:
            return False
        return not await fits_request(self._model, request, spec)

    async def _take_calls(self, request: PlanningRequest, dialogue: Dialogue, decision: Ask | PlanReply) -> Planned:
        """The round or question of a decision. Raises `PlanInvalidError` if it cannot be used."""
        if isinstance(decision, PlanReply):
            decision = await self._changes.leave_out_unasked(request, dialogue, decision)
            decision = await choose_things(self._model, request, decision)
            decision = await ask_for_each(self._model, request, dialogue, decision)
            open_parts = dialogue.parts
            decision = await ask_for_all_changes(self._model, self._changes, request, dialogue, decision)
            try:
                planned = self._build_planned(request, decision, dialogue)
            except PlanInvalidError:  # the next decision is about the same parts
                dialogue.parts = open_parts
                raise
        else:
            planned = self._build_planned(request, decision, dialogue)
        used_ids = request.earlier_plans.used_ids
        new = [step for step in planned.plan.steps if step.id not in used_ids and not planned.question]
        part = dialogue.parts[0] if dialogue.parts else ""
        joined = make_join_round(request, new, part, dialogue.may_change)
        return joined or self._check_values(request, dialogue, planned)

    def _read_decision(self, request: PlanningRequest, dialogue: Dialogue, reply: ModelReply) -> Reply:
        """What the reply decides, without calls that are repeated or copied; an answer if no call is left. Raises
        `PlanInvalidError`."""
        decision = read_decision(reply, {spec.name: spec.input_schema for spec in dialogue.tools})
        if not isinstance(decision, PlanReply):
            return decision
        tidy = tidy_calls(dialogue.take_own_calls(decision.data), request, dialogue.is_copied)
        if not tidy.data["steps"] and tidy.made_up and not dialogue.refusals:
            dialogue.call_others(tidy.made_up)
        return PlanReply(tidy.data) if tidy.data["steps"] or dialogue.must_call else Answer("")

    async def _is_answer_earned(self, request: PlanningRequest, dialogue: Dialogue) -> bool:
        """Whether the answer may be written now. If a tool is needed first, the next decision must call."""
        names = [*(card.name for card in request.catalogue.skills), *(spec.name for spec in dialogue.tools)]
        if dialogue.must_call:
            raise PlanInvalidError(["a tool is needed; call it"])
        if dialogue.is_questioned or request.rounds or not names:
            return True
        dialogue.is_questioned = True
        messages = (*dialogue.messages, say("assistant", encode_decision(ANSWER)), say("user", render("decide_check")))
        reply = await self._model.ask(messages, build_choice_schema([*names, NO_TOOL]))
        chosen = read_choice(reply)
        if chosen not in names:
            is_unsaid = chosen != NO_TOOL or dialogue.only_copies
            dialogue.is_undecided = is_unsaid and may_need_tool(request, dialogue.tools)
            return True
        dialogue.messages = (*messages, say("assistant", encode_decision({"tool": chosen})))
        dialogue.messages = (*dialogue.messages, say("user", render("decide_again", tool=chosen)))
        dialogue.must_call = True
        return False

    async def _is_part_done(self, request: PlanningRequest, dialogue: Dialogue) -> bool:
        """Whether an open part may be passed over. One that changes something must be called for: a small model
        takes for done what it has only read about."""
        part = dialogue.parts[0]
        if self._must_call_named(request, dialogue, part):
            return False
        if find_named_tool(part, [spec.name for spec in dialogue.tools]):  # one that reads, or was called
            return True
        scores = CatalogueIndex([*dialogue.tools]).compute_scores(part)
        fitting = [spec for spec in dialogue.tools if scores.get(spec.name, 0.0) > 0]
        changing = list_changing_lines(request, fitting)
        if dialogue.must_call or part == dialogue.questioned_part or not changing:
            return True
        # Beside tools that only read: a choice of changes alone has the model change what it was to look up.
        lines = {spec.name: format_tool_line(spec) for spec in fitting} | changing
        dialogue.questioned_part = part
        question = render("decide_step", part=quote_inline(part), tools="\n".join(lines.values()))
        messages = (*dialogue.messages, say("assistant", encode_decision(ANSWER)), say("user", question))
        chosen = read_choice(await self._model.ask(messages, build_choice_schema([*lines, NO_TOOL])))
        called = {call.tool for call in request.rounds if not call.failed}
        if chosen not in lines or (chosen in called and chosen not in changing):
            return True
        dialogue.messages = (*messages, say("assistant", encode_decision({"tool": chosen})))
        dialogue.messages = (*dialogue.messages, say("user", render("decide_again", tool=chosen)))
        dialogue.must_call = True
        return False

    def _must_call_named(self, request: PlanningRequest, dialogue: Dialogue, part: str) -> bool:
        """Whether a part is written as the call of a changing tool that was not called yet. It is then called for."""
        called = {call.tool for call in request.rounds if not call.failed}
        name = find_named_tool(part, [spec.name for spec in dialogue.tools])
        spec = next((one for one in dialogue.tools if one.name == name), None)
        if spec is None or dialogue.must_call or name in called or not spec.has_side_effect:
            return False
        dialogue.call_now(name)
        return True

    def _check_values(self, request: PlanningRequest, dialogue: Dialogue, planned: Planned) -> Planned:
        """The round if the values of its changes come from somewhere, and name one thing. Else raises
        `MadeUpValueError`, once; then the user is asked for the value, or must see the change, unless other parts are
        open: a small model counts on in a list of things that ends earlier."""
        steps = [step for step in planned.plan.steps if step.id not in request.earlier_plans.used_ids]
        if planned.question or not any(map(request.catalogue.has_side_effect, steps)):
            return planned
        names = find_shared_names(steps, request) if request.may_ask else ()
        if names:
            return Planned(build_completion_plan(request, None), "llm", "llm", question=format_choice(names))
        made_up = find_made_up_values(steps, request)
        if not made_up:
            return planned
        if is_together(planned.plan):  # only optional ones are left, and a person sees them
            return mark_round(planned, {CHECK: MADE_UP})
        computed = all(one.is_derived for one in made_up)  # asked again, the model computes it once more
        if not computed and (not dialogue.refusals or len(dialogue.parts) > 1):  # then the part is passed over
            raise MadeUpValueError(made_up)
        missing = select_missing(made_up, request)
        if missing and request.may_ask:
            check_spoken_of(request, dialogue.tools, missing[0].spec.name)
            return Planned(build_completion_plan(request, None), "llm", "llm", question=format_question(missing[0]))
        return mark_round(planned, {CHECK: MADE_UP})

    def _build_planned(self, request: PlanningRequest, decision: Ask | PlanReply, dialogue: Dialogue) -> Planned:
        """The round of a decision. Changes that nobody asked for are left out beside others once a decision was
        refused."""
        if isinstance(decision, Ask):
            if not request.may_ask:
                raise PlanInvalidError(["nobody is there to answer a question; go on with what is known"])
            return Planned(build_completion_plan(request, None), "llm", "llm", question=decision.question)
        notes: list[str] = []
        check_calls(decision.data, request)
        made = build_plan_steps(decision.data, request, notes=notes)
        calls = tuple(step for step in made.steps if step.is_work)  # the answer follows when no call is missing
        if not calls:
            raise PlanInvalidError(["a round holds at least one call; if all is known, decide to answer"])
        requested = leave_out_unasked(calls, request, notes) if dialogue.refusals else calls
        steps = defer_effects(requested, request, notes, all_wait=WAITS in decision.data)
        looks = look_first(steps, request, notes)
        steps = drop_steps(steps, looks)
        unrequested = {step.intent for step in calls} - {step.intent for step in requested}
        named = [part for part in list_todo(decision.data) if part not in unrequested]
        named = select_parts(named, request.catalogue.list_names(), dialogue.is_copied)
        reworded = reword_calls(named, list_waiting(calls, looks), request.question)
        named = [*dict.fromkeys(reworded.get(part, part) for part in named)]
        requested = reword_intents(requested, reworded)
        looks_up = dialogue.is_looking_up or LOOKS_UP in decision.data
        args = divide_parts(named, dialogue.parts, requested, steps, request.catalogue.index, looks_up=looks_up)
        if dialogue.may_change is not None:
            args[MAY_CHANGE] = [*sorted(dialogue.may_change)]
        if TOGETHER in decision.data and sum(map(request.catalogue.has_side_effect, steps)) > 1:
            args[TOGETHER] = [step.id for step in steps]
        steps = (*steps, *{look.id: look for look in looks.values()}.values())
        plan = made.model_copy(update={"steps": (*steps, build_plan_more(request.earlier_plans.used_ids, steps, args))})
        return Planned(append_new_steps(plan, request), "llm", "llm", adjusted=tuple(notes))

    def _plan_by_rules(
        self, request: PlanningRequest, dialogue: Dialogue, reason: str, unreachable: ModelUnreachableError | None
    ) -> Planned:
        rejected = tuple(dialogue.rejected)
        return plan_by_rules(request, reason, has_model=self._has_writer, rejected=rejected, unreachable=unreachable)


def _begin_dialogue(request: PlanningRequest) -> Dialogue | None:
    """What the next decision is asked with; None where the answer follows without one."""
    tools, progress = choose_tools(request.catalogue, request.question), request.progress
    dialogue = Dialogue(
        request,
        build_round_messages(request, tools),
        list_offered(request, tools),
        is_questioned=not request.checks_answers,
        parts=[part for part in progress.open_parts if not is_made(part, request.rounds)],
        may_change=progress.may_change,
        need=progress.need,
    )
    if progress.doubt and progress.may_call:
        dialogue.look_again()
    elif not progress.may_call or (progress.has_changed and not progress.open_parts) or request.goes_in_circles:
        return None
    elif dialogue.is_untried:
        dialogue.follow_look()
        dialogue.follow_failure()
    return dialogue


def _build_answer(request: PlanningRequest) -> Planned:
    """The plan that only writes the answer."""
    return Planned(build_completion_plan(request, None), "llm", "llm")


def _is_forced_change(dialogue: Dialogue, error: PlanInvalidError) -> bool:
    """Whether an unasked change comes from asking for a call: a small model then changes something for a part that only
    says how to answer."""
    return isinstance(error, UnaskedChangeError) and dialogue.must_call and bool(dialogue.parts)
