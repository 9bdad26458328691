"""Every failure that may leave the engine, and the one table that says what each code means and what to do.

Raise the narrowest `AgentError`; doors render `error.failure()` and never look inside. Tool and step failures
that the supervisor can act on travel as data (`StepOutput.error`) and use the same codes.
"""

from datetime import UTC, datetime
from typing import ClassVar, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, JsonValue


class FailureKind(NamedTuple):
    """One row of the failure table."""

    meaning: str
    action: str
    http_status: int
    recoverable: bool


FAILURES: dict[str, FailureKind] = {
    "ERR_BAD_REQUEST": FailureKind("the request cannot be understood", "refuse it before a run exists", 400, False),
    "ERR_AUTH": FailureKind("no API key, or one that is not valid", "refuse; make or renew a key", 401, False),
    "ERR_SCOPE": FailureKind("the API key does not allow this", "refuse; use a key with the scope", 403, False),
    "ERR_RATE_LIMIT": FailureKind("the API key's limit for a minute, or at once", "refuse; try later", 429, True),
    "ERR_IDEMPOTENCY": FailureKind("a key that came with another request", "take a new Idempotency-Key", 422, False),
    "ERR_QUOTA": FailureKind("the API key's budget is spent", "refuse; raise the budget", 429, False),
    "ERR_GUARDRAIL_INJECTION": FailureKind(
        "prompt injection was found", "block the request, warn the user", 400, False
    ),
    "ERR_GUARDRAIL_UNSAFE": FailureKind(
        "unsafe content or personal data",
        "block a request; write an answer again once under a stricter instruction, then block it",
        400,
        False,
    ),
    "ERR_TOO_LARGE": FailureKind("the request is larger than allowed", "refuse it before a run exists", 413, False),
    "ERR_ROOM_UNKNOWN": FailureKind("no room has this name", "refuse it before a run exists", 404, False),
    "ERR_NOT_FOUND": FailureKind("the thing does not exist or belongs to somebody else", "refuse", 404, False),
    "ERR_CONFLICT": FailureKind("the state of the thing forbids this", "refuse; look at the thing again", 409, False),
    "ERR_BUSY": FailureKind("the gateway is draining or full", "refuse; try again later", 503, True),
    "ERR_CONFIG": FailureKind("a setting is missing or wrong", "stop the start, naming the setting", 500, False),
    "ERR_MODEL_NOT_CONFIGURED": FailureKind("no model stands behind this tier", "work in rules mode", 503, False),
    "ERR_MODEL_AUTH": FailureKind("the provider refused the key", "fall back to rules; tell the operator", 502, False),
    "ERR_MODEL_RATE_LIMIT": FailureKind("the provider's rate limit", "ask 3 times in all, with back-off", 429, True),
    "ERR_MODEL_TIMEOUT": FailureKind("the model did not answer in time", "retry once with a longer limit", 504, True),
    "ERR_MODEL_CONTEXT": FailureKind("the prompt is longer than the model's context", "refuse or shorten", 400, False),
    "ERR_MODEL_DOWN": FailureKind("the provider is unreachable or failing", "retry twice, then fall back", 502, True),
    "ERR_MODEL_OUTPUT": FailureKind(
        "the reply is no usable completion", "judge the step; re-ask or fall back", 502, True
    ),
    "ERR_PLAN_INVALID": FailureKind("no valid plan came back", "re-ask once, then the rule planner", 500, True),
    "ERR_REFERENCE": FailureKind("a step refers to a value that is not there", "replan", 500, True),
    "ERR_TOOL_UNKNOWN": FailureKind("no such tool in this room", "replan", 400, True),
    "ERR_TOOL_QUARANTINED": FailureKind(
        "a foreign MCP tool is not what a person accepted", "refuse; review it: stepgate mcp-servers review", 403, False
    ),
    "ERR_TOOL_DENIED": FailureKind("the tool is outside the step's scope", "tell the model; record it", 403, True),
    "ERR_TOOL_INPUT": FailureKind(
        "the arguments do not fit the tool, or name what is not there", "replan with the problem", 400, True
    ),
    "ERR_TOOL_OUTPUT": FailureKind("the result does not fit the tool's schema", "retry once, then replan", 502, True),
    "ERR_TOOL_TIMEOUT": FailureKind("the tool did not finish in time", "retry once, then replan", 504, True),
    "ERR_TOOL_FAILED": FailureKind("the tool reported or raised an error", "retry once, then replan", 502, True),
    "ERR_TOOL_UNKNOWN_OUTCOME": FailureKind(
        "a side effect began before a crash and its result was never recorded",
        "never repeat it; reconcile by the tool or by a person",
        500,
        False,
    ),
    "ERR_SKILL_UNKNOWN": FailureKind("no such skill in this room", "replan", 400, True),
    "ERR_SKILL_TURNS": FailureKind("the skill used all its turns without an answer", "replan", 500, True),
    "ERR_SUBAGENT_FAILED": FailureKind(
        "a sub-agent could not do its task", "hand what it found to the one who asked; it decides", 502, True
    ),
    "ERR_VERIFICATION": FailureKind(
        "the result did not pass a gate its room lists", "plan again within the budget, then fail", 422, False
    ),
    "ERR_BUDGET": FailureKind("the run spent one of its budgets", "stop and answer with what is known", 200, False),
    "ERR_CANCELLED": FailureKind("the run was cancelled", "stop and answer with what is known", 200, False),
    "ERR_STORE_FULL": FailureKind("the disk of the data folder is full", "free space; runs resume", 503, True),
    "ERR_STORE": FailureKind("the store cannot be read or written", "see the message; runs resume", 503, True),
    "ERR_STORE_NEWER": FailureKind("the data folder was written by a newer version", "upgrade Stepgate", 500, False),
    "ERR_EMBEDDER": FailureKind(
        "the embedder is unreachable or gives no vectors", "use the local fallback; catch up when it is back", 502, True
    ),
    "ERR_VECTOR_SPACE": FailureKind(
        "vectors of two embedders would be mixed", "refuse; reindex, or set the embedder back", 409, False
    ),
    "ERR_MEMORY_NO_RESULTS": FailureKind(
        "nothing in the collection is relevant enough", "search more broadly, or ask what is meant", 404, True
    ),
    "ERR_TAILOR_HALLUCINATION": FailureKind(
        "nothing of an answer rests on the documents",
        "write it again under strict instructions, else say that the documents don't say",
        502,
        True,
    ),
    "ERR_TAILOR_SCHEMA": FailureKind(
        "the answer does not fit the JSON schema that was asked for",
        "ask the model twice, then refuse; let the schema say that there is nothing, or ask without it",
        422,
        False,
    ),
    "ERR_CONNECTOR_AUTH": FailureKind("the source refuses the credential", "ask for a new one, or skip", 403, False),
    "ERR_CONNECTOR_NOT_FOUND": FailureKind("there is nothing at the source", "tell the user; skip it", 404, False),
    "ERR_CONNECTOR_FAILED": FailureKind("the source could not be read", "try again later, or skip", 502, True),
    "ERR_CONNECTOR_REFUSED": FailureKind(
        "the source does not want it read, or it lies outside of the source", "tell the user; skip it", 403, False
    ),
    "ERR_PARSER_ENCRYPTED": FailureKind("the file opens with a password only", "ask for it, or skip", 422, False),
    "ERR_PARSER_UNSUPPORTED": FailureKind("the file is of no type that is read", "tell the user; skip it", 422, False),
    "ERR_PARSER_CORRUPT": FailureKind("the file is damaged or unsafe to unpack", "tell the user; skip it", 422, False),
    "ERR_PARSER_EMPTY": FailureKind("the file holds no text", "tell the user; skip it", 422, False),
    "ERR_TIMEOUT": FailureKind("a file took too long to read", "retry once, then skip it", 504, True),
    "ERR_LLM_NOT_CONFIGURED": FailureKind(
        "no model is configured for conversations", "set one up, or AGENT_CONVERSATIONS_REQUIRE_LLM=false", 400, False
    ),
    "ERR_CONVERSATION_NOT_ACTIVE": FailureKind(
        "the conversation was applied or abandoned",
        "begin another one, or one from its pipeline (`from_conversation`)",
        400,
        False,
    ),
    "ERR_PIPELINE_MISSING": FailureKind("the conversation has no pipeline yet", "ask for one first", 400, False),
    "ERR_BLOCKING_UNCERTAINTY": FailureKind(
        "blocking doubts of the conversation are unresolved", "resolve them, or apply with force", 400, False
    ),
    "ERR_STALE_EPOCH": FailureKind(
        "another process has claimed this run", "stop at once; it goes on there", 409, False
    ),
    "ERR_INTERNAL": FailureKind("a defect of Stepgate", "report it with the request id", 500, False),
}


