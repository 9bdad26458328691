"""Plans the searches of a question in a room with `knowledge`.

A model writes them from the conversation: self-contained, several at a time, and a second round if what is missing can
only be named after the first. Without a model, a follow-up is searched with the words of the turn before, and the
answer says so. No model is asked where the words of a first message already have a clear hit.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from agent.core.errors import AgentError, BudgetError, ModelError, ModelUnreachableError, PlanInvalidError
from agent.core.models import JsonObject, Plan, PlanStep
from agent.core.plan_references import quote_literal
from agent.execution.static_plans import append_answer
from agent.planning.planned import Planned
from agent.planning.planner import append_new_steps
from agent.planning.request import PlanningRequest
from agent.planning.rounds.steps import build_plan_more
from agent.planning.validate import iter_free_ids
from agent.run_context.model_calls import MeteredModels, ModelCall
from agent.run_context.outputs import cut_text
from agent.run_context.run import Run
from agent.text.follow_up import is_pronoun, is_written_as_name, names_subject, read_alone, refers_back
from agent.text.question_parts import list_asking
from agent.text.requested_form import list_asked_things
from gateway.features.documents.engine.comparisons import Topic, build_search_args, parse_comparison
from gateway.features.documents.engine.grounded_answers.answer_builder import CERTAIN_RELEVANCE
from gateway.features.documents.engine.grounded_answers.offered_subjects import find_chosen_subjects
from gateway.features.documents.engine.grounded_answers.own_passages import (
    get_own_words,
    list_earlier_questions,
    list_people_before,
    read_topics,
)
from gateway.features.documents.engine.search_planner import (
    SearchReply,
    build_search_messages,
    build_search_schema,
    read_searches,
)

KNOWLEDGE_TOOL = "search_knowledge"
QUERY_CHARS = 4_000
LONG_CHARS = 600
"""Characters of a message that holds more than what it asks, such as a pasted mail."""
MAX_SEARCHES = 5
FIND = "find what the documents say"
WORDS_BEFORE = "with the words of the message before"


@dataclass(frozen=True, slots=True)
class _Searches:
    """Queries, each with the step's intent; the earlier message whose words they use; and why these."""

    queries: tuple[tuple[str, str], ...]
    follows: str = ""
    why: str = "a room of knowledge"


async def plan_document_search(run: Run, request: PlanningRequest) -> Planned:
    """The first plan of a question: searches, then the answer."""
    ruled = await _plan_by_rules(run, get_own_words(run.state))
    if not run.plans_with_model:
        return Planned(_build_plan(run, ruled), "rules", "rules", follows=ruled.follows)
    if not list_earlier_questions(run.state) and await _is_clear(run, ruled):
        ruled = _Searches(ruled.queries, why=f"{ruled.why}; its own words have a clear hit")
        return Planned(_build_plan(run, ruled), "rules", "rules")
    may_continue = run.profile.decides == "plans"
    try:
        reply = await _ask(run, request, may_continue=may_continue)
    except (ModelError, BudgetError, PlanInvalidError) as error:
        reason = error.problems[0] if isinstance(error, PlanInvalidError) else error.message
        unreachable = error if isinstance(error, ModelUnreachableError) else None
        whole = _Searches(_merge(run, (), ruled).queries, ruled.follows, ruled.why)
        plan = _build_plan(run, whole)
        return Planned(plan, "llm", "rules", reason, follows=ruled.follows, unreachable=unreachable)
    searches = _merge(run, reply.searches, ruled)
    plan = _build_plan(run, searches, has_more=may_continue and bool(reply.then))
    # A small model answers a follow-up from any passage about the same subject, so that its own words stay required.
    follows = ruled.follows if run.profile.checks_answers else ""
    return Planned(plan.model_copy(update={"origin": "llm", "reasoning": reply.then}), "llm", "llm", follows=follows)


async def plan_next_search(run: Run, request: PlanningRequest) -> Planned:
    """The plan after a first round: further searches with its results in view, then the answer.

    If the model adds none, or fails, the answer is written from what was found.
    """
    queries: tuple[str, ...] = ()
    reason = None
    try:
        queries = (await _ask(run, request, may_continue=False)).searches
    except PlanInvalidError:
        queries = ()
    except (ModelError, BudgetError) as error:
        reason = error.message
    earlier = request.earlier_plans
    made = {str(one.step.args.get("query")) for one in earlier.completed.values()}
    new = tuple((query, f"{FIND} about {query}") for query in queries if query not in made)
    steps = _build_steps(run, new, taken=earlier.used_ids)
    answer = append_answer(steps, also=tuple(earlier.completed), taken=earlier.used_ids)
    plan = Plan(goal=_make_goal(run), steps=answer, origin="llm", origin_reason="the second round of a document search")
    return Planned(append_new_steps(plan, request), "llm", "rules" if reason else "llm", reason)


async def _ask(run: Run, request: PlanningRequest, *, may_continue: bool) -> SearchReply:
    messages = build_search_messages(request, may_continue=may_continue)
    call = ModelCall("planner", messages, schema=build_search_schema(may_continue=may_continue))
    reply = await MeteredModels(run).complete(call)
    return read_searches(reply)


