"""Every exception that may leave the engine, as a tree. What its code means and what to do: `agent/core/failures.py`.

    AgentError                      catch this at the edge: it has `code`, `message`, `details` and `to_failure()`
      RequestError                  the request is refused; change it, or wait
        BadRequestError
        AuthError
        ScopeError
        RateLimitError
        QuotaError
        TooLargeError
        RoomUnknownError
        NotFoundError
        ConflictError
          CollectionLockedError
        BusyError
      ModelError                    a call of a model failed
        ModelNotConfiguredError
        ModelAuthError
        ModelRateLimitError
        ModelTimeoutError
        ModelContextError
        ModelRequestError
          ModelEndpointError
        ModelDownError
          ModelUnreachableError
        ModelOutputError
      ToolError                     a call of a tool failed
        ToolUnknownError
          ToolQuarantinedError
        ToolDeniedError
        ToolInputError
        ToolSetupError
        ToolOutputError
        ToolTimeoutError
        ToolOutcomeUnknownError
      RunError                      a run cannot reach its goal
        PlanInvalidError
        ReferenceMissingError
        SkillUnknownError
        SkillTurnsError
        SubAgentFailedError
        BudgetError
        UnsafeAnswerError
      StoreError                    the database failed
        StoreFullError
        LogDamagedError
        StoreNewerError
      VectorError                   vectors cannot be computed or compared
        EmbedderError
        VectorSpaceError
      ConfigError                   a setting is wrong; only at start
      StaleEpochError               another process has claimed the run; stop

Errors of other packages are subclasses of the first level: of documents that cannot be read, `IngestError`. Raise the
narrowest `AgentError`. Doors render `error.to_failure()` and never look inside. Failures of tools and steps that the
supervisor can act on travel as data (`StepOutput.error`) with the same codes.
"""

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import JsonValue

from agent.core.failures import FAILURES, AgentFailure, FailureKind

if TYPE_CHECKING:
    from agent.core.events.call import FailedUpstream


class AgentError(Exception):
    """The base class. Raise a subclass; `code` selects the row of the failure table."""

    code: ClassVar[str] = "ERR_INTERNAL"

    def __init__(self, message: str, *, agent_id: str = "gateway", **details: JsonValue) -> None:
        super().__init__(message)
        self.message = message
        self.agent_id = agent_id
        self.details = details

    @property
    def kind(self) -> FailureKind:
        """The row of the failure table for this error."""
        return FAILURES[self.code]

    def to_failure(self) -> AgentFailure:
        """Converts this error to its wire form."""
        return AgentFailure(
            agent_id=self.agent_id,
            error_code=self.code,
            message=self.message,
            recoverable=self.kind.recoverable,
            details=self.details,
        )


class RequestError(AgentError):
    """The base class of refusals: nothing was begun, as with `RunError`. The caller can change the request or wait."""

    code = "ERR_BAD_REQUEST"


class BadRequestError(RequestError):
    """Raised by doors and by the guard before a run exists. `param` in the details is the dotted path of the field."""


class AuthError(RequestError):
    """Raised for a caller without a key, or with an unknown, expired or revoked one."""

    code = "ERR_AUTH"


class ScopeError(RequestError):
    """Raised for a caller whose key does not allow the action."""

    code = "ERR_SCOPE"


class RateLimitError(RequestError):
    """Raised for a caller who has used the key's limit per minute or of parallel runs. A later attempt may succeed."""

    code = "ERR_RATE_LIMIT"


class QuotaError(RequestError):
    """Raised for a caller whose key has spent its budget. Trying again does not help."""

    code = "ERR_QUOTA"


class TooLargeError(RequestError):
    """Raised if a body, a message or a file exceeds its limit."""

    code = "ERR_TOO_LARGE"


class RoomUnknownError(RequestError):
    """Raised by the room registry; the OpenAI door shows it as `model_not_found`."""

    code = "ERR_ROOM_UNKNOWN"


