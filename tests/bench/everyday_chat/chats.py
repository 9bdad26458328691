"""The chats as data: `chats.yaml`, read and validated."""

import datetime as dt
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from gateway.features.evaluation.report import MeasuredResult
from gateway.features.evaluation.task_files import TextCheck

CHATS_FILE = Path(__file__).with_name("chats.yaml")
YEAR_PLACEHOLDER = "{year}"

Kind = Literal["greeting", "joke", "summary", "translation", "python", "follow_up", "ability", "date", "knowledge"]


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Rule(_Strict):
    """The form that the user wants the answer to have."""

    max_words: int | None = None
    sentences: int | None = Field(default=None, description="exactly so many")
    lines: int | None = Field(default=None, description="exactly so many that are not empty")
    starts_with: str = Field(default="", description="in any case, after quotes and marks")
    ends_with: str = Field(default="", description="in any case, before quotes and marks")
    lower_case: bool = False


class PythonCheck(_Strict):
    """A function that the answer must define, and calls of it: arguments and the result, as JSON."""

    function: str
    cases: tuple[tuple[tuple[JsonValue, ...], JsonValue], ...] = Field(min_length=1)


class ChatChecks(_Strict):
    """What a program can tell of an answer, besides what holds for all: that it is no copy and has no stray tags."""

    language: str = Field(default="", description="the ISO 639-1 code that the answer must be in; empty: any")
    text: TextCheck | None = None
    rule: Rule | None = None
    python: PythonCheck | None = None
    may_repeat: bool = Field(default=False, description="a right answer has nearly the words of the request")


class Chat(_Strict):
    """A conversation: pairs of a user's message and its answer, then the message that is answered."""

    id: str = Field(pattern=r"^[a-z0-9-]+$")
    kind: Kind
    history: tuple[tuple[str, str], ...] = ()
    prompt: str = Field(min_length=1)
    checks: ChatChecks

    @property
    def family(self) -> str:
        """The kind, for samples that have as many of each."""
        return self.kind

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The conversation as OpenAI's messages."""
        earlier = [
            {"role": role, "content": text}
            for pair in self.history
            for role, text in zip(("user", "assistant"), pair, strict=True)
        ]
        return [*earlier, {"role": "user", "content": self.prompt}]


class ChatAnswer(MeasuredResult):
    """An answer to a chat. `status` is `answered`, `refused` (HTTP 4xx) or `error`, which is asked again."""

    text: str = ""
    seconds: float = 0.0
    first_token_seconds: float | None = None
    error: str = ""


def load_chats(path: Path = CHATS_FILE) -> tuple[Chat, ...]:
    """All chats. Raises `ValidationError` for an invalid one."""
    text = path.read_text("utf-8").replace(YEAR_PLACEHOLDER, str(dt.datetime.now(dt.UTC).year))
    return tuple(Chat.model_validate(entry) for entry in yaml.safe_load(text))
