"""Which requests are answered by writing alone, and which tools do what a request asks for."""

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest

from agent.core.models import ChatMessage, JsonObject, Usage
from agent.llm.port import ModelReply, ResponseSchema
from agent.planning.parse import read_word
from agent.planning.request import ACTION, NOTHING, AnswerRules, PlanningRequest
from agent.planning.rounds.tool_need import BEGIN_CHARS, END_CHARS, ask_need, asks_for_change, fits_request
from agent.tools.catalogue import Catalogue, SkillCard
from agent.tools.client_tools import build_client_spec
from tests.unit.planning.kitchen import SAVE, SIDE_EFFECT, asking, spec

SEARCH = spec("web_fetch", {"url": {"type": "string"}}, ["url"])
PRICE = replace(
    spec("set_price", {"product": {"type": "string"}}, ["product"], annotations=SIDE_EFFECT), origin="mcp:shop"
)
ROOMS: JsonObject = {"anyOf": [{"enum": ["kitchen", "living_room"], "type": "string"}, {"type": "null"}]}
DEVICES = replace(spec("list_devices", {"room": ROOMS, "kind": {"const": "light"}}, []), origin="mcp:hub")
MAIL: JsonObject = {"type": "object", "properties": {"inReplyTo": {"type": "string"}, "text": {"type": "string"}}}
SEND = replace(spec("send_message", {"message": MAIL}, ["message"], annotations=SIDE_EFFECT), origin="mcp:post")
MELODY = build_client_spec("generate_melody", "Make a melody in a key.", {"properties": {"key": {"type": "string"}}})


class Chooser:
    """Says the same to each question, and keeps what it was asked and in which form."""

    def __init__(self, choice: JsonObject | str) -> None:
        self.choice = choice
        self.prompts: list[Sequence[JsonObject]] = []

    @property
    def question(self) -> str:
        return str(self.prompts[-1][-1]["content"])

    async def ask(self, messages: Sequence[JsonObject], schema: ResponseSchema | None) -> ModelReply:
        self.prompts.append(messages)
        text = self.choice if isinstance(self.choice, str) else json.dumps(self.choice)
        return ModelReply(text, "small", "stop", Usage(model_calls=1))

    async def ask_word(self, messages: tuple[JsonObject, ...]) -> str:
        return read_word((await self.ask(messages, None)).text)


async def decide(question: str, model: Chooser, *tools: object, **more: object) -> bool:
    catalogue = Catalogue(skills=more.pop("skills", ()), tools=tools or (SEARCH,))  # type: ignore[arg-type]
    request: PlanningRequest = replace(asking(question, catalogue=catalogue), **more)  # type: ignore[arg-type]
    return await ask_need(model, request, catalogue.tools) == NOTHING


SWEDISH = {"answer": AnswerRules(language="Swedish")}


@pytest.mark.parametrize(
    ("question", "tools", "more"),
    [
        ("Raise the price of the desk by 10", (SEARCH, PRICE), {}),
        ("Make something in C major, a melody", (SEARCH, MELODY), {}),
        ("kitchen heating off please", (SEARCH, DEVICES), {}),
        ("ilse wrote about the wall. reply to her with just 'yes'", (SEARCH, SEND), {}),
        ("all lights out!", (SEARCH, DEVICES), {}),
        ("Shorten minutes.docx to a page", (SEARCH, SEND), {"ground": "Files (2):\n- a.txt\n- old/Minutes.docx"}),
        ("What is in Q3 report.v2.pdf?", (SEARCH, SEND), {"ground": "Files (1):\n- Q3 report.v2.pdf"}),
        ("Was steht auf https://example.org ?", (SEARCH,), {}),
        ("Det droppar från kranen i 2A. Kan du felanmäla det?", (SEARCH, DEVICES), SWEDISH),
        ("A market report, please", (SEARCH,), {"skills": (SkillCard("market-report", "Reports"),)}),
    ],
)
async def test_words_of_a_skill_or_of_somebody_else_s_tool_are_decided_on(
    question: str, tools: tuple[object, ...], more: dict[str, object]
) -> None:
    model = Chooser("nothing")
    assert not await decide(question, model, *tools, **more)
    assert not model.prompts, "nothing is asked whose answer would not count"


async def test_values_such_as_on_and_off_are_nobody_s_words() -> None:
    switch = replace(spec("set_device", {"power": {"enum": ["on", "off", "all"]}}, []), origin="mcp:hub")
    assert await decide("Write a poem on love for all of us", Chooser("nothing"), SEARCH, switch)


