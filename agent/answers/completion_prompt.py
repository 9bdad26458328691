"""The prompt of an answer: trusted text in the system message, each result in a block of its own, the request last.

A small model gets examples as turns of a conversation, too. From rules alone it reports on the conversation ("The user
requested ...") or says what it read instead of what was asked. What the room and the caller want of answers then stands
beside the request: before the examples, they would be forgotten.
"""

from functools import cache
from typing import NamedTuple

from agent.core.models import ChatMessage, JsonObject, Source
from agent.core.plan_outcome import find_refusal_of_plan, list_abandoned_steps
from agent.core.run_state import StepResult
from agent.llm.prompts import format_block, quote_inline, read_examples, render
from agent.planning.open_parts import list_unmade_changes
from agent.run_context.conversation import (
    build_instructions,
    name_language,
    remove_instructions,
    split_at_prompt,
    take_newest_messages,
)
from agent.run_context.outputs import SKILL_CHARS, build_result_blocks, format_data_block
from agent.run_context.run import Run
from agent.text.language import ENGLISH, get_language_name

FAILED_STEPS_RULE = "- What stands inside <failed> blocks could not be found out: say so, and do not fill it in."
UNMADE_RULE = "- Nothing was changed, sent or saved. Say so, and do not say that anything was."
CITATION_RULE = (
    "- Cite sources as [n] right after what they support; but put no [n] into a text that is to be used elsewhere, "
    "such as a mail, a message or the content of a file."
)
MEMORY_CHARS = 4_000
"""Characters of memories in a completion's prompt."""


class Results(NamedTuple):
    """What an answer is made from: the results of the steps so far, numbered as sources."""

    outcomes: list[StepResult]
    sources: tuple[Source, ...]
    tainted: bool
    """Whether the results, the request or the memories hold text from outside."""


