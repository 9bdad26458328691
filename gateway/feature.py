"""`Feature`: everything that one folder adds to the gateway, in one value.

A shipped feature is `gateway/features/NAME/feature.py`, listed in `gateway/shipped_features.py`; an installed package
offers its own by the entry point `stepgate.features`. Both go through `gateway/feature_loader.py`.

Hooks are named by text (`module:name`) and imported when they are needed: `stepgate --help` and a worker load no door.
This module imports as good as nothing, so that a list of features costs nothing.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from mcp_tools.server.toolset import AT_THE_END, Toolset

__all__ = [
    "AT_THE_END",
    "Command",
    "Door",
    "Feature",
    "FixedLimit",
    "Page",
    "PagePart",
    "Part",
    "Parts",
    "Revision",
    "Target",
    "Toolset",
]

Target = str
"""`module:name` of a hook."""


class Parts(Protocol):
    """The parts that features have built: the gateway, and the host while it is built."""

    def get_part(self, feature: str) -> Any:
        """The part that the hook `build` of a feature returned. Raises `ConfigError` if it is off."""
        ...

    def get_services(self, feature: str) -> Any:
        """The services that the hook `build_services` of a feature returned. Raises `ConfigError` if it is off."""
        ...


T = TypeVar("T")


class Part(Generic[T]):
    """Gets what a feature has built, typed: a feature's `parts.py` has one for itself and for those that need it.

    `get_poems: Part["Poems"] = Part("poems")`, then `get_poems(gateway)` or `get_poems(host)`.
    """

    def __init__(self, feature: str, *, is_services: bool = False) -> None:
        """With `is_services`, what its hook `build_services` returned, else its hook `build`."""
        self._feature = feature
        self._is_services = is_services

    def __call__(self, parts: Parts) -> T:
        """Raises `ConfigError` if the feature is off."""
        part: T = (parts.get_services if self._is_services else parts.get_part)(self._feature)
        return part


@dataclass(frozen=True, slots=True)
class Door:
    """Some routes: `target` is a list of routes, a router, or a function of the settings that returns routes.

    `place` orders the OpenAPI document."""

    target: Target
    place: int = AT_THE_END


@dataclass(frozen=True, slots=True)
class Command:
    """A command of `stepgate`: `target` is a function or a `Typer`, `line` the first line of its help.

    `place` orders the list of commands. The name of one that a feature adds to a group of the kernel is both words
    (`runs save`); the kernel's own have the place 0 there."""

    target: Target
    line: str
    place: int = AT_THE_END


@dataclass(frozen=True, slots=True)
class FixedLimit:
    """A limit that no setting changes, for the page of limits: `number` names the constant that enforces it."""

    what: str
    number: Target
    beyond: str


