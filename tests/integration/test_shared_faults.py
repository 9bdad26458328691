"""Shared documents that readers used to read wrongly: sent to `/v1/documents`, asked in `knowledge` without a model."""

from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.integration.conftest import Serve
from tests.support.processes import ROOT

FAULTS = ROOT.parent / "shared" / "data" / "faults"
QUESTIONS = (
    ("apple_inline.eml", "For which day is the crane booked?", "14 March"),
    ("backslash.csv", "What did he say, who said hi?", 'he said "hi", ok'),
    ("button_text.html", "Is a deposit needed?", "300 crowns"),
    ("calendar.eml", "Where is the Audit?", "Quay 3"),
    ("cap_table.html", "What are the opening hours of the north depot on Mon?", "8-16"),
    ("cells_special.docx", "What is the price of Bolt M8?", "12.50"),
    ("deck.pptx", "How many tonnes has South?", "21.4"),
    ("details.html", "Within how many days are returns taken?", "21 days"),
    ("fields.docx", "Which table shall I see, and which city?", "Table 4 and Lisbon"),
    ("fm_hr.md", "What shall I wear near the press?", "gloves"),
    ("header.docx", "What is the contract number?", "KX-2291"),
    ("inline_sdt.docx", "In how many days is Juniper Metals paid?", "45 days"),
    ("junkhead.pdf", "What does the harbour office handle?", "applications for moorings"),
    ("latin.html", "What about Smörgås?", "Smörgås €"),
    ("math.docx", "What is energy in joules?", "E=mc^{2}"),
    ("merged.xlsx", "What had Bergen in 2025 Q2?", "8"),
    ("mixed_html_text.eml", "When does the dredging start?", "3 June"),
    ("moved.docx", "When is the boiler serviced?", "May"),
    ("multipart_nobody.eml", "Which pump leaks?", "pump 6"),
    ("nested_table.docx", "How many Volt?", "230"),
    ("noscript.html", "What is our phone number?", "555-0199"),
    ("notes.docx", "Who measured the density?", "Tromso lab"),
    ("notes.docx", "What does legal want?", "14 days"),
    ("number_formats.xlsx", "What is the rate of Salaries?", "47.5%"),
    ("number_formats.xlsx", "What are the DIRECT COSTS Total of Salaries?", "$310,000"),
    ("preamble.csv", "What is the price of a Nut in the report of March?", "2.5"),
    ("rich.xlsx", "At which gate do we pay before noon?", "gate 3"),
    ("rich.xlsx", "What is the real limit in litres?", "90 litres"),
    ("rot.pdf", "How many litres of Diesel are in the fuel stock?", "400 litres"),
    ("rot_headers.pdf", "How many waste tanks has the South quay?", "3"),
    ("rowspan.html", "What is the price of plan M in zone East?", "20"),
    ("ruby.docx", "東京に行く", "とうきょう"),
    ("side_8_3.pdf", "What does sideways line 2 tell about?", "stamp 2"),
    ("sortkey.html", "What is the area of Elmby?", "27,994"),
    ("textbox.docx", "Which code is boxed in a cell?", "8812"),
    ("textbox.docx", "What is the annual report of?", "Harbour 9"),
    ("tracked.docx", "What is the notice period for tenant Birch?", "90 days"),
    ("tracked.docx", "How much is the deposit in clause 7?", "4100 crowns"),
    ("trunc.pdf", "What is the Qty of Item 12 in the stock list?", "36"),
    ("types.xlsx", "What is the price of code 00007 in the ledger?", "1,234.50 SEK"),
    ("v_accordion.html", "How long is the warranty?", "36 months"),
    ("v_fm_long.md", "What does paragraph 17 tell of?", "bay 17"),
    ("vmerge.docx", "What are the sales of Bergen?", "7"),
)
"""Each file whose text answers a question. `altchunk.docx` holds its text in an embedded document, which is told."""

UNCERTAIN = frozenset({"altchunk.docx", "multipart_nobody.eml", "trunc.pdf"})
"""Files whose reading has to say what is missing or guessed."""

pytestmark = pytest.mark.skipif(not FAULTS.is_dir(), reason=f"the shared documents are not at {FAULTS}")


async def test_each_document_is_read_whole_and_answered_from(serve: Serve) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=120) as client:
        files = {path.name: path.read_bytes() for path in list_files()}
        sent = [await send(client, name, data) for name, data in files.items()]
        lost = [one["name"] for one in sent if one["coverage"] and one["coverage"]["share"] < 0.99]
        assert not lost
        assert not UNCERTAIN.difference(one["name"] for one in sent if one["uncertainties"])
        wrong = []
        for name, question, expected in QUESTIONS:
            found = await ask(client, name, question)
            if expected not in found:
                wrong.append((name, question, found))
        assert not wrong


def list_files() -> list[Path]:
    return sorted(path for path in FAULTS.iterdir() if path.name != "README.md")


async def send(client: httpx.AsyncClient, name: str, content: bytes) -> dict[str, Any]:
    """Each document goes into a collection of its own, for many of them say nearly the same."""
    data = {"collection": find_collection(name)}
    answer = await client.post("/v1/documents", files={"file": (name, content)}, data=data)
    assert answer.status_code in {200, 201}, answer.text
    return {"name": name, "coverage": None, "uncertainties": (), **answer.json()}


async def ask(client: httpx.AsyncClient, name: str, question: str) -> str:
    body = {
        "model": "knowledge",
        "messages": [{"role": "user", "content": question}],
        "metadata": {"collection": find_collection(name)},
    }
    answer = (await client.post("/v1/chat/completions", json=body)).json()
    return str(answer["choices"][0]["message"]["content"])


def find_collection(name: str) -> str:
    return name.lower().replace(".", "-").replace("_", "-")