class NotFoundError(RequestError):
    """Raised by the stores for what does not exist or, deliberately in the same words, is another owner's."""

    code = "ERR_NOT_FOUND"


class ConflictError(RequestError):
    """Raised if the thing exists but its state forbids the action, such as cancelling a finished run."""

    code = "ERR_CONFLICT"


class CollectionLockedError(ConflictError):
    """Raised while another job writes into the collection. Try again after it has finished."""


class BusyError(RequestError):
    """Raised while the gateway drains, or when the queue of runs is full."""

    code = "ERR_BUSY"


class ModelError(AgentError):
    """The base class of everything a model call can fail with. Planner and supervisor fall back to rules on it."""

    code = "ERR_MODEL_DOWN"
    retry_after_s: float | None = None
    requests: int = 1
    """How many HTTP requests were made before it was raised, transport retries included."""
    failed_upstreams: "tuple[FailedUpstream, ...]" = ()
    """The upstreams that failed in this call, where it has several."""
    remedy: Literal["", "address", "key"] = ""
    """What is probably wrong. `hint`, the end of the message, says where the operator can correct it."""
    hint: str = ""


class ModelNotConfiguredError(ModelError):
    """Raised if a tier has no model. Not a fault: the run continues in rules mode."""

    code = "ERR_MODEL_NOT_CONFIGURED"


class ModelAuthError(ModelError):
    """Raised on 401 and 403. Never retried."""

    code = "ERR_MODEL_AUTH"


class ModelRateLimitError(ModelError):
    """Raised on 429. Attempted three times in all, with back-off and `Retry-After`."""

    code = "ERR_MODEL_RATE_LIMIT"


class ModelTimeoutError(ModelError):
    """Raised when a call exceeds its time limit. Retried once with twice the limit."""

    code = "ERR_MODEL_TIMEOUT"


class ModelContextError(ModelError):
    """Raised if the prompt exceeds the model's context. Never retried."""

    code = "ERR_MODEL_CONTEXT"


class ModelRequestError(ModelError):
    """Raised on 400, 409, 413, 415 and 422: the provider refuses this request. Never repeated unchanged.
    `details` holds the HTTP `status` and, where the provider names them, its `param` and `code`."""

    code = "ERR_MODEL_REQUEST"
    written = ""  # by the model, where the provider refuses that: a call that was not offered (Groq)


class ModelEndpointError(ModelRequestError):
    """Raised on any other 4xx, such as 404 for an unknown path or model: the settings are wrong, not the request.
    Never repeated."""

    code = "ERR_MODEL_DOWN"


class ModelDownError(ModelError):
    """Raised on connection errors and 5xx. Retried twice, also for a refused connection."""


class ModelUnreachableError(ModelDownError):
    """Raised if no connection could be made at all. The next call of the same run would fail in the same way."""


class ModelOutputError(ModelError):
    """Raised if a 200 reply is not a completion: no JSON, no choices, half a stream, or empty. Not retried here: the
    step's supervisor or the planner decides."""

    code = "ERR_MODEL_OUTPUT"


class ToolError(AgentError):
    """Raised by a tool for a failure the agent can act on. Supervisor and model read its message. Any other exception
    of a tool is reported as `ERR_TOOL_FAILED` with the exception's name only."""

    code = "ERR_TOOL_FAILED"


class ToolUnknownError(ToolError):
    """Raised by the registry for an unknown tool name."""

    code = "ERR_TOOL_UNKNOWN"


class ToolQuarantinedError(ToolUnknownError):
    """Raised by the registry, and by the tool itself, for a foreign tool whose description or schemas differ from those
    a person accepted. The message says which command to run. The tool was not called."""

    code = "ERR_TOOL_QUARANTINED"


class ToolDeniedError(ToolError):
    """Raised by the tool gateway for a call outside of the step's scope. The tool was not called."""

    code = "ERR_TOOL_DENIED"


