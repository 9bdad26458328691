"""What a reply to a question about a call changes in it, where no model reads the reply."""

import pytest

from agent.core.models import JsonObject
from agent.planning.amendments import apply_reply_to_args, explain_pending_call
from agent.tools import PlanHints, ToolAnnotations, ToolSpec
from gateway.features.pipeline_builder.engine.request_commands import PIPELINE_APPLICATION

APPLY = ToolSpec(
    "apply_pipeline", "Make it.", {}, None, ToolAnnotations(read_only=False), tainted=False,
    hints=PlanHints(accepted_wishes="`use the name NAME`", commands=PIPELINE_APPLICATION),
)  # fmt: skip
MAIL = ToolSpec("send_mail", "Send it.", {}, None, ToolAnnotations(read_only=False), tainted=False)
ARGS: JsonObject = {"collection_name": "kelp"}


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("Use the collection name kelp-papers instead", "kelp-papers"),
        ("use the name 'sea.weed'.", "sea.weed"),
        ("please rename it to algae", "algae"),
        ("call it algae", "algae"),
        ("change the name to algae.", "algae"),
        ("put it into algae", "algae"),
        ("apply algae", "algae"),
        ("what will this do?", "kelp"),
        ("do not use the name algae", "kelp"),
        ("use the name of the folder", "kelp"),
        ("hm, I am not sure", "kelp"),
        ("is the name algae free?", "kelp"),
    ],
)
def test_a_name_is_read_off_a_reply(said: str, name: str) -> None:
    assert apply_reply_to_args(APPLY, ARGS, said) == {"collection_name": name}


def test_force_is_taken_only_where_it_is_said() -> None:
    assert apply_reply_to_args(APPLY, ARGS, "apply kelp anyway") == {"collection_name": "kelp", "force": True}


def test_other_tools_are_not_touched_and_every_one_is_explained() -> None:
    assert apply_reply_to_args(MAIL, {"to": "x"}, "use the name y") == {"to": "x"}
    assert "Make it." in explain_pending_call(APPLY)
    assert "use the name NAME" in explain_pending_call(APPLY)
    assert "use the name" not in explain_pending_call(MAIL)