async def test_a_skill_whose_name_is_no_word_is_named_by_nothing() -> None:
    assert await decide("Tell me about love", Chooser("nothing"), skills=(SkillCard("the-a", "Does it"),))


@pytest.mark.parametrize(
    "question",
    [
        "Tell me about love",
        "Erhöhe alles ein wenig",
        "Why does a.sort() in v1.2 return None?",
        "What is Node.js?",
        "Shorten minutes.docx to a page",
    ],
)
async def test_the_model_says_whether_a_tool_is_needed(question: str) -> None:
    assert await decide(question, Chooser("nothing"), SEARCH, PRICE)
    assert not await decide(question, Chooser("lookup"), SEARCH, PRICE)


@pytest.mark.parametrize(("reply", "need"), [("nothing", ""), ("lookup", ""), ("action", ACTION)])
async def test_where_no_tool_has_effects_an_action_on_a_file_is_known_as_one(reply: str, need: str) -> None:
    catalogue = Catalogue(skills=(), tools=(SEARCH,))
    request = replace(asking("Delete notes.txt", catalogue=catalogue), ground="Files (1):\n- notes.txt")
    assert await ask_need(Chooser(reply), request, catalogue.tools) == need


@pytest.mark.parametrize(
    "reply", ["", "none", "[]", "{}", '{"needs": "nothing"}', "poetry", "nothing else", '{"tool": "none"}']
)
async def test_a_reply_that_says_neither_decides_nothing(reply: str) -> None:
    assert not await decide("Tell me about love", Chooser(reply))
    assert await fits_request(Chooser(reply), asking("Tell me about love"), MELODY)


async def test_of_a_long_text_the_ends_are_shown() -> None:
    model = Chooser("nothing")
    assert await decide("Summarize this: " + "b" * 5_000 + " In two sentences!", model)
    assert "Summarize this: bbb" in model.question
    assert "In two sentences!" in model.question
    assert len(model.question) < BEGIN_CHARS + END_CHARS + 20


async def test_the_last_turn_stands_before_a_follow_up() -> None:
    history = tuple(
        ChatMessage(role=role, content=content)
        for role, content in [("user", "Hi"), ("assistant", "Hello!"), ("user", "A verb?"), ("assistant", "A\nword.")]
    )
    model = Chooser("nothing")
    await decide("And an adverb?", model, SAVE, history=history)
    assert model.prompts[0][-1]["content"] == "(before: A verb? - A word.)\nAnd an adverb?"


async def test_the_questions_begin_alike_for_everybody() -> None:
    model = Chooser("nothing")
    await decide("Tell me about love", model, SEARCH)
    await decide("Sing", model, PRICE)
    assert model.prompts[0][:-1] == model.prompts[1][:-1]
    words = {str(message["content"]) for message in model.prompts[0] if message["role"] == "assistant"}
    assert words == {"nothing", "lookup", "clock", "calculator", "memory", "action"}, "each kind has an example"
    model = Chooser({"fits": "no"})
    assert not await fits_request(model, asking("Write a poem"), MELODY)
    assert "- generate_melody(key): Make a melody in a key.\nRequest: Write a poem\n" in model.question
    replies = {str(message["content"]) for message in model.prompts[-1] if message["role"] == "assistant"}
    assert replies == {'{"fits":"yes"}', '{"fits":"no"}'}


async def test_a_change_is_looked_for_in_the_whole_of_a_mail() -> None:
    wish = "Please book room 204 for Ines on Friday at ten."
    mail = "I hope you are well. " * 12 + wish + " By the way, the report came late this week." * 4
    model = Chooser({"asks": "change"})
    assert await asks_for_change(model, asking(mail))
    assert wish in model.question


async def test_who_says_neither_is_asked_which_change() -> None:
    assert await asks_for_change(Chooser("maybe"), asking("Book the room"))
    assert not await asks_for_change(Chooser({"asks": "information"}), asking("Which rooms are free?"))


async def test_instructions_of_the_client_are_no_turn_before() -> None:
    told = (ChatMessage(role="system", content="You are terse."), ChatMessage(role="user", content="One?"))
    model = Chooser("nothing")
    await decide("Tell me about love", model, history=told[:1])
    assert model.question == "Tell me about love"
    await decide("Tell me about love", model, history=told)
    assert model.question.startswith("(before: One?)")
