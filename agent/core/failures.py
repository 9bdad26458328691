"""The failure table: what each error code means and what to do. And the form in which callers learn about a failure.

`agent/core/errors.py` has the exceptions that carry these codes.
"""

from datetime import UTC, datetime
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, Field, JsonValue


class FailureKind(NamedTuple):
    """One row of the failure table."""

    meaning: str
    action: str
    http_status: int
    recoverable: bool


OUTCOME_UNKNOWN = "it is not known whether the call was executed"
"""The end of messages about calls that may have had their effect."""

FAILURES: dict[str, FailureKind] = {
    "ERR_BAD_REQUEST": FailureKind("the request cannot be understood", "refuse it before a run exists", 400, False),
    "ERR_AUTH": FailureKind("there is no API key, or it is invalid", "refuse; create or renew a key", 401, False),
    "ERR_SCOPE": FailureKind("the API key does not allow this", "refuse; use a key with the scope", 403, False),
    "ERR_RATE_LIMIT": FailureKind(
        "the API key's limit per minute or of parallel runs is reached", "refuse; try later", 429, True
    ),
    "ERR_IDEMPOTENCY": FailureKind("the Idempotency-Key was used for another request", "use a new key", 422, False),
    "ERR_QUOTA": FailureKind("the API key's budget is spent", "refuse; raise the budget", 429, False),
    "ERR_GUARDRAIL_INJECTION": FailureKind(
        "prompt injection was found", "block the request, warn the user", 400, False
    ),
    "ERR_GUARDRAIL_UNSAFE": FailureKind(
        "unsafe content or personal data",
        "block a request; write an answer once more under a stricter instruction, then block it",
        400,
        False,
    ),
    "ERR_TOO_LARGE": FailureKind("the request is larger than allowed", "refuse it before a run exists", 413, False),
    "ERR_ROOM_UNKNOWN": FailureKind("no room has this name", "refuse it before a run exists", 404, False),
    "ERR_VALIDATION": FailureKind(
        "the value to store does not pass a check", "change nothing; correct what the message names", 400, True
    ),
    "ERR_NOT_FOUND": FailureKind("it does not exist or belongs to somebody else", "refuse", 404, False),
    "ERR_CONFLICT": FailureKind("its state forbids this", "refuse; read it again", 409, False),
    "ERR_BUSY": FailureKind("the gateway is stopping or full", "refuse; try again later", 503, True),
    "ERR_CONFIG": FailureKind("a setting is missing or wrong", "do not start; name the setting", 500, False),
    "ERR_MODEL_NOT_CONFIGURED": FailureKind("no model is configured for this tier", "work in rules mode", 503, False),
    "ERR_MODEL_AUTH": FailureKind(
        "the provider refused the key", "fall back to rules; notify the operator", 502, False
    ),
    "ERR_MODEL_RATE_LIMIT": FailureKind(
        "the provider's rate limit is reached", "ask 3 times in all, with back-off", 429, True
    ),
    "ERR_MODEL_TIMEOUT": FailureKind("the model did not answer in time", "retry once with a longer limit", 504, True),
    "ERR_MODEL_CONTEXT": FailureKind("the prompt is longer than the model's context", "refuse or shorten", 400, False),
    "ERR_MODEL_DOWN": FailureKind("the provider is unreachable or failing", "retry twice, then fall back", 502, True),
    "ERR_MODEL_REQUEST": FailureKind(
        "the provider refuses the request as it is", "correct the parameter it names; do not repeat it", 400, False
    ),
    "ERR_MODEL_OUTPUT": FailureKind(
        "the reply is not a usable completion", "judge the step; ask again or fall back", 502, True
    ),
    "ERR_PLAN_INVALID": FailureKind(
        "the planner returned no valid plan", "ask once more, then use the rule planner", 500, True
    ),
    "ERR_REFERENCE": FailureKind("a step refers to a value that does not exist", "replan", 500, True),
    "ERR_TOOL_UNKNOWN": FailureKind("this room has no such tool", "replan", 400, True),
    "ERR_TOOL_QUARANTINED": FailureKind(
        "a foreign MCP tool differs from what was accepted",
        "refuse; review it: stepgate mcp-servers review",
        403,
        False,
    ),
    "ERR_TOOL_DENIED": FailureKind("the tool is outside the step's scope", "tell the model; record it", 403, True),
    "ERR_TOOL_INPUT": FailureKind(
        "the arguments do not fit the tool, or name something that does not exist", "replan with the problem", 400, True
    ),
    "ERR_TOOL_SETUP": FailureKind(
        "the data that the tool works on has not been provided yet",
        "stop; run the command that the message names",
        409,
        False,
    ),
    "ERR_TOOL_OUTPUT": FailureKind("the result does not fit the tool's schema", "retry once, then replan", 502, True),
    "ERR_TOOL_TIMEOUT": FailureKind("the tool did not finish in time", "retry once, then replan", 504, True),
    "ERR_TOOL_FAILED": FailureKind("the tool reported or raised an error", "retry once, then replan", 502, True),
    "ERR_TOOL_UNKNOWN_OUTCOME": FailureKind(
        "a side effect started and its result never arrived: a crash, a time limit or a broken connection",
        "do not repeat it, unless a read shows that it did not happen; otherwise a person must check",
        500,
        False,
    ),
    "ERR_SKILL_UNKNOWN": FailureKind("this room has no such skill", "replan", 400, True),
    "ERR_SKILL_TURNS": FailureKind("the skill used all its turns without an answer", "replan", 500, True),
    "ERR_SUBAGENT_FAILED": FailureKind(
        "a sub-agent could not do its task", "return what it found to the caller, which decides", 502, True
    ),
    "ERR_VERIFICATION": FailureKind(
        "the result did not pass a gate of its room", "replan within the budget, then fail", 422, False
    ),
    "ERR_BUDGET": FailureKind("the run has spent one of its budgets", "stop and answer with what is known", 200, False),
    "ERR_CANCELLED": FailureKind("the run was cancelled", "stop and answer with what is known", 200, False),
    "ERR_RUN_GIVEN_UP": FailureKind(
        "the run was claimed several times without making progress",
        "read the logs of the processes that executed it; send the request again",
        500,
        False,
    ),
    "ERR_STORE_FULL": FailureKind("the disk of the data folder is full", "free space; runs resume", 503, True),
    "ERR_STORE": FailureKind("the database cannot be read or written", "see the message; runs resume", 503, True),
    "ERR_STORE_NEWER": FailureKind("the data folder was written by a newer version", "upgrade Stepgate", 500, False),
    "ERR_EMBEDDER": FailureKind(
        "the embedder is unreachable or returns no vectors", "use the local embedder; catch up later", 502, True
    ),
    "ERR_VECTOR_SPACE": FailureKind(
        "vectors of two embedders would be mixed", "refuse; reindex, or configure the former embedder", 409, False
    ),
    "ERR_MEMORY_NO_RESULTS": FailureKind(
        "nothing in the collection is relevant enough", "search more broadly, or ask what is meant", 404, True
    ),
    "ERR_TAILOR_HALLUCINATION": FailureKind(
        "the documents do not support the answer",
        'write it again under strict instructions, else say "I don\'t know"',
        502,
        True,
    ),
    "ERR_TAILOR_SCHEMA": FailureKind(
        "the answer does not fit the requested JSON schema",
        "ask the model twice, then refuse; allow an empty result in the schema, or ask without it",
        422,
        False,
    ),
    "ERR_CONNECTOR_AUTH": FailureKind(
        "the source refuses the credential", "ask for a new one, or skip the source", 403, False
    ),
    "ERR_CONNECTOR_NOT_FOUND": FailureKind("the source does not exist", "report it; skip the source", 404, False),
    "ERR_CONNECTOR_FAILED": FailureKind("the source could not be read", "try again later, or skip it", 502, True),
    "ERR_CONNECTOR_REFUSED": FailureKind(
        "the source forbids access to it, or it lies outside the source", "report it; skip it", 403, False
    ),
    "ERR_PARSER_ENCRYPTED": FailureKind("the file needs a password", "ask for it, or skip the file", 422, False),
    "ERR_PARSER_UNSUPPORTED": FailureKind(
        "the type of the file is not supported", "report it; skip the file", 422, False
    ),
    "ERR_PARSER_CORRUPT": FailureKind(
        "the file is damaged or unsafe to unpack", "report it; skip the file", 422, False
    ),
    "ERR_PARSER_EMPTY": FailureKind("the file contains no text", "report it; skip the file", 422, False),
    "ERR_TIMEOUT": FailureKind("a file or a source took too long", "retry once, then skip it", 504, True),
    "ERR_LLM_NOT_CONFIGURED": FailureKind(
        "no model is configured for conversations", "set one up, or AGENT_CONVERSATIONS_REQUIRE_LLM=false", 400, False
    ),
    "ERR_CONVERSATION_NOT_ACTIVE": FailureKind(
        "the conversation was applied or abandoned",
        "start another one, or one from its pipeline (`from_conversation`)",
        400,
        False,
    ),
    "ERR_PIPELINE_MISSING": FailureKind("the conversation has no pipeline yet", "ask for one first", 400, False),
    "ERR_BLOCKING_UNCERTAINTY": FailureKind(
        "the conversation has unresolved blocking uncertainties", "resolve them, or apply with force", 400, False
    ),
    "ERR_STALE_EPOCH": FailureKind(
        "another process has claimed this run", "stop at once; it continues there", 409, False
    ),
    "ERR_INTERNAL": FailureKind("an internal error: a bug in Stepgate", "report it with the request id", 500, False),
}