def _merge(run: Run, written: Sequence[str], ruled: _Searches) -> _Searches:
    """The model's searches, then those by rule: a model that drops a word of the question loses nothing.

    A translated question is searched too: the documents may be in either language.
    """
    queries: dict[str, tuple[str, str]] = {}
    # A search that itself refers back is not self-contained: the model has copied the message.
    own = [text for text in written if not (ruled.follows and refers_back(text))]
    translated = ((run.state.question, FIND),) if get_own_words(run.state) != run.state.question else ()
    planned = ((text, f"{FIND} about {text}") for text in own)
    for query, intent in (*planned, *ruled.queries, *translated):
        queries.setdefault(" ".join(query.casefold().strip(" ?.!").split()), (query, intent))
    return _Searches(tuple(queries.values())[:MAX_SEARCHES], why="searches planned from the conversation")


async def _plan_by_rules(run: Run, question: str) -> _Searches:
    """The searches without a model: each side of a comparison, or the message; what refers back together with the
    message before it."""
    if chosen := find_chosen_subjects(run.state, question):
        named = tuple((subject, f"{FIND} about {subject}"[:200]) for subject in chosen.subjects)
        return _Searches(named, why="a reply to which subject is meant")
    earlier = list_earlier_questions(run.state)
    # Without question marks between them: the search would take the parts one by one.
    before = " ".join(text.rstrip("?.! ") for text in (*earlier, *list_people_before(run.state)))
    # The newest message that has a subject, or a question about one.
    asking = (text for text in reversed(earlier) if names_subject(text) or refers_back(text))
    follows = next(asking, earlier[-1] if earlier else "")
    if topics := parse_comparison(question):
        return _compare(question, topics, before, follows)
    own = (_cut_query(question), FIND)
    if not earlier:
        return _Searches((own,))
    back = refers_back(question)
    if names_subject(question) and not back and await _is_clear(run, _Searches((own,))):
        return _Searches((own,))
    joined = (_cut_query(f"{before} {question}"), f"{FIND}, {WORDS_BEFORE}")
    topic = " ".join(map(read_alone, read_topics(question)))
    alone = ((_cut_query(topic), FIND),) if topic else (own,) if names_subject(question) or not back else ()
    return _Searches((joined, *alone), follows=follows, why="a follow-up")


def _cut_query(text: str) -> str:
    """A text as a query. Of a long one only the sentences that ask are searched: the rest drowns them."""
    return (" ".join(list_asking(text)) if len(text) > LONG_CHARS else text)[:QUERY_CHARS]


def _compare(question: str, topics: Sequence[Topic], before: str, follows: str) -> _Searches:
    """A search for each side. A side that refers back is searched with the words of the messages before: a pronoun, or
    a first side with one, such as "its price"."""
    back = [
        bool(before)
        and not is_written_as_name(topic.name, question)
        and (is_pronoun(topic.name) or (number == 0 and refers_back(topic.query)))
        for number, topic in enumerate(topics)
    ]
    queries = tuple(
        (_cut_query(f"{before} {topic.query}"), f"{FIND}, {WORDS_BEFORE}")
        if is_back
        else (topic.query, f"{FIND} about {topic.name}")
        for topic, is_back in zip(topics, back, strict=True)
    )
    return _Searches(queries, follows if any(back) else "", "a room of knowledge, asked to compare")


async def _is_clear(run: Run, searches: _Searches) -> bool:
    """Whether each thing that each query asks for has a passage that is relevant beyond doubt."""
    parts = [thing for query, _ in searches.queries for thing in list_asked_things(query)]
    collection = run.state.request.metadata.get("collection")
    measure = run.engine.ground.collections.measure_relevance
    for part in parts:
        try:
            best = await measure(run.state.owner, run.room, part, collection if isinstance(collection, str) else "")
        except AgentError:  # the search itself will say why
            return True
        if best < CERTAIN_RELEVANCE:
            return False
    return True


def _build_plan(run: Run, searches: _Searches, *, has_more: bool = False) -> Plan:
    steps = _build_steps(run, searches.queries)
    whole = (*steps, build_plan_more(frozenset(), steps, {})) if has_more else append_answer(steps)
    return Plan(goal=_make_goal(run), steps=whole, origin="rules", origin_reason=searches.why)


def _build_steps(
    run: Run, queries: Sequence[tuple[str, str]], *, taken: frozenset[str] = frozenset()
) -> tuple[PlanStep, ...]:
    names = iter_free_ids(taken)
    return tuple(
        PlanStep(
            id=next(names),
            executor="agent",
            action="tool",
            tool=KNOWLEDGE_TOOL,
            args=_build_args(run, query),
            intent=cut_text(intent, 200),
        )
        for query, intent in queries
    )


def _build_args(run: Run, query: str) -> JsonObject:
    return build_search_args(run.state.request.metadata, quote_literal(query))


def _make_goal(run: Run) -> str:
    return cut_text(run.state.question, 300)
