"""Pins of foreign MCP tools: what a person accepted of a server, and what it offers now. Pure; kept by `pins_store.py`.

A tool is pinned by the SHA-256 of the canonical JSON of everything it is known by. One that differs, or that was not
there when the server was first seen, is in quarantine until a person accepts it. It stays there when the server goes
back to what was accepted: somebody should know that it changed in between. (OWASP MCP Top 10, MCP03; CVE-2025-54136.)
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from agent.core.errors import NotFoundError
from agent.core.models import Frozen, JsonObject

PinPolicy = Literal["first_use", "review", "off"]
PinState = Literal["accepted", "quarantined", "rejected"]
FIRST_USE = "first use"
"""Who accepted the tools of a server that was seen for the first time."""


class Definition(Frozen):
    """A tool as its server describes it: canonical JSON (keys in order, no spaces, ASCII), and its SHA-256 in hex.
    ValueError for a text that is not what its digest says."""

    digest: str
    text: str

    @classmethod
    def of(cls, parts: Mapping[str, Any]) -> Self:
        """The definition of these parts: `name`, `description`, `inputSchema`, `outputSchema`, `annotations`, and
        `title`, which stands in for a description that is missing.

        ValueError for what JSON cannot hold, RecursionError for what is too deep."""
        text = json.dumps(parts, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
        return cls(digest=_sha256(text), text=text)

    @property
    def parts(self) -> JsonObject:
        """The parts."""
        parts: JsonObject = json.loads(self.text)
        return parts

    @model_validator(mode="after")
    def _is_itself(self) -> Self:
        if self.digest != _sha256(self.text):
            raise ValueError("the text does not have this digest")
        return self


class Pin(Frozen):
    """One tool of a server: what was accepted of it, and what it offers where that waits for a person. `by` and `at`
    (UTC seconds) are of the last change of `state`."""

    state: PinState
    accepted: Definition | None = None
    offered: Definition | None = None
    by: str = ""
    at: float = 0.0

    @property
    def why(self) -> str:
        """Why it is not in use; empty where it is."""
        if self.state == "accepted":
            return ""
        if self.state == "rejected":
            return "was rejected"
        return "is new on this server" if self.accepted is None else "is not what was accepted"


class ServerPins(Frozen):
    """The tools of one server by name."""

    tools: dict[str, Pin] = Field(default_factory=dict)

    def admits(self, name: str, offered: Definition) -> bool:
        """Whether a tool may be used as it is offered."""
        pin = self.tools.get(name)
        return (
            pin is not None
            and pin.state == "accepted"
            and pin.accepted is not None
            and pin.accepted.digest == offered.digest
        )

    @property
    def waiting(self) -> tuple[str, ...]:
        """The tools in quarantine that nobody has decided about."""
        return tuple(sorted(name for name, pin in self.tools.items() if pin.state == "quarantined"))

    @property
    def withheld(self) -> dict[str, str]:
        """Every tool that is not in use, and why."""
        return {name: pin.why for name, pin in sorted(self.tools.items()) if pin.state != "accepted"}

    def offered(self, offers: Mapping[str, Definition], at: float) -> "ServerPins":
        """The pins after the server has listed its tools: the same object where nothing is new."""
        tools = {
            name: pin
            for name, pin in self.tools.items()
            # What was never accepted and is not there any more is forgotten: names must not pile up.
            if name in offers or pin.accepted is not None or pin.state == "rejected"
        }
        for name, definition in offers.items():
            pin = tools.get(name) or Pin(state="quarantined", at=at)
            if self.admits(name, definition) or pin.offered == definition:
                continue
            since = pin.at if pin.state == "quarantined" else at
            tools[name] = Pin(state="quarantined", accepted=pin.accepted, offered=definition, at=since)
        return self if tools == self.tools else ServerPins(tools=tools)

    def accept(self, name: str, by: str, at: float) -> "ServerPins":
        """The pins with what is offered under this name accepted. `NotFoundError` when nothing waits there."""
        pin = self._pin(name)
        if pin.offered is None:
            raise NotFoundError(f"the tool {name!r} is accepted already; nothing of it waits")
        return self._with(name, Pin(state="accepted", accepted=pin.offered, by=by, at=at))

    def reject(self, name: str, by: str, at: float) -> "ServerPins":
        """The pins with this tool out of use: what is offered of it, or what had been accepted. `NotFoundError`."""
        pin = self._pin(name)
        refused = Pin(state="rejected", accepted=pin.accepted, offered=pin.offered or pin.accepted, by=by, at=at)
        return self._with(name, refused)

    def _pin(self, name: str) -> Pin:
        if name not in self.tools:
            raise NotFoundError(f"there is no tool {name!r}; known: {', '.join(sorted(self.tools)) or 'none'}")
        return self.tools[name]

    def _with(self, name: str, pin: Pin) -> "ServerPins":
        return ServerPins(tools={**self.tools, name: pin})


def first_pins(offers: Mapping[str, Definition], policy: PinPolicy, at: float) -> ServerPins:
    """The pins of a server that was never seen before: accepted as they are, or all to be reviewed."""
    if policy == "review":
        return ServerPins().offered(offers, at)
    return ServerPins(
        tools={name: Pin(state="accepted", accepted=one, by=FIRST_USE, at=at) for name, one in offers.items()}
    )


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
