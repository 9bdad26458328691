"""What a model thinks is taken out of its answer, wherever the pieces of a stream are cut."""

from dataclasses import replace

import pytest

from agent.core.models import JsonObject
from agent.llm.chunks import ChunkReader, has_thoughts
from agent.llm.port import ONE_CALL, ModelChunk, ModelReply, ModelRequest, read_end, read_finish_reason
from agent.llm.streamed_reply import StreamedReply, ThoughtMemory
from agent.llm.thoughts import Piece, ThoughtSplitter, split_text
from tests.unit.llm.test_call_forms import FAMILIES

THOUGHT = "<think>\nA < b, so </thin is no end.\n</think>\n\nParis, not <think>."


def split(*pieces: str, opened: str = "") -> tuple[str, str]:
    """The thought and the answer of a reply that comes in pieces."""
    splitter = ThoughtSplitter(opened)
    thought = text = ""
    for piece in (*map(splitter.feed, pieces), splitter.end()):
        thought, text = thought + piece.thought, piece.text if piece.restarts else text + piece.text
    return thought, text


def split_evenly(reply: str, size: int, opened: str = "") -> tuple[str, str]:
    return split(*(reply[at : at + size] for at in range(0, len(reply), size)), opened=opened)


@pytest.mark.parametrize("size", range(1, len(THOUGHT) + 1))
def test_a_thought_is_split_off_wherever_the_stream_is_cut(size: int) -> None:
    pieces = [THOUGHT[at : at + size] for at in range(0, len(THOUGHT), size)]
    assert split(*pieces) == ("\nA < b, so </thin is no end.\n", "Paris, not <think>.")


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("  \n<thinking>Hm.</thinking>Yes.", ("Hm.", "Yes.")),
        ("<think>It never ends </th", ("It never ends </th", "")),
        ("The tag <think> begins a thought.", ("", "The tag <think> begins a thought.")),
        ("<thing>is no tag</thing>", ("", "<thing>is no tag</thing>")),
        ("  indented", ("", "  indented")),
        ("<thin", ("", "<thin")),
        ("<think></think>", ("", "")),
        ("", ("", "")),
    ],
)
def test_only_a_thought_at_the_beginning_is_one(reply: str, expected: tuple[str, str]) -> None:
    assert split(reply) == expected
    assert split(*reply) == expected


REPLIES = {
    "gpt-oss, its tokens left out": ("analysisThey greet.assistantfinalHello!", "They greet.", "Hello!"),
    "a word that begins a thought of gpt-oss": ("analysis is hard", "", "analysis is hard"),
    "opened in the prompt": ("Okay, they greet.\n</think>\n\nHello!", "Okay, they greet.\n", "Hello!"),
    "opened in the prompt, without a line break": ("They greet.</think>Hello!", "They greet.", "Hello!"),
    "opened in the prompt, and nothing else": ("They greet.\n</think>\n", "They greet.\n", ""),
    "gpt-oss": (
        "<|channel|>analysis<|message|>They greet.<|end|><|start|>assistant<|channel|>final<|message|>Hello!<|return|>",
        "They greet.",
        "Hello!",
    ),
    "gpt-oss without an end": (
        "<|channel|>analysis<|message|>They greet.<|channel|>final <|constrain|>json<|message|>{}", "They greet.", "{}",
    ),
    "Magistral": ("[THINK]They greet.[/THINK]Hello!", "They greet.", "Hello!"),
    "EXAONE": ("<thought>\nThey greet.\n</thought>\n\nHello!", "\nThey greet.\n", "Hello!"),
    "reasoning": ("<reasoning>They greet.</reasoning> Hello!", "They greet.", "Hello!"),
    "Command A": (
        "<|START_THINKING|>They greet.<|END_THINKING|><|START_RESPONSE|>Hello!<|END_RESPONSE|>",
        "They greet.",
        "Hello!",
    ),
    "Gemma 4": ("<|channel>thoughtThey greet.<channel|>Hello!", "They greet.", "Hello!"),
    "MiniCPM": ("<|thought_start|>They greet.<|thought_end|>Hello!", "They greet.", "Hello!"),
    "Hunyuan": ("<think>They greet.</think>\n<answer>\nHello!</answer>", "They greet.", "Hello!"),
    "OpenThinker": (
        "<|begin_of_thought|>They greet.<|end_of_thought|>\n<|begin_of_solution|>Hello!<|end_of_solution|>",
        "They greet.",
        "Hello!",
    ),
    "GLM's box": ("<think>They greet.</think><|begin_of_box|>Hello!<|end_of_box|>", "They greet.", "Hello!"),
    "EXAONE's end": ("Hello![|endofturn|]", "", "Hello!"),
    "two thoughts": ("<think>They</think>\n<think> greet.</think>Hello!", "They greet.", "Hello!"),
    "a turn that is begun in the text": ("<|im_start|>assistant\n<think>Hm.</think>Hello!", "Hm.", "Hello!"),
    "further turns": ("Hello!<|im_end|>\n<|im_start|>user\nMore!<|im_end|>", "", "Hello!"),
    "Gemma's end": ("Hello!<end_of_turn>\n<start_of_turn>user\n", "", "Hello!"),
    "an end behind code": ("```\nHello!\n```<|eot_id|>", "", "```\nHello!\n```"),
    "an end behind JSON": ('{"a": "say <|im_end|>"}<|im_end|>', "", '{"a": "say <|im_end|>"}'),
    "the end of a sequence": ("Hello!</s>", "", "Hello!"),
    "a stray tag": ("Hello!\n</answer>", "", "Hello!\n"),
}  # fmt: skip
SPOKEN_OF = [
    "In Qwen's template, </think> ends a thought and <|im_end|> the turn.",
    "Write `</think>` at the end:\n```\nHm.\n</think>\nHello!<|im_end|>\n```\nand `<|im_end|>` last.",
    '{"question": "What does</think>mean?", "tag": "<|im_end|>"}',
    "First <think>, then the thought.\n</think>\nThat is all.",
    "<s>old</s>",
    "<answer>4</answer>",
    "a < b [1] and c",
]