class AgentFailure(BaseModel):
    """What a caller is told about a failure; the same shape at every door."""

    model_config = ConfigDict(frozen=True)

    agent_id: str = Field(description="the part that failed: planner, supervisor, a tool's name, gateway ...")
    error_code: str = Field(description="a key of the failure table")
    message: str = Field(description="what happened, to what, and what to do")
    recoverable: bool
    details: dict[str, JsonValue] = Field(default_factory=dict)
    timestamp: datetime = Field(default_factory=lambda: datetime.now(UTC))


class AgentError(Exception):
    """The root. Raise a subclass; `code` picks the row of the failure table."""

    code: ClassVar[str] = "ERR_INTERNAL"

    def __init__(self, message: str, *, agent_id: str = "gateway", **details: JsonValue) -> None:
        super().__init__(message)
        self.message = message
        self.agent_id = agent_id
        self.details = details

    @property
    def kind(self) -> FailureKind:
        """This error's row of the failure table."""
        return FAILURES[self.code]

    def failure(self) -> AgentFailure:
        """The wire form of this error."""
        return AgentFailure(
            agent_id=self.agent_id,
            error_code=self.code,
            message=self.message,
            recoverable=self.kind.recoverable,
            details=self.details,
        )


class UnsafeAnswerError(AgentError):
    """An answer holds what its room does not let out."""

    code = "ERR_GUARDRAIL_UNSAFE"


