"""Hooks of the feature `studio`."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from agent.core.cancellation import cancel_and_wait
from agent.run_context.extensions import Extension
from agent.subagents import RegisteredSubAgent, register_subagents
from gateway.bootstrap_rooms import list_checked_rooms
from gateway.feature_host import FeatureHost
from gateway.features.studio.engine.earlier_rooms import mark_earlier_rooms
from gateway.features.studio.engine.intent_routing import INTENT_EXTENSION
from gateway.features.studio.engine.room_checks import check_rooms_at_start
from gateway.features.studio.engine.room_editor import RoomEditor
from gateway.features.studio.engine.room_yaml import read_owner
from gateway.features.studio.engine.subagents import STUDIO_AGENTS
from gateway.features.studio.parts import get_studio


def list_subagents(_: FeatureHost) -> tuple[RegisteredSubAgent, ...]:
    """One sub-agent for each category of the router."""
    return register_subagents(STUDIO_AGENTS)


def list_extensions(_: FeatureHost) -> tuple[Extension, ...]:
    """The router of rooms with `routing: intents`."""
    return (INTENT_EXTENSION,)


async def prepare(host: FeatureHost) -> None:
    """Marks the rooms of earlier releases, registers the generated tools in use, then checks what the rooms name.
    Raises `ConfigError`.
    """
    studio = get_studio(host)
    await mark_earlier_rooms(host.context.statements, host.context.store.journal, studio.room_editor.live)
    await studio.generated_tools.refresh()
    if host.checks_rooms:
        check_rooms_at_start(list_checked_rooms(host.context, host.rooms), studio.room_editor.live.registries)


@dataclass(frozen=True, slots=True)
class OwnedRooms:
    """The rooms of owners. Implements `agent.storage.owners.OwnedStore`."""

    editor: RoomEditor

    async def remove_owner(self, owner: str, *, by: str) -> None:
        """Deletes the managed rooms of an owner, with every text that they had. Raises `StoreError`."""
        live = self.editor.live
        await asyncio.to_thread(live.store.erase, lambda data: read_owner(data) == owner)
        await live.refresh()


def list_owned_stores(host: FeatureHost) -> tuple[OwnedRooms, ...]:
    """The rooms of owners."""
    return (OwnedRooms(get_studio(host).room_editor),)


@asynccontextmanager
async def follow_changes(host: FeatureHost) -> AsyncIterator[None]:
    """Takes up what other processes, and people by hand, change: rooms and generated tools."""
    studio = get_studio(host)
    await studio.room_editor.live.start()
    rooms = asyncio.create_task(studio.room_editor.live.watch(), name="changes of rooms")
    tools = asyncio.create_task(studio.generated_tools.watch(), name="changes of generated tools")
    try:
        yield
    finally:
        await cancel_and_wait(rooms, tools)