@pytest.mark.parametrize("size", [1, 2, 7, 1_000])
@pytest.mark.parametrize("name", REPLIES)
def test_what_a_template_writes_around_an_answer_is_taken_off(name: str, size: int) -> None:
    reply, thought, text = REPLIES[name]
    assert split_evenly(reply, size) == (thought, text)
    assert split_text(reply)[:2] == (thought, text)


@pytest.mark.parametrize("size", [1, 2, 7, 1_000])
@pytest.mark.parametrize("reply", SPOKEN_OF)
def test_an_answer_that_speaks_of_tags_stays_whole(reply: str, size: int) -> None:
    assert split_evenly(reply, size) == ("", reply)
    assert split_text(reply)[:2] == ("", reply)


def test_only_the_first_reply_of_a_template_that_opens_the_thought_is_taken_back() -> None:
    first = ThoughtSplitter()
    shown = [first.feed(piece) for piece in ("Okay, ", "they greet.", "\n</think>\n\n", "Hello!")]
    assert [piece.text for piece in shown[:2]] == ["Okay, ", "they greet."]
    assert shown[2] == Piece("Okay, they greet.\n", "", restarts=True)
    following = ThoughtSplitter(first.opened)
    pieces = [following.feed(piece) for piece in ("Okay.", "\n</think>\n\n", "Hello!")]
    assert pieces == [Piece("Okay."), Piece("\n"), Piece(text="Hello!")]
    assert following.opened == "</think>"


def test_a_reply_without_a_thought_is_the_answer_also_where_one_was_expected() -> None:
    splitter = ThoughtSplitter("</think>")
    assert splitter.feed("Hello!") == Piece("Hello!")
    assert splitter.end() == Piece(text="Hello!")
    assert splitter.opened == ""
    cut = ThoughtSplitter("</think>")
    cut.feed("Okay, they")
    assert cut.end(is_cut=True).text == ""


@pytest.mark.parametrize("family", FAMILIES)
def test_written_calls_are_no_thoughts(family: str) -> None:
    text, _ = FAMILIES[family]
    assert split_evenly(text, 3)[1] == split_text(text).text
    assert "get_weather" not in split_text(text).thought


def test_plain_text_is_not_held_back() -> None:
    splitter = ThoughtSplitter()
    assert [splitter.feed(piece).text for piece in ("Hello", ", see [1]", " a <b>", " and")] == [
        "Hello", ", see [1]", " a <b>", " and",
    ]  # fmt: skip


def test_a_long_reply_full_of_tags_is_read_in_linear_time() -> None:
    reply = "Write `</think>` and `<|im_end|>` so. " * 20_000
    assert split_text(reply).text == reply


def make_request(*messages: JsonObject) -> ModelRequest:
    return ModelRequest("m", messages or ({"role": "user", "content": "Greet me"},), "completion")


def read_stream(memory: ThoughtMemory, request: ModelRequest, *texts: str, finish: str = "stop") -> ModelReply:
    """The reply that a stream of these texts forms, as a run reads it."""
    splitter, streamed = memory.begin(request), StreamedReply(request.model)
    for chunk in (*map(ModelChunk, texts), ModelChunk(finish_reason=finish)):
        streamed.add_chunk(splitter.split(chunk))
    if (rest := splitter.end()) is not None:
        streamed.add_chunk(rest)
    memory.learn(request, splitter)
    return streamed.build_reply()


