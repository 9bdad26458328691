"""What the tests of the page share: one Chromium, in which each page has storage of its own, and gateways."""

from collections.abc import Iterator

import pytest

from tests.integration.conftest import model_server, serve
from tests.support.browser import running_chromium

__all__ = ["model_server", "serve"]  # fixtures


@pytest.fixture(scope="session")
def devtools() -> Iterator[str]:
    """The address of Chromium's DevTools."""
    with running_chromium() as address:
        yield address
