"""axe-core, which finds barriers for people with disabilities in a page of `tests.support.browser`."""

import shutil
from functools import cache
from typing import Any

import pytest

from tests.clients.environments import FOLDER, install_npm_packages
from tests.support.browser import Page

PACKAGE = "axe-core@^4.10"
RUN = "axe.run(document, { resultTypes: ['violations'] }).then((found) => found.violations)"

NEEDS_NPM = pytest.mark.skipif(shutil.which("npm") is None, reason="no npm on this machine, which installs axe-core")


@cache
def load_axe() -> str:
    """The source of axe-core; installs it once, outside of the repository's own packages."""
    file = FOLDER / "axe" / "node_modules" / "axe-core" / "axe.min.js"
    if not file.is_file():
        install_npm_packages(FOLDER / "axe", (PACKAGE,), path=None)
    return file.read_text("utf-8")


async def find_barriers(page: Page) -> list[str]:
    """What axe-core finds in the page as it is now: the rule, and the elements that break it.

    The page must have been loaded with `Page.setBypassCSP`: its policy forbids what axe-core does.
    """
    if not await page.evaluate("'axe' in window"):
        await page.evaluate(f"{load_axe()};true")
    found: list[dict[str, Any]] = await page.evaluate(RUN)
    return [f"{one['id']}: {node['target']} {node['failureSummary']}" for one in found for node in one["nodes"]]
