"""Pins of external MCP tools: what a person accepted, and what the server offers now. Pure; `tool_pin_store.py` stores
it.

A tool is pinned by the SHA-256 of the canonical JSON of its definition. A changed or new tool is quarantined until a
person accepts it. It stays there if the server returns to the accepted definition: somebody should know that it
changed in between. (OWASP MCP Top 10, MCP03; CVE-2025-54136.)
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from agent.core.errors import NotFoundError
from agent.core.models import FrozenModel, JsonObject

PinPolicy = Literal["first_use", "review", "off"]
PinState = Literal["accepted", "quarantined", "rejected"]
FIRST_USE = "first use"
"""Recorded as the person who accepted the tools of a new server."""


class ToolDefinition(FrozenModel):
    """A tool's definition: canonical JSON (sorted keys, no spaces, ASCII) and its SHA-256 in hex.

    Raises `ValueError` if the digest does not match.
    """

    digest: str
    text: str

    @classmethod
    def from_parts(cls, parts: Mapping[str, Any]) -> Self:
        """The definition of these parts: `name`, `title`, `description`, `inputSchema`, `outputSchema`,
        `annotations`.

        Raises `ValueError` for what JSON cannot hold, `RecursionError` for what is too deep.
        """
        text = json.dumps(parts, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
        return cls(digest=_hash_text(text), text=text)

    @property
    def parts(self) -> JsonObject:
        """The parts as JSON."""
        parts: JsonObject = json.loads(self.text)
        return parts

    @model_validator(mode="after")
    def _check_digest(self) -> Self:
        if self.digest != _hash_text(self.text):
            raise ValueError("the text does not have this digest")
        return self


class Pin(FrozenModel):
    """One tool of a server: the accepted definition, and the offered one if it waits for a person.

    `by` and `at` (UTC seconds since 1970) describe the last change of `state`.
    """

    state: PinState
    accepted: ToolDefinition | None = None
    offered: ToolDefinition | None = None
    by: str = ""
    at: float = 0.0

    @property
    def reason(self) -> str:
        """Why the tool is not in use; empty if it is."""
        if self.state == "accepted":
            return ""
        if self.state == "rejected":
            return "was rejected"
        return "is new on this server" if self.accepted is None else "has changed since it was accepted"


class ServerPins(FrozenModel):
    """The pins of one server by tool name."""

    tools: dict[str, Pin] = Field(default_factory=dict)

    def allows(self, name: str, offered: ToolDefinition) -> bool:
        """Whether a tool may be used with this definition."""
        pin = self.tools.get(name)
        return (
            pin is not None
            and pin.state == "accepted"
            and pin.accepted is not None
            and pin.accepted.digest == offered.digest
        )

    @property
    def quarantined(self) -> tuple[str, ...]:
        """Names of the quarantined tools that nobody has decided about."""
        return tuple(sorted(name for name, pin in self.tools.items() if pin.state == "quarantined"))

    @property
    def withheld_reasons(self) -> dict[str, str]:
        """Every tool that is not in use, and why."""
        return {name: pin.reason for name, pin in sorted(self.tools.items()) if pin.state != "accepted"}

    def with_offers(self, offers: Mapping[str, ToolDefinition], at: float) -> "ServerPins":
        """The pins after the server has listed its tools; the same object if nothing changed."""
        tools = {
            name: pin
            for name, pin in self.tools.items()
            # A tool that was never accepted and is no longer offered is dropped, so that names do not accumulate.
            if name in offers or pin.accepted is not None or pin.state == "rejected"
        }
        for name, definition in offers.items():
            pin = tools.get(name) or Pin(state="quarantined", at=at)
            if self.allows(name, definition) or pin.offered == definition:
                continue
            since = pin.at if pin.state == "quarantined" else at
            tools[name] = Pin(state="quarantined", accepted=pin.accepted, offered=definition, at=since)
        return self if tools == self.tools else ServerPins(tools=tools)

    def accept(self, name: str, by: str, at: float) -> "ServerPins":
        """The pins with the offered definition accepted. Raises `NotFoundError` if nothing waits."""
        pin = self._get_pin(name)
        if pin.offered is None:
            raise NotFoundError(f"the tool {name!r} is already accepted; no change waits for a review")
        return self._with_pin(name, Pin(state="accepted", accepted=pin.offered, by=by, at=at))

    def reject(self, name: str, by: str, at: float) -> "ServerPins":
        """The pins with this tool out of use. Raises `NotFoundError`."""
        pin = self._get_pin(name)
        rejected = Pin(state="rejected", accepted=pin.accepted, offered=pin.offered or pin.accepted, by=by, at=at)
        return self._with_pin(name, rejected)

    def _get_pin(self, name: str) -> Pin:
        if name not in self.tools:
            raise NotFoundError(f"there is no tool {name!r}; known: {', '.join(sorted(self.tools)) or 'none'}")
        return self.tools[name]

    def _with_pin(self, name: str, pin: Pin) -> "ServerPins":
        return ServerPins(tools={**self.tools, name: pin})


def make_first_pins(offers: Mapping[str, ToolDefinition], policy: PinPolicy, at: float) -> ServerPins:
    """The pins of a new server: all accepted, or all to be reviewed."""
    if policy == "review":
        return ServerPins().with_offers(offers, at)
    return ServerPins(
        tools={name: Pin(state="accepted", accepted=one, by=FIRST_USE, at=at) for name, one in offers.items()}
    )


def _hash_text(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