class BadRequestError(AgentError):
    """Raised by doors and by the guard before a run exists. `param` in the details is the dotted path."""

    code = "ERR_BAD_REQUEST"


class AuthError(AgentError):
    """Raised for a caller without a key, or with one that is unknown, expired or revoked."""

    code = "ERR_AUTH"


class ScopeError(AgentError):
    """Raised for a caller whose key does not allow this."""

    code = "ERR_SCOPE"


class RateLimitError(AgentError):
    """Raised for a caller who has used what their key allows in a minute, or at once. Try again later."""

    code = "ERR_RATE_LIMIT"


class QuotaError(AgentError):
    """Raised for a caller whose key has spent its budget. Trying again does not help."""

    code = "ERR_QUOTA"


class TooLargeError(AgentError):
    """Raised where a body, a message or a file passes its limit."""

    code = "ERR_TOO_LARGE"


class RoomUnknownError(AgentError):
    """Raised by the room registry; the OpenAI door shows it as `model_not_found`."""

    code = "ERR_ROOM_UNKNOWN"


class NotFoundError(AgentError):
    """Raised by the stores for absent things and, on purpose alike, for another owner's."""

    code = "ERR_NOT_FOUND"


class ConflictError(AgentError):
    """Raised when the thing exists but its state forbids the action (cancel a finished run)."""

    code = "ERR_CONFLICT"


class BusyError(AgentError):
    """Raised while draining, or when the queue of runs is full."""

    code = "ERR_BUSY"


class ConfigError(AgentError):
    """Raised only at start; its message is one line and names the setting."""

    code = "ERR_CONFIG"


class ModelError(AgentError):
    """The root of everything a model call can end in. The planner and supervisor fall back on it."""

    code = "ERR_MODEL_DOWN"
    retry_after_s: float | None = None
    requests: int = 1
    """How many HTTP requests have come to this, transport retries included."""


class ModelNotConfiguredError(ModelError):
    """Raised when a tier has no model; not a fault: the run goes on in rules mode."""

    code = "ERR_MODEL_NOT_CONFIGURED"


class ModelAuthError(ModelError):
    """Raised on 401 and 403; never retried."""

    code = "ERR_MODEL_AUTH"


class ModelRateLimitError(ModelError):
    """Raised on 429; asked three times in all, with back-off and `Retry-After`."""

    code = "ERR_MODEL_RATE_LIMIT"


class ModelTimeoutError(ModelError):
    """Raised when a call passes its time limit; retried once with twice the limit."""

    code = "ERR_MODEL_TIMEOUT"


class ModelContextError(ModelError):
    """Raised when the prompt does not fit the model's context; never retried."""

    code = "ERR_MODEL_CONTEXT"


