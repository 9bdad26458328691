"""The native stream's frames: every event under its own name, resumable by its id."""

import json

from agent.core import events as ev
from agent.core.errors import BusyError
from gateway.render.native import build_event_frame, build_failure_frame, build_response_frame
from tests.support.builders import RUN_ID, created, log


def parts(frame: str) -> dict[str, str]:
    assert frame.endswith("\n\n")
    return dict(line.split(": ", 1) for line in frame.removesuffix("\n\n").split("\n"))


def test_an_event_is_sent_under_its_type_with_its_seq_as_id() -> None:
    event = log(created("line one\nline two"))[0]
    frame = parts(build_event_frame(event))
    assert (frame["event"], frame["id"]) == ("run.created", "1")
    data = json.loads(frame["data"])
    assert data == event.to_public_json()
    assert data["data"]["request"]["prompt"] == "line one\nline two"


def test_the_response_comes_under_its_own_name_and_has_no_place_in_the_log() -> None:
    frame = parts(build_response_frame(log(created(), ev.AnswerFinished(text="42"), ev.RunSucceeded())))
    assert frame["event"] == "response"
    assert "id" not in frame
    data = json.loads(frame["data"])
    assert set(data) == {"response", "steps", "metadata"}
    assert (data["response"], data["metadata"]["run_id"]) == ("42", RUN_ID)


def test_a_failure_is_an_event_of_its_own() -> None:
    frame = parts(build_failure_frame(BusyError("the gateway is stopping").to_failure()))
    assert frame["event"] == "error"
    assert json.loads(frame["data"])["error"]["error_code"] == "ERR_BUSY"