class AgentFailure(BaseModel):
    """What a caller learns about a failure; the same shape at every door."""

    model_config = ConfigDict(frozen=True)

    agent_id: str = Field(description="the part that failed: planner, supervisor, a tool's name, gateway ...")
    error_code: str = Field(description="a key of the failure table")
    message: str = Field(description="what happened, to what, and what to do")
    recoverable: bool
    stage: str = Field(
        default="",
        description="where it happened: request (no run was started), a stage of the run (guard, understand, retrieve, "
        "plan, approve, execute, verify, translate, finalize), the check that refused a room or a tool (identifier, "
        "yaml_parse, check_config, syntax ...), or connect or parse for a source or a file",
    )
    details: dict[str, JsonValue] = Field(default_factory=dict)
    timestamp: datetime = Field(default_factory=lambda: datetime.now(UTC))


_STAGES_BY_CODE = (("ERR_GUARDRAIL_", "guard"), ("ERR_CONNECTOR_", "connect"), ("ERR_PARSER_", "parse"))


def get_stage(failure: AgentFailure) -> str:
    """The stage of a failure; one without a run failed at the check that refused it, by its own code's stage,
    or as a request."""
    check = failure.details.get("stage")
    named = (stage for prefix, stage in _STAGES_BY_CODE if failure.error_code.startswith(prefix))
    return failure.stage or (check if isinstance(check, str) and check else next(named, "request"))
