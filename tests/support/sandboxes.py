"""Sandboxes for tests. Where the machine has none, or no namespaces, tests of programs that attack it are skipped."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from agent.sandbox.client import Sandbox
from agent.sandbox.limits import SandboxLimits

LIMITS = SandboxLimits(seconds=8, memory_bytes=256 * 2**20, folder_bytes=16 * 2**20)
"""Well below 20 s and 64 MB of files in memory: what an attack may use in a test."""

requires_sandbox = pytest.mark.sandbox
"""`make check-sandbox` runs these tests; `tests/conftest.py` skips them on a machine without namespaces."""


@asynccontextmanager
async def open_sandbox(limits: SandboxLimits = LIMITS, *, isolated: bool = True) -> AsyncIterator[Sandbox]:
    """Yields a sandbox; skips the test if it has no namespaces although it should have."""
    sandbox = Sandbox(limits, parallel=4, use_namespaces=isolated)
    try:
        if isolated and not await sandbox.is_isolated():
            pytest.skip("this machine permits no namespaces, and attacks are only tried in them")
        yield sandbox
    finally:
        await sandbox.aclose()
