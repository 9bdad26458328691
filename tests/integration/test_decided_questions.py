"""A decision is about the question that it was sent for: sent twice, it does not approve what is asked next."""

from pathlib import Path
from typing import Any

import pytest
from a2a.helpers.proto_helpers import get_message_text
from a2a.types.a2a_pb2 import TaskState
from a2a.utils.errors import UnsupportedOperationError

from tests.integration.test_a2a import asking, connected, send
from tests.integration.test_history_labels import bank
from tests.support.script import Rule, plans

__all__ = ["bank"]

PAY = "Pay what the page says"


def asks_twice() -> Rule:
    """A plan that is asked about as a whole, and then once more for a change with what was read."""
    return plans(
        {"tool": "srv__read_page", "inputs": {"url": "https://bank.example"}},
        {"tool": "srv__send_mail", "inputs": {"to": "$s1"}, "depends_on": ["s1"]},
        {"tool": "completion"},
        about=PAY,
    )


@pytest.fixture
def careful(tmp_path: Path) -> dict[str, Any]:
    rooms = tmp_path / "rooms"
    rooms.mkdir()
    (rooms / "careful.yaml").write_text("approval: always\nsupervision: checks\nmemory: false\n")
    return {"rooms_dir": rooms}


async def test_an_approval_sent_twice_over_a2a_does_not_approve_the_next_question(
    bank: Any, careful: dict[str, Any]
) -> None:
    async with (
        bank(asks_twice(), **careful) as it,
        connected(str(it.client.base_url).rstrip("/"), streaming=False) as client,
    ):
        first = await send(client, asking(PAY, room="careful"))
        approve = asking("approve", task_id=first.id)
        second = await send(client, approve)
        assert second.status.state == TaskState.TASK_STATE_INPUT_REQUIRED
        with pytest.raises(UnsupportedOperationError, match="approve apr_"):
            await send(client, approve)
        assert it.effects == []
        named = get_message_text(second.status.message).rpartition("send: `")[2].removesuffix("`")
        assert named.startswith("approve apr_")
        wrong = asking(f"approve apr_{'0' * 32}", task_id=first.id)
        with pytest.raises(UnsupportedOperationError, match="no longer open"):
            await send(client, wrong)
        assert it.effects == []
        third = await send(client, asking(named, task_id=first.id))
        assert third.status.state == TaskState.TASK_STATE_COMPLETED
        assert len(it.effects) == 1


async def test_words_to_a_response_answer_what_that_response_has_asked(bank: Any, careful: dict[str, Any]) -> None:
    async with bank(asks_twice(), **careful) as it:

        async def respond(words: str, previous: str | None = None) -> Any:
            body = {"model": "careful", "input": words, "previous_response_id": previous}
            return await it.client.post("/v1/responses", json=body)

        first = (await respond(PAY)).json()
        second = (await respond("approve", first["id"])).json()
        assert "mcp_approval_request" in str(second["output"])
        again = await respond("approve", first["id"])
        assert (again.status_code, again.json()["error"]["code"]) == (400, "approval_decided")
        assert it.effects == []
        assert (await respond("approve", second["id"])).is_success
        assert len(it.effects) == 1