@pytest.mark.parametrize("finish", ["length", "content_filter", "abort"])
def test_a_thought_that_is_cut_never_becomes_the_answer(finish: str) -> None:
    memory = ThoughtMemory()
    first = read_stream(memory, make_request(), "Okay, they greet.", "\n</think>\n\n", "Hello!")
    assert (first.text, first.reasoning) == ("Hello!", "Okay, they greet.\n")
    for _ in range(2):
        cut = read_stream(memory, make_request(), "Okay, ", "they gre", finish=finish)
        assert (cut.text, cut.reasoning) == ("", "Okay, they gre")
        whole = memory.split_reply(make_request(), ModelReply("Okay, they gre", "m", finish, ONE_CALL))
        assert (whole.text, whole.reasoning) == ("", "Okay, they gre")
    following = read_stream(memory, make_request(), "Hello!")
    assert following.text == "Hello!"


@pytest.mark.parametrize(
    ("reasoning", "text", "expected"),
    [
        ("", "<think>\n\n</think>\n\nHello!", False),
        ("", "<think></thi", False),
        ("", "<think>\n", False),
        ("\n\n", "Hello!", False),
        ("", "Hello!", False),
        ("", "\n<think>\nThey greet.", True),
        ("They greet.", "Hello!", True),
    ],
)
def test_an_empty_thought_is_none(reasoning: str, text: str, *, expected: bool) -> None:
    assert has_thoughts(reasoning, text) is expected
    reader = ChunkReader("http://model")
    deltas = [{"reasoning_content": reasoning}, *({"content": piece} for piece in text)]
    list(reader.read({"choices": [{"index": 0, "delta": delta}]} for delta in deltas))
    assert reader.has_thoughts is expected


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("eos_token_id", "stop"),
        ("stop_str", "stop"),
        ("stopped_eos", "stop"),
        ("FinishReason.STOP", "stop"),
        ("FINISH_REASON_STOP", "stop"),
        ("EndTurn", "stop"),
        ("FinishReason.MAX_TOKENS", "length"),
        ("stopped_limit", "length"),
        ("maxTokens", "length"),
        ("FinishReason.SAFETY", "content_filter"),
    ],
)
def test_names_of_ends_are_read_in_every_style(reason: str, expected: str) -> None:
    assert read_end(reason) == (expected, "")
    assert read_finish_reason(reason) == expected


@pytest.mark.parametrize("reason", ["abort", "network_error", "FinishReason.OTHER", "timeout"])
def test_an_end_that_no_name_calls_good_is_an_interruption(reason: str) -> None:
    assert read_end(reason) == ("length", reason.lower())


MENTIONS = [
    "The tokens:\n- **<|im_start|>**: begins a turn.\n- **<|im_end|>**: ends it.",
    "The tokens:\n\n- <|im_start|>\n- <|im_end|>\nDone.",
    "- <|im_start|>\n- <|im_end|>",
    "1. <|im_start|>\n2. <|im_end|>\nDone.",
    "> <|im_start|>\n> begins a turn.",
    "| Token | Use |\n|---|---|\n| <|im_start|> | begins |\n|<|im_end|>|ends|\n",
    "The template:\n\n    <|im_start|>user\n    Hi<|im_end|>\n\nThat is all.",
    "Gemma writes <start_of_turn>user before a question.",
    "Gemma ends its turn with <end_of_turn>",
    "Gemma ends its turn with <end_of_turn>\nand begins the next one.",
    "Qwen ends its thought with </think>\nThen comes the answer.",
    "Qwen ends its thought with </think>",
    "It closes with **</think>**, then it answers.",
    "It closes the thought at once:</think>, or never.",
    "Tokens:\n<|im_start|>\n<|im_end|>\nDone.",
    "<|im_start|> begins a turn, and\n<|im_end|> ends it.",
    "<|im_start|>: the beginning",
    "The format:\n<start_of_turn>user\nHi<end_of_turn>\n<start_of_turn>model\nand so on.",
    "The closing tag is </answer>",
    "\u7d42\u4e86\u7b26\u662f<|im_end|>\u3002\u7136\u5f8c\u7e7c\u7e8c",
]
LEAKED_ENDS = [
    ("**Hello!**<|im_end|>\n<|im_start|>user\nMore!", "**Hello!**"),
    ("**Hello!**<|im_end|>", "**Hello!**"),
    ("<b>Hello!</b><|im_end|>\n", "<b>Hello!</b>"),
    ("Hello!\n<|im_end|>\n<|im_start|>user\nMore!", "Hello!\n"),
    ("Hello!\n<|im_start|>user\nMore!", "Hello!\n"),
    ("Hello! <|im_end|>", "Hello! "),
    ("Yes <|im_end|>", "Yes "),
    ("Hello!<|im_end|>\n<|endoftext|>", "Hello!"),
    ("Hello!<|endoftext|>Human: More!", "Hello!"),
    ("Hello World <|im_end|>\n<|im_start|>user\nMore!", "Hello World "),
    ("- one\n- two<|im_end|>\n<|im_start|>user\n", "- one\n- two"),
    ("- one\n    - two<|im_end|>", "- one\n    - two"),
    ("Run:\n\n    print(1)<|im_end|>", "Run:\n\n    print(1)"),
    ("| a | b |\n|---|---|\n| 1 | 2 |<|eot_id|>", "| a | b |\n|---|---|\n| 1 | 2 |"),
    ("See https://example.org/<|im_end|>", "See https://example.org/"),
    ("Hello!\n<|user|>\nMore!", "Hello!\n"),
    ("Yes</s>", "Yes"),
]
OPENED_IN_THE_PROMPT = [
    ("They greet. So the answer is:</think>\n\nHello!", "Hello!"),
    ("They greet.\n\nWait, so:\n</think>\n\nHello!", "Hello!"),
    ("- They greet\n- and wait\n</think>\nHello!", "Hello!"),
    ("They greet.</think>**Hello!**", "**Hello!**"),
    ("They greet. </think>\n\nHello!", "Hello!"),
    ('They greet.</think>"Hello!"', '"Hello!"'),
]


