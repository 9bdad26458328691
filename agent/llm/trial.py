"""`try_model`: one real call of a model, before it is saved."""

from time import monotonic

from agent.core.errors import ModelError
from agent.core.models import FrozenModel
from agent.llm.port import ModelClient, ModelRequest

TRIAL_TOKENS = 16
_PROMPT = "Reply with the word: ready"


class ModelTrial(FrozenModel):
    """The outcome of one real call. `reply` is the beginning of the model's text, `base_url` where the API is."""

    ok: bool
    reason: str = ""
    model: str = ""
    base_url: str = ""
    reply: str = ""
    seconds: float = 0.0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    vision: bool = False
    """Whether the model sees pictures, if it was tried."""


async def try_model(client: ModelClient, model: str, *, timeout_s: float) -> ModelTrial:
    """Asks the model for one word. Never raises `ModelError`: the trial says what went wrong."""
    request = ModelRequest(
        model=model,
        messages=({"role": "user", "content": _PROMPT},),
        purpose="probe",
        temperature=0.0,
        max_tokens=TRIAL_TOKENS,
        timeout_s=timeout_s,
        retry_timeouts=False,
    )
    started = monotonic()
    try:
        reply = await client.complete(request)
    except ModelError as error:
        return ModelTrial(ok=False, reason=error.message, model=model, seconds=round(monotonic() - started, 3))
    # A model that thinks spends these few tokens on its thoughts: that it replied at all is what counts.
    written = reply.text.strip() or reply.reasoning.strip()
    is_usable = bool(written) or reply.usage.completion_tokens > 0
    return ModelTrial(
        ok=is_usable,
        reason="" if is_usable else "the model sent an empty reply",
        model=model,
        reply=written[:200],
        seconds=round(monotonic() - started, 3),
        prompt_tokens=reply.usage.prompt_tokens,
        completion_tokens=reply.usage.completion_tokens,
    )
