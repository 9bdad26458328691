"""The reply of a room's router: its form on the wire, and what a small model may write instead."""

from collections.abc import Collection

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from agent.core.errors import PlanInvalidError
from agent.core.json_texts import write_text
from agent.core.models import IntentCategory, UserIntent
from agent.core.value_faults import describe_first_fault
from agent.llm.port import ResponseSchema
from agent.planning.parse import MAX_REPLY_CHARS, read_first_object
from agent.tools import build_flat_schema
from gateway.features.studio.engine.intent_order import order_requests

MAX_INTENTS = 8


class IntentReply(UserIntent):
    """An intent as the router's model writes it: what to do, and the intents before it whose results it needs."""

    model_config = ConfigDict(extra="ignore")

    action: str = Field(default="", max_length=200)
    request: str = Field(default="", max_length=8_000)
    depends_on: tuple[int, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def check_names(cls, value: object) -> object:
        """Refuses a field under another name: what it says would be lost without notice."""
        return _refuse_renamed(value, cls.model_fields)

    @field_validator("entities", mode="before")
    @classmethod
    def read_pairs(cls, value: object) -> object:
        """Accepts the name/value pairs of the wire, and values that are not text."""
        if isinstance(value, list) and all(isinstance(one, dict) for one in value):
            value = {str(one.get("name")): one.get("value") for one in value if one.get("name")}
        if isinstance(value, dict):
            if any(str(name).startswith("$") for name in value):  # would be read as a reference to a step
                raise ValueError("an entity's name may not begin with $")
            return {
                name: write_text(one)
                for name, one in value.items()
                if one is not None and one != ""  # models write both for a value that the message lacks
            }
        return value


class RouterReply(BaseModel):
    """The router's reply. A single intent may stand alone."""

    model_config = ConfigDict(extra="ignore")

    goal: str = ""
    intents: tuple[IntentReply, ...] = Field(max_length=MAX_INTENTS)
    question: str = Field(default="", max_length=2_000)

    @model_validator(mode="before")
    @classmethod
    def read_single(cls, value: object) -> object:
        """Accepts a bare intent, and drops what the router thought aloud."""
        if isinstance(value, dict) and "category" in value and "intents" not in value:
            around = {"goal", "question", "reasoning"}
            only = {name: one for name, one in value.items() if name not in around}
            return {"goal": value.get("goal", ""), "question": value.get("question", ""), "intents": [only]}
        return _refuse_renamed(value, cls.model_fields)

    def to_intents(self) -> tuple[UserIntent, ...]:
        """The intents as they are recorded."""
        return tuple(
            UserIntent(**{name: getattr(one, name) for name in UserIntent.model_fields}) for one in self.intents
        )


def _refuse_renamed(value: object, fields: Collection[str]) -> object:
    """Raises ValueError for an object that lacks a field and has another one instead. `reasoning` does not count as a
    field."""
    if not isinstance(value, dict):
        return value
    unknown = [name for name in value if name not in fields and name != "reasoning"]
    missing = [name for name in fields if name not in value]
    if unknown and missing:
        raise ValueError(f"{unknown[0]!r} is not a field, and {missing[0]!r} is missing")
    return value


class _WirePair(BaseModel):
    name: str
    value: str


class _WireIntent(BaseModel):
    category: IntentCategory
    action: str
    entities: list[_WirePair]
    request: str
    depends_on: list[int]
    confidence: float


class _WireReply(BaseModel):
    """The strict schema of the reply: every property required, no open objects."""

    reasoning: str
    goal: str
    intents: list[_WireIntent]
    question: str


def build_router_schema() -> ResponseSchema:
    """The JSON schema of the router's reply."""
    return ResponseSchema("intents", build_flat_schema(_WireReply))


def read_reply(text: str, finish_reason: str) -> RouterReply:
    """The reply, whole, each intent after those that it needs: what was cut off is not read in part. Raises
    `PlanInvalidError`.
    """
    if finish_reason == "length" or len(text) > MAX_REPLY_CHARS:
        raise PlanInvalidError(["the router's reply was cut off before its end, or is too long"])
    try:
        read = RouterReply.model_validate(read_first_object(text))
    except ValidationError as error:
        raise PlanInvalidError([f"the router's reply is wrong: {describe_first_fault(error, 'the reply')}"]) from error
    ordered = order_requests([one.depends_on for one in read.intents])
    placed = tuple([read.intents[at].model_copy(update={"depends_on": needs}) for at, needs in ordered])
    return read.model_copy(update={"intents": placed})