@pytest.mark.parametrize("size", [1, 3, 1_000])
@pytest.mark.parametrize("reply", MENTIONS)
def test_an_answer_that_mentions_tokens_loses_nothing(reply: str, size: int) -> None:
    assert split_evenly(reply, size) == ("", reply)
    assert split_text(reply)[:2] == ("", reply)


@pytest.mark.parametrize("size", [1, 3, 1_000])
@pytest.mark.parametrize(("reply", "text"), LEAKED_ENDS + OPENED_IN_THE_PROMPT)
def test_what_is_leaked_is_taken_off_an_answer_of_any_markup(reply: str, text: str, size: int) -> None:
    assert split_evenly(reply, size)[1] == text
    assert split_text(reply).text == text


def test_many_lines_and_spaces_around_tokens_are_read_in_linear_time() -> None:
    reply = "The tokens:\n" + "<|im_end|>\n" * 20_000 + "are many."
    assert split_text(reply).text == reply
    pieces = ["Hello to <|im_end|>", *["\n"] * 20_000, "More"]
    assert split(*pieces)[1].startswith("Hello to ")


ASKED = {
    "a format": ("Write <reasoning> and <answer>", "<reasoning>2+2</reasoning>\n<answer>4</answer>"),
    "a beginning": ("Begin the poem with <thought>", "<thought>The poem begins."),
    "an end": ("End with </answer>", "4</answer>"),
    "an example": ("Where is <|im_end|> written?", "So: Hi<|im_end|>\n<|im_start|>user\nMore, and so on."),
}  # fmt: skip


@pytest.mark.parametrize("name", ASKED)
def test_tags_that_the_request_holds_belong_to_the_answer(name: str) -> None:
    question, answer = ASKED[name]
    messages: list[JsonObject] = [
        {"role": "user", "content": question},
        {"role": "system", "content": [{"type": "text", "text": question}]},
    ]
    for message in messages:
        request, memory = make_request(message), ThoughtMemory()
        streamed = read_stream(memory, request, *answer)
        assert (streamed.text, streamed.reasoning) == (answer, "")
        whole = memory.split_reply(request, ModelReply(answer, "m", "stop", ONE_CALL))
        assert (whole.text, whole.reasoning) == (answer, "")


def test_the_tags_of_a_model_that_thinks_are_thoughts_also_where_the_request_holds_them() -> None:
    memory, reply = ThoughtMemory(), "<think>They ask.</think>It is a tag."
    assert read_stream(memory, make_request(), *reply).text == "It is a tag."
    asked = make_request({"role": "user", "content": "What does <think> mean?"})
    assert read_stream(memory, asked, *reply).text == "It is a tag."
    assert memory.split_reply(asked, ModelReply(reply, "m", "stop", ONE_CALL)).text == "It is a tag."
    leaked = make_request({"role": "assistant", "content": reply}, {"role": "user", "content": "And now?"})
    assert read_stream(ThoughtMemory(), leaked, *reply).text == "It is a tag."
    decision = replace(asked, purpose="planner")
    assert read_stream(ThoughtMemory(), decision, *reply).text == "It is a tag."


@pytest.mark.parametrize(
    "reply",
    [
        "    </think>\n```\n!",
        "    x = 1</think>\n\nThen",
        "(**</think>\n</s><start_of_turn>model\n<user",
        "Hello</think>\n</s>",
        "Hello <|im_end|> \n</s> x",
    ],
)
def test_a_stream_is_split_like_the_whole_reply(reply: str) -> None:
    whole = split_text(reply)[:2]
    assert [split_evenly(reply, size) for size in range(1, len(reply))] == [whole] * (len(reply) - 1)
