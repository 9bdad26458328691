"""`POST /v1/guardrails/check`: a text checked by a room's guardrails, without a run."""

from typing import Annotated, get_args

from fastapi import APIRouter, Request, Response
from pydantic import ConfigDict, JsonValue, WithJsonSchema

from agent.core.errors import RequestError
from agent.core.failures import AgentFailure
from agent.core.models import JsonObject
from agent.policy.guardrails import models
from agent.policy.guardrails.models import CheckType, GuardrailsOutput
from agent.policy.redaction.requests import make_blocked_failure
from agent.policy.redaction.text_check import check_text
from gateway.access.dependencies import CurrentCaller, require_scope
from gateway.doors.agent import ERRORS
from gateway.doors.dependencies import Gateway
from gateway.doors.json_body import JsonRoute
from gateway.doors.strict_body import StrictBody
from gateway.render.error_responses import FieldError, build_error_response
from gateway.render.errors import FailureBody

router = APIRouter(tags=["guardrails"], route_class=JsonRoute, dependencies=[require_scope("agent")])

CHECK_TYPES: tuple[CheckType, ...] = get_args(CheckType)


class GuardrailsInput(StrictBody):
    """A text to check: `input_validation` as a prompt, `output_safety` as an answer. Without `room`, the default room's
    policy holds. `metadata: {"tainted": true}` marks a text from outside.
    """

    # Checked by hand, so that a missing field is a 422 too; the schema says what is required.
    model_config = ConfigDict(json_schema_extra={"additionalProperties": False, "required": ["content", "check_type"]})

    content: Annotated[JsonValue, WithJsonSchema({"type": "string"})] = None
    check_type: Annotated[JsonValue, WithJsonSchema({"type": "string", "enum": list(CHECK_TYPES)})] = None
    metadata: Annotated[JsonValue, WithJsonSchema({"type": "object", "nullable": True})] = None
    room: str | None = None


class BlockedTextError(RequestError):
    """Raised for a text that the room's policy blocks. Its code is that of the category that was found."""

    def __init__(self, found: GuardrailsOutput) -> None:
        self._failure = make_blocked_failure(found)
        self._result: JsonObject = found.model_dump(mode="json")
        super().__init__(self._failure.message, agent_id="guardrails")

    def to_failure(self) -> AgentFailure:
        """The failure with the result of the check."""
        message = f"the text is blocked: {self._result['reasoning']}"
        return self._failure.model_copy(update={"message": message, "details": {"check": self._result}})


@router.post(
    "/v1/guardrails/check",
    response_model=GuardrailsOutput,
    responses={422: {"model": FailureBody, "description": "The room's policy blocks the text"}, **ERRORS},
)
async def check_guardrails(
    body: GuardrailsInput, http: Request, stepgate: Gateway, caller: CurrentCaller
) -> GuardrailsOutput | Response:
    """Return what the room's guardrails find in a text, and the text as they let it pass; 422 if they block it, with
    the findings in `error.details.check`. Nothing is stored.
    """
    room = stepgate.rooms.get(body.room, caller.owner)
    findings = await check_text(_to_guardrails_input(body), room, stepgate.settings.list_secrets())
    if findings.action == "block":
        return build_error_response(BlockedTextError(findings), http.url.path, status=422)
    return findings


def _to_guardrails_input(body: GuardrailsInput) -> models.GuardrailsInput:
    """The text with the kind of check. Raises `FieldError` for values without a meaning."""
    if not isinstance(body.content, str):
        raise FieldError("content must be a text", "content")
    if body.metadata is not None and not isinstance(body.metadata, dict):
        raise FieldError("metadata must be an object", "metadata")
    for check_type in CHECK_TYPES:
        if body.check_type == check_type:
            return models.GuardrailsInput(content=body.content, check_type=check_type, metadata=body.metadata)
    raise FieldError(f"check_type must be one of {', '.join(CHECK_TYPES)}", "check_type")
