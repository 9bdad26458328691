"""`Feature`: everything that one folder adds to the gateway, in one value.

A shipped feature is `gateway/features/NAME/feature.py`, listed in `gateway/shipped_features.py`; an installed package
offers its own by the entry point `stepgate.features`. Both go through `gateway/feature_loader.py`.

Hooks are named by text (`module:name`) and imported when they are needed: `stepgate --help` and a worker load no door.
This module imports nothing, so that a list of features costs nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

Target = str
"""`module:name` of a hook."""
AT_THE_END = 1_000
"""The place of what names none."""


@dataclass(frozen=True, slots=True)
class Door:
    """Some routes: `target` is a list of routes, a router, or a function of the settings that returns routes.

    `place` orders the OpenAPI document."""

    target: Target
    place: int = AT_THE_END


@dataclass(frozen=True, slots=True)
class Command:
    """A command of `stepgate`: `target` is a function or a `Typer`, `line` the first line of its help.

    `place` orders the list of commands."""

    target: Target
    line: str
    place: int = AT_THE_END


@dataclass(frozen=True, slots=True)
class Revision:
    """A change of the feature's own tables: statements for SQLite and for PostgreSQL, run once each, in order."""

    name: str
    sqlite: tuple[str, ...]
    postgres: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """What a feature adds. Hooks get the `FeatureHost` (`gateway/feature_host.py`) unless said otherwise."""

    name: str
    needs: tuple[str, ...] = ()
    """The features that it imports; they are built first, and without them it is off."""
    build: Target | None = None
    """Returns what its other hooks and its doors share; other features get it by `FeatureHost.get_part`."""
    tools: Target | None = None
    """Returns its tools."""
    subagents: Target | None = None
    """Returns its sub-agents (`register_subagents`)."""
    extensions: Target | None = None
    """Returns its `Extension`s: gates, topics, plan sources and other hooks of runs."""
    request_handlers: Target | None = None
    """Returns the `RequestHandler`s of its own kinds of requests."""
    mcp_prompts: Target | None = None
    """Returns what it offers as prompts of the MCP server (`StoredPrompts`)."""
    background: Target | None = None
    """Returns an async context manager that is entered while the gateway serves."""
    doctor_checks: Target | None = None
    """Returns checks for `stepgate doctor`. Gets the settings only."""
    rooms: tuple[str, ...] = ()
    """The shipped rooms that are of no use without it: they are left out while it is off."""
    routes: tuple[Door, ...] = ()
    upload_limits: Target | None = None
    """Returns the paths that take uploads with the most bytes of a body. Gets the settings only."""
    commands: Mapping[str, Command] = field(default_factory=dict)
    revisions: tuple[Revision, ...] = ()
    """The changes of its tables since it exists. Tables of shipped features that are older stand in `agent/storage`."""
    owned_tables: tuple[str, ...] = ()
    """Its tables with a column `owner`, whose rows are deleted with everything of an owner."""
