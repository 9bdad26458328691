"""What an endpoint leaks of a model's template, through the doors: thoughts and made-up turns are not the answer."""

from pathlib import Path

import pytest

from agent.core.models import Room
from agent.runs.response import build_response
from tests.integration.conftest import Serve
from tests.integration.test_engine import write_skill
from tests.integration.test_model_streams import ask, settings_for
from tests.integration.test_tailor import TRUE, ask_question, shown
from tests.support.engine import engine_bench
from tests.support.raw_endpoint import DONE, STOP, chunk, raw_endpoint, say
from tests.support.script import plans, says, script
from tests.support.tools import returning

GPT_OSS = [
    "<|channel|>analysis<|mess",
    "age|>They greet.<|end|><|start|>assistant<|chan",
    "nel|>final<|message|>Hello!",
]
LEAKS = {
    "gpt-oss": GPT_OSS,
    "Magistral": ["[THI", "NK]They greet.[/THINK]Hel", "lo!"],
    "EXAONE": ["<thought>They greet.</thought>", "\n\nHello!"],
    "further turns": ["<think>They greet.</think>Hello!<|im", "_end|>\n<|im_start|>user\n", "Thanks<|im_end|>"],
}


@pytest.mark.parametrize("room", ["chat", "stepgate"])
@pytest.mark.parametrize("name", LEAKS)
async def test_a_template_that_the_endpoint_does_not_know_is_taken_off(serve: Serve, name: str, room: str) -> None:
    parts = [say(text) for text in LEAKS[name]]
    async with raw_endpoint(*parts, STOP, DONE) as endpoint, serve(**settings_for(endpoint)) as url:
        for stream in (True, False):
            answer = await ask(url, stream=stream, room=room)
            assert (answer["content"], answer["error"]) == ("Hello!", "")


async def test_a_thought_that_the_prompt_opens_is_the_answer_of_no_second_request(serve: Serve) -> None:
    parts = [say("Okay, they greet."), say("\n</think>\n\n"), say("Hello!")]
    async with raw_endpoint(*parts, STOP, DONE) as endpoint, serve(**settings_for(endpoint)) as url:
        first = await ask(url, stream=True)
        later = [await ask(url, stream=stream) for stream in (True, False)]
    assert first["content"].endswith("Hello!"), "the model was not known yet: its answer began again"
    assert [(one["content"], one["reasoning_content"]) for one in later] == [("Hello!", "Okay, they greet.\n")] * 2


async def test_a_first_answer_that_nobody_follows_holds_no_thought(serve: Serve) -> None:
    parts = [say("Okay, they greet."), say("\n</think>\n\n"), say("Hello!")]
    async with raw_endpoint(*parts, STOP, DONE) as endpoint, serve(**settings_for(endpoint)) as url:
        answer = await ask(url, stream=False)
    assert (answer["content"], answer["reasoning_content"]) == ("Hello!", "Okay, they greet.\n")


async def test_a_model_that_plays_both_sides_is_stopped(serve: Serve) -> None:
    async with (
        raw_endpoint(say("Hello!<|im_end|>"), say("\n<|im_start|>user\nMore!"), endless=True) as endpoint,
        serve(**settings_for(endpoint)) as url,
    ):
        assert (await ask(url, stream=True))["content"] == "Hello!"
        assert endpoint.hung_up.is_set()


@pytest.mark.parametrize("opening", ["<think>", ""])
async def test_thoughts_are_no_claims_of_an_answer_from_documents(tmp_path: Path, opening: str) -> None:
    thought = f"{opening}Okay, [1] says that holidays are approved by the head of the department [1]. So:\n</think>\n\n"
    response = await ask_question(tmp_path, says(thought + TRUE, to="completion", chunk=5))
    assert response.response == TRUE


async def test_a_skill_that_answers_keeps_its_thoughts_to_itself(tmp_path: Path) -> None:
    roots = write_skill(tmp_path / "skills", "greet")
    model = script(says("<think>They greet.</think>\n\nHello!", to="skill", chunk=3))
    room = Room(id="greetings", skill="greet")
    async with engine_bench(tmp_path / "d", model, skill_roots=[roots], room=room) as bench:
        events = await bench.events("Greet me, please")
    assert shown(events) == build_response(events).response == "Hello!"


@pytest.mark.parametrize("stream", [True, False])
async def test_a_thought_that_reaches_the_limit_is_no_answer(serve: Serve, *, stream: bool) -> None:
    pieces = [say("Okay, they greet."), say("\n</think>\n\n"), say("Hello!"), STOP, DONE]
    async with raw_endpoint(*pieces) as endpoint, serve(**settings_for(endpoint)) as url:
        await ask(url, stream=stream)
        endpoint.parts = (say("Okay, they"), chunk({}, "length"), DONE)
        answer = await ask(url, stream=stream)
    assert (answer["content"], answer["reasoning_content"], answer["finish"]) == ("", "Okay, they", "length")


MENTIONS = [
    ("Which tokens are there?", "The tokens:\n- **<|im_start|>**: begins a turn.\n- <|im_end|>\nDone."),
    ("How does it think?", "Qwen ends its thought with </think>\nThen comes the answer."),
    ("Write <reasoning> and <answer>.", "<reasoning>2+2</reasoning>\n<answer>4</answer>"),
    ("Begin with <thought>.", "<thought>The poem begins."),
]


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(("question", "reply"), MENTIONS)
async def test_an_answer_that_mentions_tokens_arrives_whole(
    serve: Serve, question: str, reply: str, *, stream: bool
) -> None:
    parts = [say(reply[at : at + 5]) for at in range(0, len(reply), 5)]
    async with raw_endpoint(*parts, STOP, DONE) as endpoint, serve(**settings_for(endpoint)) as url:
        answer = await ask(url, stream=stream, messages=[{"role": "user", "content": question}])
    assert (answer["content"], answer["reasoning_content"], answer["error"]) == (reply, "", "")


@pytest.mark.parametrize(("times", "answer"), [(1, "There are 17."), (None, "17 orders")])
async def test_a_call_in_place_of_an_answer_is_an_empty_reply(tmp_path: Path, times: int | None, answer: str) -> None:
    call = '\n\n     <tool_call>\n{"name": "list_orders", "arguments": {}}\n</tool_call>'
    plan = plans({"tool": "list_orders"}, {"tool": "completion", "depends_on": ["s1"]})
    model = script(plan, says(call, to="completion", times=times, chunk=5), says("There are 17.", to="completion"))
    async with engine_bench(tmp_path, model, tools=[orders := returning("list_orders", "17 orders")]) as bench:
        events = await bench.events("How many orders?")
    assert build_response(events).response == answer
    assert "tool_call" not in shown(events)
    assert len(orders.calls) == 1