@dataclass(frozen=True, slots=True)
class Revision:
    """A change of the feature's own tables: statements for SQLite and for PostgreSQL, run once each, in order."""

    name: str
    sqlite: tuple[str, ...]
    postgres: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PagePart:
    """A part of the web page: its name in the address, its label, and its module, a file of `Page.folder`.

    It is offered to callers with the scope, "" for all of them. `place` orders the parts. An offer of rooms is made in
    `rooms`; a view with `rooms` is where people use them, so a new chat does not offer them."""

    name: str
    label: str
    module: str
    scope: str = ""
    place: int = AT_THE_END
    rooms: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Raises `ValueError` for a name that cannot be a part of an address."""
        if not re.fullmatch(r"[a-z][a-z0-9_-]*", self.name):
            raise ValueError(f"the part {self.name!r} of the page: use lowercase letters, digits, hyphens, underscores")


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """What a feature adds to the web page. Modules are loaded when they are shown; docs/page.md says what each exports.

    Only one feature may have a part of a name, `attachments` or `citations`."""

    folder: Target
    """`package:folder` of the `.js`, `.css` and `.svg` files: `/web/FEATURE/FILE`, below the edition of the page."""
    views: tuple[PagePart, ...] = ()
    """Views of the header: `#/NAME`."""
    studio: tuple[PagePart, ...] = ()
    """Sections of the view Studio: `#/studio/NAME`."""
    run_offers: tuple[PagePart, ...] = ()
    """What the page of an ended run offers to its owner."""
    room_offers: tuple[PagePart, ...] = ()
    """What a new chat in some rooms offers, in place of requests to begin with."""
    attachments: str = ""
    """The module that reads files which are attached to a chat."""
    citations: str = ""
    """The module that shows what is behind a citation."""

    def list_modules(self) -> tuple[str, ...]:
        """The modules that the page loads by name."""
        parts = (*self.views, *self.studio, *self.run_offers, *self.room_offers)
        return (*(one.module for one in parts), *filter(None, (self.attachments, self.citations)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """A feature with all that it adds. Hooks get `FeatureHost` (`gateway/feature_host.py`) unless said otherwise.

    Its plan sources and its hooks of runs are in `extensions`."""

    name: str
    needs: tuple[str, ...] = ()
    """The features whose parts it uses; they are built first, and without them it is off."""
    imports: tuple[str, ...] = ()
    """Further features of which it only imports modules: it works while they are off."""
    settings: Target | None = None
    """A Pydantic model of its settings: each field is `AGENT_<FIELD>` and has a description. They are read by
    `FeatureHost.read_settings`; secrets are named credentials instead."""
    removed_settings: Mapping[str, str] = field(default_factory=dict)
    """Its former settings by their full names, with what replaces each: a start warns about those that are set."""
    room_texts: Target | None = None
    """The YAML of the operator's rooms by id, where they are in no folder. Gets the settings only."""
    build: Target | None = None
    """Builds the part that its other hooks and its doors share; other features get it by `get_part`."""
    tools: Target | None = None
    """Lists its tools."""
    subagents: Target | None = None
    """Lists its sub-agents (`register_subagents`)."""
    subagent_results: Target | None = None
    """Stores the results of sub-agents: from the id of one, its `KeepResult`."""
    extensions: Target | None = None
    """Lists its `Extension`s: gates, topics, plan sources and other hooks of runs."""
    events: Target | None = None
    """A tuple of its `FeatureEvent`s (`agent/core/events/feature.py`), which its hooks append to runs by `Run.emit`.
    They stay readable while it is off. One that may hold text and has no `redact` stops the start."""
    prepare: Target | None = None
    """Awaited once the tools of all features are registered. Raises `ConfigError` to stop the start."""
    dispatch: Target | None = None
    """The `Dispatch` for AGENT_DISPATCH=queue."""
    webhooks: Target | None = None
    """Posts the ends of runs (`WebhookRegistry`)."""
    build_services: Target | None = None
    """Builds the services that start runs. Gets the host and the `RunServices`; others get it by `get_services`."""
    request_handlers: Target | None = None
    """Lists the `RequestHandler`s of its own kinds of requests."""
    room_conversations: Target | None = None
    """Conversations of rooms of its own that keep more than messages (`RoomConversations`)."""
    owned_stores: Target | None = None
    """Lists the stores of owners' things outside of its tables (`OwnedStore`)."""
    toolsets: tuple[Toolset, ...] = ()
    """In which toolsets of `/mcp` its tools are: its own, which have a description, and others."""
    mcp_prompts: Target | None = None
    """Lists what it offers as prompts of the MCP server (`StoredPrompts`)."""
    around_runs: Target | None = None
    """An async context manager that is entered before runs are resumed, and left after the last one has ended
    or was handed back: in commands too, where `host.context.recover` is False."""
    background: Target | None = None
    """An async context manager that is entered while the gateway serves, and left before runs are drained."""
    readiness: Target | None = None
    """The components that `/ready` asks, by name: async functions that return what is there, or raise
    `AgentError`."""
    doctor_checks: Target | None = None
    """Yields the `DoctorFinding`s of `stepgate doctor`, asynchronously. Gets the gateway."""
    derived_folders: Target | None = None
    """Folders of the data folder that it makes from the database: `stepgate backup` leaves them out. A tuple."""
    after_answer: Target | None = None
    """Awaited by commands that have printed the answer of a run, with the gateway, the id of its conversation, an event
    that is set to stop waiting, and the owner. Returns whether all went well."""
    rooms: tuple[str, ...] = ()
    """The shipped rooms that are of no use without it: they are left out while it is off."""
    room_folder: str = ""
    """`package:folder` of a folder in its package with files of rooms that it brings itself."""
    routes: tuple[Door, ...] = ()
    page: Page | None = None
    """Its part of the web page."""
    upload_limits: Target | None = None
    """Lists the paths that take uploads, with the most bytes of a body. Gets the settings only."""
    limits: tuple[FixedLimit, ...] = ()
    """Its fixed limits, for docs/limits.md."""
    middleware: Target | None = None
    """Builds an ASGI application around the given one, with the `WorkerProcess`, where several serve one port."""
    serve_workers: Target | None = None
    """Serves with several processes. Gets the settings, returns the exit code."""
    commands: Mapping[str, Command] = field(default_factory=dict)
    revisions: tuple[Revision, ...] = ()
    """The changes of its tables since it exists. Tables of shipped features that are older are in `agent/storage`."""
    owned_tables: tuple[str, ...] = ()
    """Its tables with a column `owner`, whose rows are deleted with all of an owner's; referring tables first."""
    work_tables: tuple[str, ...] = ()
    """Those of `owned_tables` whose rows start or do work: they are deleted first, so that no more of it begins."""
    run_tables: tuple[str, ...] = ()
    """Its tables with a column `run_id`, whose rows are deleted with their run."""
    retention: Target | None = None
    """A `FeatureRetention` (`agent/storage/feature_tables.py`): its rows that AGENT_KEEP_DAYS forgets, and the runs
    that it needs. It is used while the feature is off, too."""
