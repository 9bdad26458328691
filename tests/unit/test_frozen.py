"""`FrozenModel`: values that do not remember which of their fields were given."""

import pickle

from agent.core.events import Event, RunClaimed
from agent.core.models import AgentRequest, FrozenModel, Usage
from agent.core.models.answer import TraceStep
from agent.runs.trace_lines import TraceLines


def test_values_of_a_kind_share_what_pydantic_keeps_of_their_fields() -> None:
    made = [
        Usage(),
        Usage(model_calls=1),
        Usage.model_validate_json('{"model_calls": 2}'),
        Usage.model_construct(model_calls=3),
    ]
    assert len({id(one.model_fields_set) for one in made}) == 1
    assert made[0].model_fields_set == set(Usage.model_fields)


def test_a_copy_leaves_what_its_kind_shares_as_it_is() -> None:
    copied = Usage(model_calls=1).model_copy(update={"prompt_tokens": 4})
    assert copied == Usage(model_calls=1, prompt_tokens=4)
    assert copied.model_fields_set == Usage().model_fields_set == set(Usage.model_fields)


def test_what_was_left_out_is_written_and_compared_like_what_was_given() -> None:
    class Note(FrozenModel):
        text: str = ""
        tags: tuple[str, ...] = ()

    assert Note() == Note(text="") == Note().model_copy(update={"text": ""})
    assert Note().model_dump(exclude_unset=True) == {"text": "", "tags": ()}
    assert Note(text="x").model_copy(update={"tags": ("a",)}) == Note(text="x", tags=("a",))
    assert Note().model_fields_set == {"text", "tags"}


def test_a_value_that_crosses_processes_stays_itself() -> None:
    request = AgentRequest(prompt="x", metadata={"a": [1]})
    assert pickle.loads(pickle.dumps(request)) == request
    assert AgentRequest.model_validate({"prompt": "x", "later": 1}).prompt == "x", "logs of later versions"


def test_a_line_of_the_trace_is_built_with_all_its_fields_in_their_order() -> None:
    lines = TraceLines()
    lines.add_line(Event("run_1", 1, 1, 0.0, RunClaimed(worker="w")), "notice", "a line")
    (line,) = lines.list_lines()
    assert list(line) == list(TraceStep.model_fields)
    assert TraceStep.model_validate(line) == TraceStep.model_construct(**line)
