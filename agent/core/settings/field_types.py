"""Types of settings that are read in the same way wherever they occur."""

import json
import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator
from pydantic_settings import NoDecode

from agent.core.authorities import check_http_url, format_origin, parse_host_setting

_IPV6_LITERAL = re.compile(r"\s*\[[0-9a-fA-F]*:[^],]*\]")
"""An IPv6 address in brackets, as in `[::1]`."""
_ORIGIN = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#@\\\s]*/?")
"""An origin, also of a scheme whose host is empty or opaque, such as `vscode-webview://1a2b`."""


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


def _map_deterministic(value: object) -> object:
    """The seed's word for `rules`."""
    return "rules" if isinstance(value, str) and value.strip().lower() == "deterministic" else value


def _check_hosts(hosts: tuple[str, ...]) -> tuple[str, ...]:
    for host in hosts:
        if host.startswith(("*", ".")):
            raise ValueError(f"has {host!r}: it takes no patterns; name every host, such as stepgate.example.org")
        if parse_host_setting(host) is None:
            raise ValueError(
                f"has {host!r}, which is not a host name; write it as in stepgate.example.org, without http://"
            )
    return hosts


def _check_origins(origins: tuple[str, ...]) -> tuple[str, ...]:
    """The origins as browsers write them. Those of other schemes than HTTP's are compared as they are."""
    return tuple(map(_check_origin, origins))


def _check_origin(origin: str) -> str:
    if "*" in origin:
        raise ValueError(
            f"has {origin!r}: any web page could then use this gateway; name every origin, such as "
            "https://app.example.org"
        )
    if origin == "null":
        raise ValueError(
            "has 'null', which is what every sandboxed page and local file sends; serve the page and name its address"
        )
    if _ORIGIN.fullmatch(origin) is None:
        raise ValueError(
            f"has {origin!r}, which is not an origin; write it as browsers send it, with its scheme and without a "
            "path: https://app.example.org or http://localhost:5173"
        )
    if not origin.lower().startswith(("http://", "https://")):
        return origin.removesuffix("/") if not origin.endswith("://") else origin
    formatted = format_origin(origin)
    if formatted is None:
        raise ValueError(f"has {origin!r}, whose host is not a host name")
    return formatted


HomePath = Annotated[Path, AfterValidator(Path.expanduser)]
"""A path that may begin with `~`."""
HttpUrl = Annotated[str, AfterValidator(check_http_url)]
NameList = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split_list)]
HostList = Annotated[NameList, AfterValidator(_check_hosts)]
OriginList = Annotated[NameList, AfterValidator(_check_origins)]
PathList = Annotated[tuple[HomePath, ...], NoDecode, BeforeValidator(_split_list)]
WorkMode = Annotated[Literal["auto", "llm", "rules"], BeforeValidator(_map_deterministic)]
