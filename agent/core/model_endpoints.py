"""`ModelEndpoint`: a further endpoint for models, as `AGENT_MODEL_ENDPOINTS` names it."""

import os
import re
from collections.abc import Mapping
from typing import Annotated, Final

from dotenv import dotenv_values
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr, model_validator

from agent.core.authorities import check_http_url
from agent.core.models import JsonObject

NAME: Final = re.compile(r"[a-z][a-z0-9_-]{0,31}")

_OWN_FIELDS: Final = frozenset({"model", "messages", "n", "response_format", "stream", "stream_options", "tools"})


def _check_extra_body(value: JsonObject) -> JsonObject:
    if own := sorted(_OWN_FIELDS & value.keys()):
        raise ValueError(f"{', '.join(own)}: these fields are the gateway's own; leave them out")
    return value


ExtraBody = Annotated[JsonObject, AfterValidator(_check_extra_body)]
"""Further fields of every request to an endpoint, such as `chat_template_kwargs`. They win over the gateway's."""


class ModelEndpoint(BaseModel):
    """An OpenAI-compatible endpoint. `api_key` is read from the variable `key` when the settings are loaded."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    base_url: Annotated[str, AfterValidator(check_http_url)]
    key: str | None = Field(default=None, description="name of the environment variable with the bearer key")
    cache_markers: bool = Field(
        default=False, description="mark the instructions with `cache_control`, for providers that cache on demand"
    )
    extra_body: ExtraBody = Field(default={}, description="further fields of every request")
    api_key: SecretStr | None = Field(default=None, exclude=True, repr=False)

    @model_validator(mode="before")
    @classmethod
    def _refuse_inline_key(cls, data: object) -> object:
        if isinstance(data, dict) and "api_key" in data:
            raise ValueError("name the environment variable with the key as 'key'; the key itself is not written here")
        return data


def read_endpoint_keys(endpoints: Mapping[str, ModelEndpoint]) -> dict[str, ModelEndpoint]:
    """The endpoints with their keys, from the environment or else from `.env`.

    Raises `ValueError` for a name that cannot follow an `@`, and for a key that is not set.
    """
    keyed: dict[str, ModelEndpoint] = {}
    for name, endpoint in endpoints.items():
        if not NAME.fullmatch(name):
            raise ValueError(f"the name {name[:40]!r} must consist of a-z, 0-9, _ and -, and begin with a letter")
        key = endpoint.key
        value = os.environ.get(key) or dotenv_values(".env").get(key) if key is not None else None
        if key is not None and not value:
            raise ValueError(f"the key of {name!r} is not set (the variable {key[:80]})")
        keyed[name] = endpoint.model_copy(update={"api_key": SecretStr(value) if value else None})
    return keyed