class ModelRequestError(ModelError):
    """Raised on any other 4xx; `details["status"]` holds it. Never retried."""

    code = "ERR_MODEL_OUTPUT"


class ModelDownError(ModelError):
    """Raised on connection errors and 5xx; retried twice (for a refused connection too)."""

    code = "ERR_MODEL_DOWN"


class ModelOutputError(ModelError):
    """Raised when a 200 reply is no completion: not JSON, no choices, half a stream, nothing. Not retried here:
    the step's supervisor or the planner decides."""

    code = "ERR_MODEL_OUTPUT"


class PlanInvalidError(AgentError):
    """Raised by the planning pipeline with every problem of a reply, ready to be sent back to the model."""

    code = "ERR_PLAN_INVALID"

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems), agent_id="planner", problems=list(problems))
        self.problems = problems


class ReferenceMissingError(AgentError):
    """Raised when `{"$from": ...}` points at a value the earlier result does not hold."""

    code = "ERR_REFERENCE"


class ToolError(AgentError):
    """Raised by a tool for a failure the agent may act on; its message reaches the supervisor and the model.
    Anything else a tool raises is reported as `ERR_TOOL_FAILED` with the exception's name only."""

    code = "ERR_TOOL_FAILED"


class ToolUnknownError(ToolError):
    """Raised by the registry."""

    code = "ERR_TOOL_UNKNOWN"


class ToolQuarantinedError(ToolUnknownError):
    """Raised by the registry, and by the tool itself, for a foreign tool whose description or schemas are not those a
    person accepted. The message says what to run; the tool was not called."""

    code = "ERR_TOOL_QUARANTINED"


class ToolDeniedError(ToolError):
    """Raised by the tool gateway for a call outside the step's scope; the tool was not called."""

    code = "ERR_TOOL_DENIED"


class ToolInputError(ToolError):
    """Raised when arguments do not fit the schema (the tool was not called), and by tools for arguments that can
    never succeed: a file that is not there, a division by zero. Doing the same again is no use."""

    code = "ERR_TOOL_INPUT"


class ToolOutputError(ToolError):
    """Raised after the call when the result does not fit the schema."""

    code = "ERR_TOOL_OUTPUT"


class ToolTimeoutError(ToolError):
    """Raised when a tool passes its time limit."""

    code = "ERR_TOOL_TIMEOUT"


class SkillUnknownError(AgentError):
    """Raised by the skill library."""

    code = "ERR_SKILL_UNKNOWN"


class SkillTurnsError(AgentError):
    """Raised when a skill's bounded loop ends without a final text."""

    code = "ERR_SKILL_TURNS"


class SubAgentFailedError(AgentError):
    """Raised where a sub-agent ends by a failure that is neither time nor budget. `partial_result` is what it had found
    by then; whoever started it decides what it is worth."""

    code = "ERR_SUBAGENT_FAILED"

    def __init__(self, agent_id: str, reason: str, partial_result: dict[str, JsonValue] | None = None) -> None:
        super().__init__(f"the sub-agent {agent_id} failed: {reason}", agent_id=agent_id)
        self.reason = reason
        self.partial_result = partial_result or {}


class BudgetError(AgentError):
    """Raised before a model call that would pass one of the run's budgets; ends in an honest partial answer."""

    code = "ERR_BUDGET"


class StoreError(AgentError):
    """Raised by the stores for I/O failures of the database."""

    code = "ERR_STORE"


class StoreFullError(StoreError):
    """Raised when the disk is full; nothing of the unit of work was written."""

    code = "ERR_STORE_FULL"


class LogDamagedError(StoreError):
    """Raised when an event of a run cannot be read; the other runs are not touched by it."""


class StoreNewerError(StoreError):
    """Raised at start when the data folder's schema is unknown to this version."""

    code = "ERR_STORE_NEWER"


class EmbedderError(AgentError):
    """Raised by an embedder that cannot be reached or whose reply holds no vectors; memory falls back to its own."""

    code = "ERR_EMBEDDER"


class VectorSpaceError(AgentError):
    """Raised by vector indexes rather than to compare vectors of different embedders or dimensions."""

    code = "ERR_VECTOR_SPACE"


class StaleEpochError(AgentError):
    """Raised by an append whose owner has lost the run to another claim. Stop; do not report it to the caller."""

    code = "ERR_STALE_EPOCH"