class ToolInputError(ToolError):
    """Raised if arguments do not fit the schema (the tool was not called), and by tools for arguments that can never
    succeed, such as a missing file. Repeating the call does not help."""

    code = "ERR_TOOL_INPUT"


class ToolSetupError(ToolError):
    """Raised by a tool whose operator has not provided yet what it works on. The message says which command or setting
    does. Ends the run, because another plan would fail too; if another tool may help, raise `ToolInputError`."""

    code = "ERR_TOOL_SETUP"


class ToolOutputError(ToolError):
    """Raised after the call if the result does not fit the schema."""

    code = "ERR_TOOL_OUTPUT"


class ToolTimeoutError(ToolError):
    """Raised when a tool exceeds its time limit."""

    code = "ERR_TOOL_TIMEOUT"


class ToolOutcomeUnknownError(ToolError):
    """Raised when a call that may change something was sent and its result never came: it ran out of time, or its
    connection broke. Unlike `ToolTimeoutError`, which is of calls that may be repeated."""

    code = "ERR_TOOL_UNKNOWN_OUTCOME"


class RunError(AgentError):
    """The base class of what keeps a run from its goal: its plan, a skill, a sub-agent, a budget or a guard. Unlike
    `ModelError` and `ToolError`, which are about one call."""


class PlanInvalidError(RunError):
    """Raised by the planning pipeline with every problem of a reply, in the form that is sent back to the model."""

    code = "ERR_PLAN_INVALID"

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems), agent_id="planner", problems=list(problems))
        self.problems = problems


class ReferenceMissingError(RunError):
    """Raised if `{"$from": ...}` refers to a value that the earlier result does not contain."""

    code = "ERR_REFERENCE"


class SkillUnknownError(RunError):
    """Raised by the skill library for an unknown name."""

    code = "ERR_SKILL_UNKNOWN"


class SkillTurnsError(RunError):
    """Raised if a skill uses all its turns without a final text."""

    code = "ERR_SKILL_TURNS"


class SubAgentFailedError(RunError):
    """Raised if a sub-agent fails for a reason other than time or budget. `partial_result` is what it has so far."""

    code = "ERR_SUBAGENT_FAILED"

    def __init__(self, agent_id: str, reason: str, partial_result: dict[str, JsonValue] | None = None) -> None:
        super().__init__(f"the sub-agent {agent_id} failed: {reason}", agent_id=agent_id)
        self.reason = reason
        self.partial_result = partial_result or {}


class BudgetError(RunError):
    """Raised before a model call that would exceed one of the run's budgets. The run ends with a partial answer."""

    code = "ERR_BUDGET"


class UnsafeAnswerError(RunError):
    """Raised for an answer that contains something its room does not allow."""

    code = "ERR_GUARDRAIL_UNSAFE"


class StoreError(AgentError):
    """Raised by the stores if the database fails."""

    code = "ERR_STORE"


class StoreFullError(StoreError):
    """Raised if the disk is full. Nothing of the unit of work was written."""

    code = "ERR_STORE_FULL"


class LogDamagedError(StoreError):
    """Raised if an event of a run cannot be read. Other runs are not affected."""


class StoreNewerError(StoreError):
    """Raised at start if a newer version wrote the data folder."""

    code = "ERR_STORE_NEWER"


class VectorError(AgentError):
    """The base class of failures to compute or to compare vectors. Searches then go by words."""

    code = "ERR_EMBEDDER"


class EmbedderError(VectorError):
    """Raised by an embedder that is unreachable or returns no vectors. The memory falls back to its local embedder."""


class VectorSpaceError(VectorError):
    """Raised by vector indexes instead of comparing vectors of different embedders or dimensions."""

    code = "ERR_VECTOR_SPACE"


class ConfigError(AgentError):
    """Raised only at start. Its message is one line and names the setting."""

    code = "ERR_CONFIG"


class StaleEpochError(AgentError):
    """Raised by an append whose writer has lost the run to another claim. Stop; do not report it to the caller."""

    code = "ERR_STALE_EPOCH"