class CompletionPrompt:
    """The prompt of one attempt."""

    def __init__(self, run: Run, results: Results, *, is_structured: bool) -> None:
        """`is_structured`: whether the answer is JSON, which has neither citations nor examples of sentences."""
        self._run = run
        self._results = results
        self._is_structured = is_structured
        self._failed = list_abandoned_steps(run.state)
        self._refused = _build_refusal_blocks(run)
        self._earlier = run.state.retrieval.earlier_results if run.state.retrieval else ()
        self._shows_examples = run.profile.decides == "rounds" and self._has_results and not is_structured

    @property
    def shows_examples(self) -> bool:
        """Whether examples of answers come before the request."""
        return self._shows_examples

    def leave_out_examples(self) -> None:
        """Shortens the prompt for a model whose context is too small for examples beside a conversation."""
        self._shows_examples = False

    def build(self, history_limit: int, feedback: str | None) -> tuple[JsonObject, ...]:
        """The messages, with at most `history_limit` earlier ones. `feedback` is why an answer was not accepted."""
        run = self._run
        before, after = split_at_prompt(run.state)
        instructions = self._list_instructions((*before, *after))
        system = self._build_system(instructions)
        messages: list[JsonObject] = [{"role": "system", "content": system}] if system else []
        messages += _build_examples() if self._shows_examples else ()
        spoken = remove_instructions(before)
        messages += [message.to_openai() for message in take_newest_messages(spoken, history_limit)]
        question = self._build_question(instructions)
        if feedback:
            question += f"\n\nAn earlier answer was not accepted:\n{format_block('feedback', feedback)}"
        request = run.state.request
        if question or request.images or not messages:  # a client may send instructions without a question
            user_message = ChatMessage(
                role="user", content=question, images=request.images, name=request.prompt_name,
                image_lines=request.place_images(question, run.state.question),
            )  # fmt: skip
            messages.append(user_message.to_openai())
        messages += [message.to_openai() for message in remove_instructions(after)]
        return tuple(messages)

    @property
    def _has_results(self) -> bool:
        """Whether there is anything to answer from, or a reason why there is not."""
        return bool(self._results.outcomes or self._failed or self._refused)

    def _list_instructions(self, history: tuple[ChatMessage, ...]) -> str:
        """The operator's instructions, followed by the caller's own system messages and the room's persona."""
        parts = (build_instructions(self._run, history), self._run.room.persona)
        return "\n\n".join(part for part in parts if part)

    def _build_system(self, instructions: str) -> str:
        """The system message; without `instructions` that of examples, which is the same for all requests, so that an
        endpoint reads it once."""
        if not self._has_results and not self._earlier:
            # Alone, the request speaks for itself: instructed about its language, a 1.5B model repeats it, and one that
            # asks for a translation names another.
            return instructions
        if self._shows_examples:
            return render("completion", instructions="", language="", rules="")
        return render(
            "completion",
            instructions=instructions + "\n\n" if instructions else "",
            language=self._describe_language(),
            rules="\n".join(self._list_rules()),
        )

    @property
    def _cites(self) -> bool:
        """Whether the answer is to cite its sources by their numbers."""
        return bool(self._results.sources) and not self._is_structured

    def _list_rules(self) -> list[str]:
        """What holds for this answer alone."""
        rules = [FAILED_STEPS_RULE] if self._failed or self._refused else []
        if list_unmade_changes(self._run.state):
            rules.append(UNMADE_RULE)
        if self._cites:
            rules.append(CITATION_RULE)
        return rules

    def _build_question(self, instructions: str) -> str:
        """The request after the results. It stands last: a small model answers what it has read last."""
        run, question = self._run, self._run.state.question
        if self._has_results:
            blocks = [*build_result_blocks(run, self._results.outcomes, self._failed), *self._refused]
            if self._cites:  # the names are of pages and files
                blocks.append(format_data_block("sources", _list_sources(self._results.sources), limit=SKILL_CHARS))
            if self._shows_examples:
                wishes = "\n".join(part for part in (*self._list_rules(), name_language(run), instructions) if part)
                blocks += [f"<instructions>\n{wishes}\n</instructions>"] if wishes else []  # not from outside
            question = "\n".join((*blocks, format_data_block("user_request", question, limit=SKILL_CHARS)))
        data_blocks = [
            format_data_block("earlier_results", one.text, limit=SKILL_CHARS, tool=one.tool, intent=one.intent)
            for one in self._earlier
        ]
        question = "\n".join((*data_blocks, question))
        memories = run.state.retrieval.items if run.state.retrieval else ()
        if memories:
            remembered = "\n".join(f"- {item.text}" for item in memories)
            question = format_data_block("memory", remembered, limit=MEMORY_CHARS) + "\n" + question
        return question

    def _describe_language(self) -> str:
        """ ", in German": the language of the answer; "" for English, and for an answer that is translated."""
        request = self._run.state.understanding
        if not self._run.room.planning or request is None or request.translated or request.language == ENGLISH:
            return ""
        return f", in {get_language_name(request.language)}"


def _build_refusal_blocks(run: Run) -> list[str]:
    """A block that says why the calls of the planner were not made; none if they were."""
    reason = find_refusal_of_plan(run.state)
    tools = ", ".join(run.state.plans[-1].refused_calls) if reason else ""
    return [format_data_block("failed", f"not called: {reason}", limit=SKILL_CHARS, tool=tools)] if reason else []


def _list_sources(sources: tuple[Source, ...]) -> str:
    listed = (f"[{source.id}] {source.name}" + (f" {source.url}" if source.url else "") for source in sources)
    return "\n".join(map(quote_inline, listed))


@cache
def _build_examples() -> tuple[JsonObject, ...]:
    """Results and requests with the answers to them, as turns of a conversation."""
    return tuple(
        {"role": role, "content": content}
        for example in read_examples("completion_examples")
        for role, content in zip(("user", "assistant"), example, strict=True)
    )
