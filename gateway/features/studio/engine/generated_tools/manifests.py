"""Checks what a tool asks to be permitted."""

import re
from collections.abc import Collection
from pathlib import PurePosixPath

from gateway.features.studio.engine.generated_tools.models import Manifest

_HOST = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?(?::\d{1,5})?")


def check_manifest(manifest: Manifest, tool_names: Collection[str], most: Manifest | None) -> list[str]:
    """Describes what is wrong with a manifest: its form, unknown tools, and what exceeds `most` if given."""
    problems = [
        f"manifest: {host!r} is not a host; write example.com or example.com:8080, without a scheme and a path"
        for host in manifest.hosts
        if not _HOST.fullmatch(host)
    ]
    problems += [
        f"manifest: {folder!r} is not a folder; write a relative path without `..`"
        for folder in manifest.folders
        if not folder.strip() or folder.startswith(("/", "~")) or ".." in PurePosixPath(folder).parts
    ]
    problems += [
        f"manifest: there is no tool {name!r} that a generated tool can call"
        for name in manifest.tools
        if name not in tool_names
    ]
    if most is not None and (wider := manifest.list_wider(most)):
        problems.append(f"manifest: the permissions {', '.join(wider)} are not allowed")
    return problems
