"""What every command but `serve` needs: the wired gateway in this process, on the same data folder."""

import asyncio
import logging
import sys
from collections.abc import Awaitable, Callable
from typing import TypeVar

from dotenv import load_dotenv

from agent.core.config import Settings, load_settings, unknown_settings
from gateway.bootstrap import Stepgate, build

T = TypeVar("T")


def settings_of_command(**overrides: object) -> Settings:
    """The settings, with a warning on stderr for every `AGENT_` name that is none."""
    for line in unknown_settings():
        print(f"warning: {line}", file=sys.stderr)
    load_dotenv(".env")  # providers' own keys (ANTHROPIC_API_KEY ...) are read from the environment by LiteLLM
    settings = load_settings(**{key: value for key, value in overrides.items() if value is not None})
    logging.basicConfig(level=settings.log_level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    # One line a request is the doors' business; the client library's own are noise.
    logging.getLogger("httpx").setLevel(logging.WARNING)
    logging.getLogger("alembic").setLevel(logging.WARNING)
    return settings


def with_stepgate(work: Callable[[Stepgate], Awaitable[T]]) -> T:
    """Run `work` on a gateway of this process that shares the data folder with a running one."""
    settings = settings_of_command()
    logging.getLogger().setLevel(max(logging.WARNING, logging.getLogger().level))

    async def run() -> T:
        async with build(settings, recover=False) as stepgate:
            return await work(stepgate)

    return asyncio.run(run())
