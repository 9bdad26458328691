"""What the route sends of usage has every count that is summed up."""

from datetime import date
from typing import get_args

from agent.core.models import USAGE_COUNTS, Usage
from agent.storage.usage import Dimension, UsageGroup
from gateway.doors.usage_forms import UsageItem, to_usage_item

USAGE = Usage(model_calls=4, prompt_tokens=50, completion_tokens=60, cached_tokens=7, reasoning_tokens=8)
GROUP = UsageGroup((1, "small"), 3, USAGE)
COUNTS = {"runs", *USAGE_COUNTS, "cost_usd"}


def test_the_form_has_the_fields() -> None:
    assert set(UsageItem.model_fields) == COUNTS | set(get_args(Dimension))


def test_a_group_is_sent_with_the_dimensions_that_were_asked_for() -> None:
    item = to_usage_item(GROUP, ("day", "model"))
    assert item.model_fields_set == COUNTS | {"day", "model"}
    assert (item.day, item.model, item.runs, item.reasoning_tokens) == (date(1970, 1, 2), "small", 3, 8)
