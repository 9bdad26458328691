"""How slow this machine is today, so that limits of time hold on it as on the one for which they were written."""

import json
from functools import cache
from time import thread_time
from typing import Final

from pydantic import BaseModel, TypeAdapter

_REFERENCE_S: Final = 0.035
"""CPU seconds of the work below on a quick machine."""


class _Row(BaseModel):
    name: str
    number: int


@cache
def get_slowness() -> float:
    """How many times as long this machine takes for the reading and writing of 20,000 objects; 1 at least."""
    rows = TypeAdapter(list[_Row])
    text = json.dumps([{"name": str(number), "number": number} for number in range(20_000)])
    seconds = []
    for _ in range(3):
        begin = thread_time()
        rows.dump_python(rows.validate_json(text))
        json.dumps(json.loads(text), indent=1)
        seconds.append(thread_time() - begin)
    return max(min(seconds) / _REFERENCE_S, 1.0)
