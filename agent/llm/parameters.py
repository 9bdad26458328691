"""`ParameterSupport`: learns which parameters the models of one endpoint refuse, from the endpoint's errors.

There is no list of models: which of them take `max_tokens` or `temperature` changes with every release. What is learnt
lasts as long as the process.
"""

import logging
from collections.abc import Mapping

from agent.core.errors import ModelError
from agent.core.models import PROVIDER_FIELDS, JsonObject
from agent.llm.faults import is_schema_refusal, list_refused_parameters
from agent.llm.port import ModelRequest

_RENAMED: Mapping[str, str] = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
"""The two names of the limit: OpenAI's reasoning models refuse the old one, many other servers do not know the new."""
_OPTIONAL = frozenset({
    "temperature", "top_p", "top_k", "min_p", "presence_penalty", "frequency_penalty", "repetition_penalty", "seed",
    "stream_options", "user", "safety_identifier", "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention",
    "prediction", "service_tier", "store", *_RENAMED,
})  # fmt: skip
"""The parameters that may be left out: they tune the sampling or the bookkeeping. One that decides what is answered
(`stop`, `tools`, `response_format`, `reasoning_effort`) is not: leaving it out would answer another request."""
_OPTIONAL_FIELDS = PROVIDER_FIELDS | {"name"}
"""The fields of messages that may be left out. Some providers send reasoning and refuse to get it back (Groq)."""
_SCHEMA = "response_format"
log = logging.getLogger(__name__)


class ParameterSupport:
    """The parameters that the models of one endpoint refuse."""

    def __init__(self) -> None:
        self._refused: dict[str, set[str]] = {}

    def build_body(self, request: ModelRequest, *, stream: bool) -> JsonObject:
        """The parameters of a call in OpenAI's wire form, without those its model is known to refuse."""
        refused = self._refused.get(request.model)
        if not refused:
            return request.to_openai(stream=stream, with_schema=True)
        body = request.to_openai(stream=stream, with_schema=_SCHEMA not in refused)
        for name in sorted(refused - {_SCHEMA}):
            value = body.pop(name, None)
            renamed = _RENAMED.get(name)
            if value is not None and renamed is not None and renamed not in refused:
                body[renamed] = value
        fields = refused & _OPTIONAL_FIELDS
        messages = body["messages"]
        if fields and isinstance(messages, list):
            body["messages"] = [
                {key: value for key, value in message.items() if key not in fields}
                for message in messages
                if isinstance(message, dict)
            ]
        return body

    def learn(self, request: ModelRequest, sent: JsonObject, error: ModelError) -> bool:
        """Records what an error says about the body that was sent.

        Returns whether the next request would differ, so that it is worth repeating at once.
        """
        parameter = _find_refused(request, sent, error)
        if parameter is None:
            return False
        refused_names = self._refused.setdefault(request.model, set())
        if parameter not in refused_names:  # a parallel call may have learnt it meanwhile
            refused_names.add(parameter)
            log.info("the model %s refuses %s, which is no longer sent: %s", request.model, parameter, error.message)
        return True


def _find_refused(request: ModelRequest, sent: JsonObject, error: ModelError) -> str | None:
    """The one parameter of the body that the error refuses and that may be left out."""
    messages = sent["messages"] if isinstance(sent["messages"], list) else []
    fields = {key for message in messages if isinstance(message, dict) for key in message}
    for name in list_refused_parameters(error):
        if name in _OPTIONAL and name in sent:
            return name
        if name in _OPTIONAL_FIELDS and name in fields:
            return name
    own_schema = request.response_schema is not None and _SCHEMA not in request.options
    return _SCHEMA if own_schema and _SCHEMA in sent and is_schema_refusal(error) else None
