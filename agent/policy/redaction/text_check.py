"""Checks one text by a room's policy without a run: what its guardrails would find in a prompt or an answer."""

from typing import TYPE_CHECKING

from agent.core.models import Room
from agent.policy.redaction.answers import make_output_guardrails
from agent.policy.redaction.requests import make_input_guardrails
from agent.policy.redaction.secrets import make_secret_finder

if TYPE_CHECKING:
    from agent.policy.guardrails import GuardrailsInput, GuardrailsOutput


async def check_text(given: "GuardrailsInput", room: Room, secrets: tuple[str, ...]) -> "GuardrailsOutput":
    """The findings and the text as the room lets it pass: a prompt by `guard_input`, an answer by
    `guard_output`. This gateway's own `secrets` are removed first, so places are those in the text without them.
    """
    secret_finder = make_secret_finder(secrets, "known")
    if given.check_type == "input_validation":
        cleaned = given.model_copy(update={"content": secret_finder.redact(given.content)})
        return await make_input_guardrails(room.guard_input).check(cleaned)
    if not room.guard_output.redacts_secrets:
        given = given.model_copy(update={"content": secret_finder.redact(given.content)})
    return await make_output_guardrails(room.guard_output, make_secret_finder(secrets, "all")).check(given)
