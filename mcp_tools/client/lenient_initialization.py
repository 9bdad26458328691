"""Completes what an external server says about itself when it is initialized."""

from typing import Any

from mcp_types.version import LATEST_HANDSHAKE_VERSION

from mcp_tools.client.valid_fields import Validate, is_valid, select_valid_fields


def complete_initialization(result: dict[str, Any], server: str, validate: Validate) -> None:
    """Fills in what an `InitializeResult` lacks, and removes what is invalid, in place. `server` is our name for it."""
    if not isinstance(result.get("protocolVersion"), str):
        result["protocolVersion"] = LATEST_HANDSHAKE_VERSION
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
