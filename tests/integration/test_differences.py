"""docs/differences.md: every address that it names is one of this gateway."""

import re
from pathlib import Path

import httpx

from tests.integration.conftest import Serve
from tests.requirements import DEVIATIONS

PAGE = Path(__file__).parents[2] / "docs" / "differences.md"


async def test_every_address_of_the_page_is_served(serve: Serve) -> None:
    text = PAGE.read_text("utf-8")
    here = [line.split("|")[2] for line in text.splitlines() if line.startswith("| ") and "---" not in line]
    named = {(method, path) for cell in here for method, path in re.findall(r"(GET|POST) (/[\w/{}-]+)", cell)}
    assert len(named) >= 4
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        for method, path in named:
            address = path.replace("{id}", "none").replace("{user_id}", "u").replace("{session_id}", "s")
            response = await client.request(method, address, json={} if method == "POST" else None)
            assert response.status_code not in (405, 501), (method, path)
            if response.status_code == 404:
                assert response.json()["error"]["message"] != "Not Found", (method, path)
                assert "no such" not in response.json()["error"]["message"].lower(), (method, path)


def test_the_page_names_the_recorded_deviations() -> None:
    text = PAGE.read_text("utf-8")
    assert [row for row in DEVIATIONS if row not in text] == []
