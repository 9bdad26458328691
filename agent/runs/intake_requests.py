"""The kinds of requests that the kernel's doors hand to `RunIntake.accept`, beside a plain `AgentRequest`."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from agent.core.models import AgentRequest, JsonObject


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A request of a client that sends the whole conversation each time, such as a chat completion.

    `chat_id` names the conversation if the client sends it.
    """

    request: AgentRequest
    chat_id: str | None = None
    wire_request: JsonObject = field(default_factory=dict)
    """The door's own data, stored with the run and returned in its own protocol."""
    tainted: bool = False
    """Whether the conversation was loaded from this store and relies on untrusted content."""
    prompt_addresses: tuple[str, ...] | None = None
    """The addresses that the user wrote in a prompt that is not the user's words; None if it is."""
    follows: str | None = None
    """The run before the request, if the client's protocol names it."""
    names_what_it_answers: bool = False
    """Whether the client's protocol names the run that a message answers (A2A): then its conversation's id does not."""


@dataclass(frozen=True, slots=True)
class QuestionAwareRequest:
    """A request of a client that displays its conversation: it answers only the question whose approvals it names."""

    request: AgentRequest
    approvals: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ContextMessage:
    """A request of a client whose protocol names the run that a message answers, and this one names none (A2A)."""

    request: AgentRequest


@dataclass(frozen=True, slots=True)
class ApprovalReplies:
    """A caller's decisions on what a run waits for, by approval id: approve or reject, and the reason."""

    run_id: str
    replies: Mapping[str, tuple[bool, str]]


@dataclass(frozen=True, slots=True)
class ApprovalText:
    """A caller's words to a run that waits: `approve`, `reject`, or what should be different.

    `approvals` are the ids of the requests of the question that the words answer.
    """

    run_id: str
    text: str
    approvals: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HiddenRequest:
    """A request whose run appears in no list and adds nothing to a conversation.

    A client's background prompt (for a title, tags), or a single tool call over MCP, whose tool may work on what a
    conversation holds.
    """

    request: AgentRequest
