"""Hooks of the feature `schedules`."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from agent.tools import Tool
from gateway.feature_host import FeatureHost
from gateway.features.schedules.engine.webhooks import WebhookSender
from gateway.features.schedules.parts import get_schedules, get_webhooks
from gateway.features.schedules.tools import make_schedule_tools


def list_tools(host: FeatureHost) -> list[Tool]:
    """The tools for schedules. They ask for the service when they are called."""
    return [*make_schedule_tools(lambda: get_schedules(host).service)]


def find_webhooks(host: FeatureHost) -> WebhookSender:
    """What posts the ends of runs."""
    return get_webhooks(host)


@asynccontextmanager
async def send_webhooks(host: FeatureHost) -> AsyncIterator[None]:
    """Sends webhooks while entered, those of the last runs included, unless this process only runs a command."""
    if not host.context.recover:
        yield
        return
    async with get_webhooks(host).run():
        yield


@asynccontextmanager
async def start_ticks(host: FeatureHost) -> AsyncIterator[None]:
    """Starts runs at their ticks while entered."""
    async with get_schedules(host).ticker.run():
        yield
