"""The forms of an API key: as routes and commands send it, and as it is created.

A field of a key is defined in `ApiKey`, and in `KeyOptions` if a person sets it (`agent/storage/api_keys.py`). It is
added here to each form that has it, is an option of `stepgate keys create` by itself, and is stored without a column of
its own. One of `KeyLimits` is in every form by itself; it needs only its option in `gateway/cli/keys.py`.
"""

from datetime import datetime
from typing import Annotated, cast

from pydantic import AfterValidator, AwareDatetime, Field

from agent.core.models import DeferredModel
from agent.core.record_item import RecordItem
from agent.storage.api_keys import SCOPES, ApiKey, KeyLimits, KeyOptions, Scope
from gateway.doors.strict_body import StrictBody


class KeyItem(RecordItem):
    """A key, without its secret. Times are UTC; `tokens` and `cost_usd` are what it has used in all."""

    id: str
    owner: str
    name: str
    scopes: Annotated[list[str], AfterValidator(sorted)]
    tools: list[str] | None = Field(description="tools that its runs may use; null: all")
    limits: KeyLimits
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None
    tokens: int = 0
    cost_usd: float = 0.0


class KeyItems(DeferredModel):
    """The keys, oldest first."""

    data: list[KeyItem]


class MadeKey(KeyItem):
    """A key that was made. Its text is shown this once."""

    text: str


class NewKey(StrictBody):
    """A key to make."""

    owner: str = Field(min_length=1, max_length=200)
    name: str = Field(min_length=1, max_length=200)
    scopes: list[Scope] = Field(min_length=1, max_length=len(SCOPES))
    tools: list[str] | None = Field(default=None, max_length=500)
    limits: KeyLimits = Field(default_factory=KeyLimits)
    expires_at: AwareDatetime | None = None

    def to_options(self) -> KeyOptions:
        """The options besides owner, name and scopes."""
        options = {name: getattr(self, name) for name in KeyOptions.__annotations__}
        return cast("KeyOptions", options | {"expires_at": self.expires_at and self.expires_at.timestamp()})


class KeyLimitsChange(KeyLimits):
    """Limits to change: those that are named. Null removes one."""

    def model_post_init(self, context: object, /) -> None:
        """Leaves marked as set what was sent, unlike other frozen values."""


class KeyChange(StrictBody):
    """A change of a key."""

    limits: KeyLimitsChange

    def to_changes(self) -> dict[str, float | None]:
        """The limits to change, by name."""
        return self.limits.model_dump(exclude_unset=True)


def to_item(key: ApiKey, usage: tuple[int, float]) -> KeyItem:
    """A key as it is sent, with the tokens and the USD that it has used."""
    tokens, cost_usd = usage
    return KeyItem.model_validate(key).model_copy(update={"tokens": tokens, "cost_usd": cost_usd})
