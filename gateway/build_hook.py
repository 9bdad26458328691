"""Puts the files of `config/` and `skills/` into the wheel, below `gateway/shipped`. Used by hatchling only.

An editable install reads them in the clone: copies in `site-packages` would grow old and look like a package `gateway`.
"""

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ShippedFilesHook(BuildHookInterface[Any]):
    """See the module."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Adds the folders; `version` is the kind of wheel: `standard` or `editable`."""
        if version == "standard":
            build_data["force_include"].update({name: f"gateway/shipped/{name}" for name in ("config", "skills")})
