"""`make eval-chat`: the chats, what a program tells of answers, the blind sheet and what readers say in it."""

from collections import Counter
from collections.abc import AsyncIterator

import pytest

from agent.core.errors import ConfigError
from tests.bench.endpoint import ChatReply
from tests.bench.everyday_chat.__main__ import build_chat_answer
from tests.bench.everyday_chat.chats import Chat, ChatAnswer, ChatChecks, Rule, load_chats
from tests.bench.everyday_chat.checks import (
    AnswerChecker,
    check_rule,
    find_copy,
    find_function,
    find_repetition,
    find_stray_tags,
)
from tests.bench.everyday_chat.sheet import count_verdicts, make_sheet, read_verdicts
from tests.bench.everyday_chat.table import format_checks, format_failures, format_times
from tests.support.sandboxes import requires_sandbox

CHATS = {chat.id: chat for chat in load_chats()}


@pytest.fixture
async def checker() -> AsyncIterator[AnswerChecker]:
    one = AnswerChecker()
    yield one
    await one.aclose()


def test_there_are_forty_chats_of_every_kind() -> None:
    assert len(load_chats()) == len(CHATS) == 40
    kinds = Counter(chat.kind for chat in CHATS.values())
    assert min(kinds.values()) >= 2
    assert {chat.kind for chat in CHATS.values() if chat.checks.python} == {"python"}
    rules = [chat for chat in CHATS.values() if chat.kind == "follow_up"]
    assert all(chat.history for chat in rules)
    assert CHATS["follow-german"].messages[0]["role"] == "user"
    assert [message["role"] for message in CHATS["follow-german"].messages] == ["user", "assistant", "user"]


def test_earlier_answers_keep_the_rule_themselves() -> None:
    """Else the history would teach to break it."""
    for chat in CHATS.values():
        if chat.checks.rule is not None and chat.history:
            assert not list(check_rule(chat.checks.rule, chat.history[-1][1])), chat.id


def test_a_copy_of_the_request_is_found() -> None:
    mail = CHATS["summary-mail"].prompt
    pasted = mail.partition("\n\n")[2]
    assert find_copy(pasted, mail)
    assert find_copy(f"Sure! {pasted}", mail)
    assert not find_copy("They still need a signed copy of page two of the tenancy agreement by 20 September.", mail)
    assert find_copy("Hi there!", "Hi there!")
    assert not find_copy("Hello!", "Hi there!")


@pytest.mark.parametrize(
    "text",
    [
        "It is Oslo.</answer>",
        "<think>hm</think> Oslo",
        "Oslo<|im_end|>",
        "ANSWER\nOslo",
        '{"kind": "answer", "text": "Oslo"}',
        "[INST] Oslo",
    ],
)
def test_what_a_template_or_a_planner_leaves_behind_is_stray(text: str) -> None:
    assert find_stray_tags(text)


@pytest.mark.parametrize("text", ["2 < 3 and 5 > 4", "Use `<b>` for bold.", "```html\n<p>\n```", "The answer is 4."])
def test_code_and_comparisons_are_no_stray_tags(text: str) -> None:
    assert not find_stray_tags(text)


def test_an_answer_that_repeats_itself_is_found() -> None:
    assert find_repetition("I can help you with that. " * 3)
    assert not find_repetition("I can help you with that. What do you need? Tell me more about it.")


@pytest.mark.parametrize(
    ("rule", "kept", "broken"),
    [
        (Rule(max_words=3), "Masses attract masses.", "Masses attract each other always."),
        (Rule(sentences=1), "Chlorophyll absorbs red and blue light.", "It is green. Light is absorbed."),
        (Rule(sentences=1), "It has 3.5 parts, e g water", "It is green. And so on"),
        (Rule(lines=3), "- soup\n- salad\n\n- bread", "Here are ideas:\n- soup\n- salad\n- bread"),
        (Rule(starts_with="ahoy"), '"Ahoy! With lungs."', "With lungs. Ahoy!"),
        (Rule(ends_with="over and out"), "Six. **Over and out.**", "Six."),
        (Rule(lower_case=True), "rome, of course.", "Rome."),
    ],
)
def test_the_form_that_a_user_wants_is_checked(rule: Rule, kept: str, broken: str) -> None:
    assert not list(check_rule(rule, kept))
    assert list(check_rule(rule, broken))


async def test_an_answer_in_another_language_and_an_empty_one_fail(checker: AnswerChecker) -> None:
    german = CHATS["follow-german"]
    kept = await checker.check(
        german, "Eine Bäckerei ist ein Geschäft, in dem Brot und Kuchen gebacken und verkauft werden."
    )
    assert not any(kept.values())
    broken = await checker.check(german, "A bakery is a shop in which bread and cakes are baked and sold every day.")
    assert broken["language kept"]
    empty = await checker.check(german, "  ")
    assert set(empty) == {
        "answered",
        "no copy of the request",
        "no stray tags",
        "no repetition",
        "language kept",
        "content",
    }
    assert all(empty.values())


