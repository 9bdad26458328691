"""`ParameterSupport`: learns which parameters, and how much of JSON Schema, the models of one endpoint refuse, from the
endpoint's errors.

There is no list of models: which of them take `max_tokens` or `temperature` changes with every release. What is learnt
lasts as long as the process.
"""

import logging
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import replace

from agent.core.errors import ModelError
from agent.core.models import PROVIDER_FIELDS, JsonObject
from agent.llm.faults import is_schema_refusal, is_unexplained_refusal, list_refused_parameters
from agent.llm.port import ModelChunk, ModelReply, ModelRequest
from agent.llm.schema_derivation import derive_schema
from agent.llm.schema_dialect import SMALLEST, WHOLE, SchemaDialect, narrow_dialect
from agent.llm.schema_values import restore_text

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
DERIVED_SCHEMAS = 16
log = logging.getLogger(__name__)


class ParameterSupport:
    """The parameters that the models of one endpoint refuse, and the dialect of schemas that they take."""

    def __init__(self, dialect: SchemaDialect = WHOLE) -> None:
        """`dialect` is the one that the endpoint is known to take."""
        self._first = dialect
        self._refused: dict[str, set[str]] = {}
        self._dialects: dict[str, SchemaDialect | None] = {}
        self._doubted: dict[str, SchemaDialect | None] = {}
        """The dialect of a model before one of its calls was refused without a reason."""
        self._derived: deque[tuple[JsonObject, SchemaDialect, tuple[JsonObject, bool]]] = deque(maxlen=DERIVED_SCHEMAS)
        """The newest schemas with what was derived of them: a call asks for it with its body and with each chunk, and
        forty tools take 50 ms."""

    def build_body(self, request: ModelRequest, *, stream: bool) -> JsonObject:
        """The parameters of a call in OpenAI's wire form, without those its model is known to refuse."""
        refused = self._refused.get(request.model)
        body = request.to_openai(stream=stream, schema=self._derive(request)[0])
        if not refused:
            return body
        for name in sorted(refused):
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
        model, parameter = request.model, _find_refused(sent, error)
        if parameter is not None:
            refused_names = self._refused.setdefault(model, set())
            if parameter not in refused_names:  # a parallel call may have learnt it meanwhile
                refused_names.add(parameter)
                log.info("the model %s refuses %s, which is no longer sent: %s", model, parameter, error.message)
            return True
        has_own_schema = request.response_schema is not None and _SCHEMA not in request.options
        if not has_own_schema or _SCHEMA not in sent:
            if model in self._doubted:  # it was not the schema
                self._dialects[model] = self._doubted.pop(model)
            return False
        if is_schema_refusal(error):
            self._narrow(request, sent, error)
            return True
        return is_unexplained_refusal(error) and self._doubt(request, sent)

    def _narrow(self, request: ModelRequest, sent: JsonObject, error: ModelError) -> None:
        """Takes the next smaller dialect whose schema differs from the one that was sent."""
        dialect = self._get_dialect(request.model)
        while dialect is not None and self._is_sent(request, sent):  # a parallel call may have learnt it meanwhile
            dialect = narrow_dialect(dialect, error.message)
            self._dialects[request.model] = dialect
        learnt = "no JSON schema" if dialect is None else "a smaller part of JSON Schema"
        log.info("the model %s takes %s: %s", request.model, learnt, error.message)

    def _doubt(self, request: ModelRequest, sent: JsonObject) -> bool:
        """Tries the smallest dialect, and then none, for a call that may be refused over its schema."""
        dialect = self._get_dialect(request.model)
        self._doubted.setdefault(request.model, dialect)
        self._dialects[request.model] = None if dialect is None else dialect.join(SMALLEST)
        if self._is_sent(request, sent):
            self._dialects[request.model] = None
        return True

    def restore_reply(self, request: ModelRequest, reply: ModelReply) -> ModelReply:
        """A reply as the request's own schema has it. It shows that the schema was not what had been refused."""
        self._doubted.pop(request.model, None)
        schema = request.response_schema
        if schema is None or not reply.text or not self._derive(request)[1]:
            return reply
        return replace(reply, text=restore_text(reply.text, schema.schema))

    async def restore_chunks(
        self, request: ModelRequest, chunks: AsyncGenerator[ModelChunk, None]
    ) -> AsyncIterator[ModelChunk]:
        """The chunks of a reply as the request's own schema has it: if it was written in another form, its text comes
        as a whole with the chunk that ends it."""
        texts: list[str] = []
        async with aclosing(chunks):
            async for chunk in chunks:
                schema = request.response_schema
                if schema is None or not self._derive(request)[1]:
                    yield chunk
                    continue
                texts.append(chunk.text)
                is_end = chunk.finish_reason is not None
                yield chunk._replace(text=restore_text("".join(texts), schema.schema) if is_end else "")
        self._doubted.pop(request.model, None)

    def _derive(self, request: ModelRequest) -> tuple[JsonObject | None, bool]:
        """The request's schema in its model's dialect, and whether its values differ in form; None for no schema."""
        dialect = self._get_dialect(request.model)
        if request.response_schema is None or dialect is None:
            return None, False
        schema = request.response_schema.schema
        for own, of, derived in self._derived:
            if own is schema and of == dialect:
                return derived
        derived = derive_schema(schema, dialect)
        self._derived.append((schema, dialect, derived))
        return derived

    def _get_dialect(self, model: str) -> SchemaDialect | None:
        return self._dialects.get(model, self._first)

    def _is_sent(self, request: ModelRequest, sent: JsonObject) -> bool:
        """Whether a body with the model's dialect would have the schema that was sent."""
        schema = self._derive(request)[0]
        return schema is not None and sent.get(_SCHEMA) == request.to_openai(stream=False, schema=schema)[_SCHEMA]


def _find_refused(sent: JsonObject, error: ModelError) -> str | None:
    """The one parameter of the body that the error refuses and that may be left out."""
    messages = sent["messages"] if isinstance(sent["messages"], list) else []
    fields = {key for message in messages if isinstance(message, dict) for key in message}
    for name in list_refused_parameters(error):
        if name in _OPTIONAL and name in sent:
            return name
        if name in _OPTIONAL_FIELDS and name in fields:
            return name
    return None
