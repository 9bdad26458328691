"""Twelve sentences about one page of a handbook, true and false, and a question about what it does not say.

The meaning is judged by a scripted model over HTTP, by none, and in an answer without any model.
"""

from typing import Any, NamedTuple

import httpx
import pytest

from agent.answers.evidence import NOT_IN_DOCUMENTS
from tests.integration.conftest import Serve
from tests.support.script import Script, entails, says, script
from tests.support.scripted_server import ScriptedServer

PAGE = """# Annual leave

Every employee is entitled to 25 days of paid annual holiday per calendar year. Requests are entered in the HR portal
at least two weeks in advance, and managers approve leave within five working days. Unused days can be carried over
until 31 March of the following year; after that date they expire without payment.
"""
HOTELS = """# Hotel policy

Hotels may cost up to 140 euros a night. Bookings of more than 5 days need the approval of a manager. Receipts are
handed in within 30 days.
"""
QUESTION = "How many days of annual holiday do employees have, who approves them, and can they be carried over?"
VACATION = "How many vacation days do I get?"
UNCHECKED = "Only figures and quotations were checked, not the meaning."
LEFT_OUT = "What the documents do not support was left out ({})."


class Probe(NamedTuple):
    """A sentence, the verdict on its meaning, and the words of the page that the verdict rests on."""

    text: str
    verdict: str
    words: str = ""

    @property
    def is_true(self) -> bool:
        return self.verdict == "supported"

    @property
    def is_wrong_by_rule(self) -> bool:
        """Whether a figure or date of it stands nowhere on the page: no model is asked."""
        return not self.verdict


PROBES = (
    Probe("Employees have 25 days of unpaid holiday per year.", "contradicted", "25 days of paid annual holiday"),
    Probe("Managers never approve leave.", "contradicted", "managers approve leave"),
    Probe("Unused days cannot be carried over.", "contradicted", "Unused days can be carried over"),
    Probe("Contractors are entitled to paid holiday as well.", "not_said"),
    Probe("Requests may be made on the first day of the leave.", "contradicted", "at least two weeks in advance"),
    Probe("Every employee is entitled to 28 days of paid annual holiday.", ""),
    Probe("Unused days can be carried over until 31 May of the following year.", ""),
    Probe(
        "Leftover days move to the next year until the end of March.", "supported", "Unused days can be carried over"
    ),
    Probe("It is the manager who signs off on holiday requests.", "supported", "managers approve leave"),
    Probe("Staff get twenty-five paid days off each year.", "supported", "25 days of paid annual holiday"),
    Probe("A request has to go into the HR portal two weeks ahead.", "supported", "entered in the HR portal"),
    Probe("Days not taken by 31 March lapse, and no money is paid.", "supported", "they expire without payment"),
)
REPLY = " ".join(f"{one.text[:-1]} [1]." for one in PROBES)


def writes(*rules: Any) -> Script:
    """A model that writes all twelve, and gives up those that it is asked to write again."""
    again = says("\n".join(f"{number}. -" for number in range(1, 13)), to="completion", about="do not stand")
    return script(again, says(REPLY, to="completion"), *rules)


async def ask(url: str, page: str, question: str) -> dict[str, Any]:
    """The answer of the room `knowledge` after this page was uploaded."""
    async with httpx.AsyncClient(base_url=url, timeout=60) as client:
        sent = await client.post("/v1/documents", files={"file": ("page.md", page.encode())})
        assert sent.status_code == 201, sent.text
        asked = {"model": "knowledge", "messages": [{"role": "user", "content": question}]}
        answer = await client.post("/v1/chat/completions", json=asked)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found


def read_text(answer: dict[str, Any]) -> str:
    text: str = answer["choices"][0]["message"]["content"]
    return text


def list_kept(text: str) -> list[Probe]:
    """The probes that an answer holds."""
    return [one for one in PROBES if one.text[:-1] in text]


@pytest.mark.row("S003-48")
async def test_an_answer_that_rests_on_nothing_is_written_strictly_once_and_then_not_given(
    serve: Serve, model_server: ScriptedServer
) -> None:
    invented = says("Managers never approve leave [1].", to="completion")
    async with serve(script(invented, entails(("contradicted", "managers approve leave")))) as url:
        answer = await ask(url, PAGE, QUESTION)
    assert read_text(answer) == "I don't know."
    first, again = [one for one in model_server.requests() if one["purpose"] == "completion"]
    assert "do not stand" not in str(first["body"]["messages"])
    assert "do not stand" in str(again["body"]["messages"]), "the second time under a stricter instruction"
    failed = [one["detail"] for one in answer["steps"] if one["type"] == "tailor"]
    assert [one["action"] for one in failed] == ["retry_strict", "say_not_in_documents"]
    assert {one["error_code"] for one in failed} == {"ERR_TAILOR_HALLUCINATION"}


@pytest.mark.row("S003-28")
async def test_of_twelve_sentences_the_five_true_ones_are_kept(serve: Serve, model_server: ScriptedServer) -> None:
    verdicts = [(one.verdict, *filter(None, [one.words])) for one in PROBES if not one.is_wrong_by_rule]
    async with serve(writes(entails(*verdicts))) as url:
        answer = await ask(url, PAGE, QUESTION)
    text = read_text(answer)
    assert list_kept(text) == [one for one in PROBES if one.is_true]
    assert text.endswith(LEFT_OUT.format(7))
    quotes = [quote for source in answer["stepgate"]["sources"] for quote in source["quotes"]]
    assert all(any(one.words in quote.replace("\n", " ") for quote in quotes) for one in PROBES if one.is_true)
    (check,) = [one for one in model_server.requests() if one["purpose"] == "entailment"]
    asked = check["body"]["messages"][1]["content"]
    assert asked.count("<claim ") == len(verdicts), "wrong figures are no question of meaning"
    assert check["body"]["model"] == "small"


async def test_without_a_check_of_the_meaning_only_wrong_figures_are_left_out_and_the_answer_says_so(
    serve: Serve,
) -> None:
    async with serve(writes(says("I cannot judge that.", to="entailment"))) as url:
        text = read_text(await ask(url, PAGE, QUESTION))
    assert list_kept(text) == [one for one in PROBES if not one.is_wrong_by_rule]
    assert text.endswith(f"{LEFT_OUT.format(2)} {UNCHECKED}")


@pytest.mark.row("S003-29")
async def test_without_a_model_the_page_speaks_for_itself(serve: Serve) -> None:
    async with serve(None) as url:
        text = read_text(await ask(url, PAGE, QUESTION))
    assert list_kept(text) == []
    quoted = [line.removeprefix("> ").removesuffix(" [1]") for line in text.splitlines() if line.startswith("> ")]
    assert quoted
    assert all(line in " ".join(PAGE.split()) for line in quoted), "nothing but the words of the page"


@pytest.mark.row("S003-29")
@pytest.mark.parametrize("with_model", [True, False])
async def test_vacation_is_not_answered_from_a_hotel_policy(
    serve: Serve, model_server: ScriptedServer, *, with_model: bool
) -> None:
    model = script(says("You get 30 days of vacation [1].", to="completion"), entails(("supported", "30 days")))
    async with serve(model if with_model else None) as url:
        answer = await ask(url, HOTELS, VACATION)
    assert read_text(answer).startswith(NOT_IN_DOCUMENTS)
    assert not any(figure in read_text(answer) for figure in ("140", "30", "5 days"))
    assert answer["stepgate"]["sources"] == []
    if with_model:
        assert not {one["purpose"] for one in model_server.requests()} & {"completion", "entailment"}
