"""Bodies whose unknown fields are refused, at doors and in tools alike: nothing here needs HTTP."""

import difflib
from collections.abc import Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ModelWrapValidatorHandler, model_validator

from gateway.render.errors import RequestFormatError

_FOREIGN_FIELD_NAMES = {
    "model": "room",
    "input": "prompt",
    "query": "prompt",
    "question": "prompt",
    "tools": "metadata.tools",
    "tool_calls": "metadata.tool_calls",
}
"""Names that other APIs use for our fields; spelling similarity cannot find these."""


def refuse_unknown_fields(body: Mapping[str, Any], model: type[BaseModel]) -> None:
    """Raises `RequestFormatError` for a top-level field that `model` lacks: a misspelt field must not be ignored."""
    field_names = list(model.model_fields)
    for name in body:
        if name in model.model_fields:
            continue
        excerpt = name[:100]
        near = _FOREIGN_FIELD_NAMES.get(name) or next(iter(difflib.get_close_matches(excerpt, field_names, n=1)), None)
        hint = f"Did you mean '{near}'?" if near else f"The fields are {', '.join(field_names)}."
        raise RequestFormatError(f"Unknown field: '{excerpt}'. {hint}", excerpt, "unknown_parameter")


class StrictBody(BaseModel):
    """A body whose unknown fields are refused, once its known ones are valid."""

    model_config = ConfigDict(json_schema_extra={"additionalProperties": False})

    @model_validator(mode="wrap")
    @classmethod
    def _refuse_unknown(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        body = handler(data)
        if isinstance(data, dict):
            refuse_unknown_fields(data, cls)
        return body
