"""Completes what an external server says about itself when it is initialized."""

import re
from typing import Any

from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, LATEST_HANDSHAKE_VERSION

from mcp_tools.client.valid_fields import Validate, is_valid, select_valid_fields

_DATE = re.compile(r"\d{4}-\d\d-\d\d")
"""A version of the protocol. Servers that state another text (`1.0`), or a draft before the first version, know what
all versions have."""


def complete_initialization(result: dict[str, Any], server: str, validate: Validate) -> None:
    """Fills in what an `InitializeResult` lacks, and removes what is invalid, in place. `server` is our name for it."""
    version = result.get("protocolVersion")
    if not isinstance(version, str):
        result["protocolVersion"] = LATEST_HANDSHAKE_VERSION
    elif not _DATE.fullmatch(version) or version < HANDSHAKE_PROTOCOL_VERSIONS[0]:
        result["protocolVersion"] = HANDSHAKE_PROTOCOL_VERSIONS[0]
    names = {"name": server, "version": "unknown"}
    given = result.get("serverInfo")
    info = {**names, **given} if isinstance(given, dict) else names
    capabilities = result.get("capabilities")
    result.update(serverInfo=info, capabilities=capabilities if isinstance(capabilities, dict) else {})
    if is_valid(result, validate):
        return

    def build(**part: Any) -> dict[str, Any]:
        fixed = {"protocolVersion": result["protocolVersion"], "resultType": "complete"}
        return {**fixed, "capabilities": {}, "serverInfo": names, **part}

    info_kept, _ = select_valid_fields(info, ("name", "version"), lambda value: validate(build(serverInfo=value)))
    valid_fields, _ = select_valid_fields(result["capabilities"], (), lambda value: validate(build(capabilities=value)))
    result.update(serverInfo=info_kept or names, capabilities=valid_fields or {})