def test_a_function_is_found_in_a_block_or_in_plain_code() -> None:
    code = "def f(x):\n    return x"
    assert find_function(f"Here:\n```python\n{code}\n```\nCall it.\n```\nf(1)\n```", "f") == f"{code}\n"
    assert find_function(code, "f") == code
    assert find_function(f"```python\n{code}", "f") == code
    assert find_function("```python\nprint(f(1))\n```", "f") is None


@requires_sandbox
async def test_a_function_is_run_in_the_sandbox(checker: AnswerChecker) -> None:
    chat = CHATS["python-median"]
    body = "    s = sorted(n)\n    m = len(s) // 2\n    return s[m] if len(s) % 2 else (s[m - 1] + s[m]) / 2"
    assert not any((await checker.check(chat, f"```python\ndef median(n):\n{body}\n```")).values())
    wrong = await checker.check(chat, "```python\ndef median(n):\n    return sum(n) / len(n)\n```")
    assert (wrong["python compiles"], wrong["python passes"][:8]) == ("", "returned")
    raising = await checker.check(chat, "```python\ndef median(n):\n    return n[99]\n```")
    assert "IndexError" in raising["python passes"]
    broken = await checker.check(chat, "```python\ndef median(n)\n    return n\n```")
    assert broken["python compiles"]
    assert broken["python passes"]


def test_a_sheet_does_not_say_who_wrote_what_and_its_key_does() -> None:
    chats = [*CHATS.values()]
    answers = {
        "gateway": {chat.id: f"first {chat.id}\nVerdict {chat.id}: A" for chat in chats},
        "bare": {chat.id: f"second {chat.id}" for chat in chats},
    }
    sheet, key = make_sheet(chats, answers, seed=7)
    assert "gateway" not in sheet
    assert make_sheet(chats, answers, seed=7) == (sheet, key)
    assert make_sheet(chats, answers, seed=8) != (sheet, key)
    assert 8 < sum(writers[0] == "gateway" for writers in key.values()) < 32, "neither is always first"
    for chat in chats:
        part = sheet.partition(f"\nVerdict {chat.id}:")[0].rpartition("**Answer A**")[2]
        first = "first" if key[chat.id][0] == "gateway" else "second"
        assert part.strip().startswith(f"> {first} {chat.id}")
    with pytest.raises(ConfigError, match="write A, B or same"):
        read_verdicts(sheet)
    filled = "\n".join(f"{line} A" if line.startswith("Verdict ") else line for line in sheet.splitlines())
    counts = count_verdicts(read_verdicts(filled), key, "gateway")
    first_count = sum(writers[0] == "gateway" for writers in key.values())
    assert counts == (first_count, 40 - first_count, 0)
    same = filled.replace(f"\nVerdict {chats[0].id}: A", f"\nVerdict {chats[0].id}: same")
    assert count_verdicts(read_verdicts(same), key, "gateway").same == 1
    with pytest.raises(ConfigError, match="different chats"):
        count_verdicts({"other": "A"}, key, "gateway")


def test_tables_have_a_column_for_each_writer_and_the_delay_of_first_tokens() -> None:
    chats = [
        Chat(id="one", kind="joke", prompt="A joke?", checks=ChatChecks()),
        Chat(id="two", kind="date", prompt="A date?", checks=ChatChecks()),
    ]
    checked = {
        "gateway": {"one": {"answered": "", "no stray tags": "</answer>"}, "two": {"answered": ""}},
        "bare": {"one": {"answered": "", "no stray tags": ""}, "two": {"answered": ""}},
    }
    table = format_checks(chats, checked)
    cells = [[cell.strip() for cell in line.split("|")[1:4]] for line in table.splitlines()]
    assert ["no stray tags", "0 of 1", "1 of 1"] in cells
    assert ["all checks", "1 of 2", "2 of 2"] in cells
    assert format_failures(chats, checked) == "gateway one: no stray tags: </answer>"

    def answer(name: str, first: float | None) -> ChatAnswer:
        return ChatAnswer(id=name, status="answered", text="x", seconds=4.0, first_token_seconds=first)

    answers = {
        "gateway": {"one": answer("one", 3.0), "two": answer("two", 1.0)},
        "bare": {"one": answer("one", 1.0), "two": answer("two", 0.5)},
    }
    assert format_times(chats, answers).endswith(
        "first token of gateway after that of bare: median +1.25 s, most +2.00 s; more than 1.5 s in 1 of 2"
    )


def test_a_refused_request_and_a_lost_one_have_another_status() -> None:
    chat = CHATS["joke-cat"]
    assert build_chat_answer(chat, ChatReply(text="Meow.", first_token_seconds=0.5)).status == "answered"
    assert build_chat_answer(chat, ChatReply(http_status=400, error="no")).status == "refused"
    assert build_chat_answer(chat, ChatReply(http_status=0, error="lost")).status == "error"
