"""Fills in fields that protocol version 2026-07-28 requires in results and that many servers omit.

The SDK rejects such results, so that a server without `resultType` would have no tools at all. The defaults are those
of the specification for a missing field: a complete result that must not be cached.
"""

from typing import Any

_CACHEABLE = frozenset(("tools", "prompts", "resources", "resourceTemplates", "contents", "supportedVersions"))
"""Keys of results that carry caching hints."""
CACHE_DEFAULTS = {"ttlMs": 0, "cacheScope": "private"}
_RESULT_TYPES = ("complete", "input_required")


def fill_missing_fields(result: dict[str, Any]) -> None:
    """Adds the required fields that a result lacks or states wrongly, in place."""
    if result.get("resultType") not in _RESULT_TYPES:
        result["resultType"] = "complete"
    if result["resultType"] == "complete" and not _CACHEABLE.isdisjoint(result):
        if not isinstance(result.get("ttlMs"), int | float):
            result["ttlMs"] = CACHE_DEFAULTS["ttlMs"]
        if result.get("cacheScope") not in ("private", "public"):
            result["cacheScope"] = CACHE_DEFAULTS["cacheScope"]
