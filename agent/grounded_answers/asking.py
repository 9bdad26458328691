"""What a model is asked for an answer from passages, and the whole way of one that is not shown while it is written:
asked, checked, what failed asked again once, and what stands told."""

import asyncio

from agent.core.errors import ModelOutputError
from agent.core.models import JsonObject
from agent.grounded_answers.claims import read
from agent.grounded_answers.formats import Format
from agent.grounded_answers.models import Persona, TailorInput, place_name
from agent.grounded_answers.render import kept
from agent.grounded_answers.rewrite import problems, rewritten, told
from agent.grounded_answers.writing import Tailored, Tailoring
from agent.prompts import render
from agent.prompts.blocks import block
from agent.search.models import AskModel

PASSAGE_CHARS = 4_000
TONES: dict[Persona, str] = {
    "Technical": "Write for a technical reader: keep identifiers, units and tables, and leave out no condition.",
    "Executive": "Write for an executive: the conclusion first, and no more than three sentences.",
    "General": "Write plainly, for anybody.",
}


async def write_by_model(tailoring: Tailoring, ask: AskModel) -> Tailored:
    """The answer by a model, as far as it stands; two calls at most. Raises what `ask` does, and
    `ModelOutputError` for an empty one."""
    wanted, ground = tailoring.wanted, tailoring.ground
    system = render(
        "tailor", system="", persona="", tone=TONES[wanted.persona], form=form_lines(wanted, tailoring.format)
    )
    results = [
        block("result", chunk.content[:PASSAGE_CHARS], number=f"[{number}]", source=place_name(chunk))
        for number, chunk in enumerate(wanted.context_chunks, start=1)
    ]
    question = "\n".join([block("user_request", wanted.user_query), *results])
    messages: tuple[JsonObject, ...] = (
        {"role": "system", "content": system},
        {"role": "user", "content": question},
    )
    text = await ask(messages)
    if not text.strip():
        raise ModelOutputError("the model's answer is empty", agent_id="tailor")
    verdicts = await asyncio.to_thread(lambda: ground.check(read(text, finished=True)))
    if failed := problems(verdicts):
        again: tuple[JsonObject, ...] = (
            {"role": "assistant", "content": text},
            {"role": "user", "content": render("tailor_strict", problems=told(failed))},
        )
        reply = await ask((*messages, *again))
        verdicts = await asyncio.to_thread(rewritten, verdicts, reply, ground)
    standing = kept(verdicts)
    if problems(verdicts) and not standing:
        own_words = await asyncio.to_thread(tailoring.instead)
        return own_words or tailoring.nothing()
    total = sum(1 for verdict in verdicts if verdict.states or verdict.problem)
    passed = sum(1 for verdict in standing if verdict.states)
    return await asyncio.to_thread(tailoring.finish, standing, share=min(1.0, passed / total) if total else 1.0)


def form_lines(wanted: TailorInput, form: Format) -> str:
    """What the model is told of the answer's form; JSON, lists and tables are made from its sentences afterwards."""
    lines = []
    if form.shape == "plain" and wanted.formatting_instructions:
        lines.append(f"- The form that is asked for: {wanted.formatting_instructions}")
    if form.shape != "plain":
        lines.append("- Write plain sentences only; they are brought into the form that is asked for afterwards.")
    if form.max_sentences is not None:
        lines.append(f"- At most {form.max_sentences} sentences.")
    if form.max_words is not None:
        lines.append(f"- At most {form.max_words} words.")
    return "\n".join(lines)
