"""Types of settings that are read in the same way wherever they occur."""

import json
import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator
from pydantic_settings import NoDecode

_IPV6_LITERAL = re.compile(r"\s*\[[0-9a-fA-F]*:[^],]*\]")
"""An IPv6 address in brackets, as in `[::1]`."""


def _split_list(value: object) -> object:
    if not isinstance(value, str):
        return value
    if value.lstrip().startswith("["):  # a JSON list, as other programs expect
        try:
            return json.loads(value)
        except ValueError:
            if _IPV6_LITERAL.match(value) is None:
                raise ValueError("is not a JSON list; separate the items by commas, without brackets") from None
    return tuple(part.strip() for part in value.split(",") if part.strip())


def _check_http_url(value: str) -> str:
    if not value.startswith(("http://", "https://")):
        raise ValueError("must begin with http:// or https://")
    return value.rstrip("/")


HomePath = Annotated[Path, AfterValidator(Path.expanduser)]
"""A path that may begin with `~`."""
HttpUrl = Annotated[str, AfterValidator(_check_http_url)]
NameList = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split_list)]
PathList = Annotated[tuple[HomePath, ...], NoDecode, BeforeValidator(_split_list)]
WorkMode = Literal["auto", "llm", "rules"]
