"""The page about planning lists the rules of rounds in their order."""

import re

from agent.planning.rounds.ruled_rounds import RULES
from tests.support.processes import ROOT


def test_the_page_has_every_rule_in_the_order_in_which_they_are_tried() -> None:
    page = (ROOT / "docs" / "planning.md").read_text("utf-8")
    named = re.findall(r"^\| `(list_\w+)` \|", page, re.MULTILINE)
    assert named == [rule.list_calls.__name__ for rule in RULES]
