"""What a model thinks is taken out of its answer, wherever the pieces of a stream are cut."""

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
