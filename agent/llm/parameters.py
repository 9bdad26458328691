"""`ParameterSupport`: learns from an endpoint's errors what its models do not take: parameters, values, parts of JSON
Schema, roles of messages, limits of replies.

There is no list of models: which of them take `max_tokens` or `temperature` changes with every release. What is learnt
lasts as long as the process.
"""

import logging
from collections import Counter, deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial

from agent.core.errors import ModelContextError, ModelDownError, ModelError, ModelRequestError
from agent.core.models import JsonObject
from agent.llm.message_roles import RoleForm
from agent.llm.port import ModelChunk, ModelReply, ModelRequest
from agent.llm.refusals import (
    counts_limit,
    find_bare_parameter,
    find_refused_value,
    is_call_id_refusal,
    is_role_refusal,
    is_schema_refusal,
    is_stream_refusal,
    is_unexplained_fault,
    is_unexplained_refusal,
    list_refused_parameters,
    names_system_role,
    read_context_sizes,
    strip_numbers,
)
from agent.llm.schema_derivation import derive_schema
from agent.llm.schema_dialect import SMALLEST, WHOLE, SchemaDialect, narrow_dialect
from agent.llm.schema_values import restore_text
from agent.llm.wire_form import (
    LEAST_REPLY_TOKENS,
    OPTIONAL,
    OPTIONAL_FIELDS,
    STREAM,
    ReplyRoom,
    WireForm,
    count_prompt_chars,
    encode_value,
    find_limit,
)

LEARNABLE = (ModelRequestError, ModelDownError, ModelContextError)
"""The errors that may say what a model does not take."""
_SCHEMA = "response_format"
_ROLE_FORMS: tuple[RoleForm, ...] = ("joined", "no_system")
DERIVED_SCHEMAS = 16
HOPELESS = 50
FAULTS = 2
"""How often a call with a schema must fail (500) before it is tried without."""
MOST_REQUESTS = 6
"""The requests of one call after which nothing more is tried on a guess."""
log = logging.getLogger(__name__)

Change = Callable[[WireForm], WireForm]
Kind = tuple[str, str | None]
"""What calls have in common whose forms are tried together: their purpose, and the name of their schema."""


class ParameterSupport:
    """How the requests of the models of one endpoint are written, learnt from its errors."""

    def __init__(self, dialect: SchemaDialect = WHOLE) -> None:
        """`dialect` is the one that the endpoint is known to take."""
        self._first = WireForm(dialect)
        self._forms: dict[str, WireForm] = {}
        self._certain: dict[str, WireForm] = {}
        """The form of a model before one of its calls was repeated on a guess."""
        self._hopeless: deque[tuple[str, str]] = deque(maxlen=HOPELESS)
        """The newest refusals, by model and words, against which no guess has helped."""
        self._replied: set[str] = set()
        self._faults: Counter[str] = Counter()
        """Calls with a schema that failed one after another, by model."""
        self._unsure: set[str] = set()
        """Models whose newest guess follows an error that does not say what is wrong, and that may pass by itself."""
        self._helped: dict[str, tuple[WireForm, Kind]] = {}
        """The form that has helped once after such an error, and the calls that it helped, by model."""
        self._derived: deque[tuple[JsonObject, SchemaDialect, tuple[JsonObject, bool]]] = deque(maxlen=DERIVED_SCHEMAS)
        """The newest schemas with what was derived of them: a call asks for it with its body and with each chunk, and
        forty tools take 50 ms."""

    def build_body(self, request: ModelRequest, *, stream: bool) -> JsonObject:
        """The parameters of a call in OpenAI's wire form, as its model is known to take them."""
        return self._write(request, self._get_form(request.model), stream=stream)

    def get_reply_limit(self, request: ModelRequest) -> int | None:
        """The tokens after which a streamed reply is cut, its thoughts included; None means no limit."""
        form = self._get_form(request.model)
        if request.max_tokens is None or not form.thinks or not _is_own(request):
            return request.reply_limit
        limits = [form.add_thoughts(request.max_tokens), request.tokens_left]
        return min(one for one in limits if one is not None)

    def has_replied(self, model: str) -> bool:
        """Whether the model has replied before."""
        return model in self._replied

    def learn(self, request: ModelRequest, bodies: Sequence[JsonObject], error: ModelError) -> bool:
        """Records what an error says about the body that was sent last. `bodies` are all that were sent for this call.

        Returns whether the next request would differ from all of them, so that it is worth repeating at once.
        """
        if self._count_fault(request, bodies[-1], error):
            return False
        steps = (
            self._learn_room,
            self._learn_parameter,
            self._learn_schema,
            self._learn_ids,
            self._learn_roles,
            self._guess,
        )
        is_learnt = any(step(request, bodies, error) for step in steps)
        if is_learnt and self._differs(request, bodies, self._get_form(request.model)):
            return True
        if request.model in self._certain:  # no guess has helped
            self._hopeless.append((request.model, strip_numbers(error.message)))
            self._unsure.discard(request.model)
            self._forms[request.model] = self._certain.pop(request.model)
        return False

    def confirm(self, request: ModelRequest, sent: JsonObject, *, thinks: bool) -> None:
        """Records that the model has replied to this body, so that what was guessed for it is right. `thinks` says that
        it wrote thoughts.
        """
        model = request.model
        self._replied.add(model)
        if request.response_schema is not None:
            self._faults.pop(model, None)
        self._confirm_guess(request, sent)
        if thinks and not self._get_form(model).thinks:
            self._note(model, lambda one: replace(one, thinks=True))

    def _confirm_guess(self, request: ModelRequest, sent: JsonObject) -> None:
        """Keeps the form that is tried if this body was written in it, and would not have been without: other calls may
        have been under way. After an error that did not say what is wrong a guess must help twice, and between that no
        call of the same kind may succeed without it: the server may only have been down for a while.
        """
        model, guess, kind = request.model, self._get_form(request.model), _get_kind(request)
        if model not in self._certain and model not in self._helped:
            return
        before = self._certain.get(model, guess)
        if not self._differs(request, [sent], before):
            form, helped_kind = self._helped.get(model, (before, None))
            if kind == helped_kind and self._differs(request, [sent], form):
                del self._helped[model]
            return
        if model not in self._certain or self._differs(request, [sent], guess):
            return
        del self._certain[model]
        form = guess if request.response_schema is not None else replace(guess, dialect=before.dialect)
        if model in self._unsure and model not in self._helped:
            self._forms[model], self._helped[model] = before, (form, kind)
        else:
            self._forms[model] = form
            self._helped.pop(model, None)
        self._unsure.discard(model)

    def _learn_room(self, request: ModelRequest, bodies: Sequence[JsonObject], error: ModelError) -> bool:
        """Asks for a shorter reply, if the prompt is too long only together with it."""
        sent = bodies[-1]
        name = find_limit(sent)
        limit = sent[name] if name is not None else None
        if not isinstance(error, ModelContextError) or not isinstance(limit, int):
            return False
        if not counts_limit(error.message, limit):
            return False
        sizes = read_context_sizes(error.message, limit)
        if sizes is not None and sizes.reply_tokens < LEAST_REPLY_TOKENS:
            return False
        if not self._try(request, bodies, partial(replace, reply_room=ReplyRoom(sizes, count_prompt_chars(sent)))):
            return False
        log.info("the model %s takes no reply of this length after its prompt: %s", request.model, error.message)
        return True

    def _learn_parameter(self, request: ModelRequest, bodies: Sequence[JsonObject], error: ModelError) -> bool:
        """Leaves out the one parameter of the body that is refused and that may be left out."""
        sent = bodies[-1]
        name = _find_refused(sent, error)
        if name is not None:
            log.info("the model %s refuses %s, which is no longer sent: %s", request.model, name, error.message)
            self._note(request.model, lambda form: replace(form, refused=form.refused | {name}))
            return True
        value_name = find_refused_value(error, OPTIONAL & sent.keys()) if _is_own(request) else None
        if value_name is None:
            return False
        # A limit that was fitted to its prompt differs from call to call: it is noted as it was before.
        form = replace(self._get_form(request.model), reply_room=None, refused_values=frozenset())
        unfitted = self._write(request, form, stream="stream" in sent)
        value = (value_name, encode_value(unfitted.get(value_name, sent[value_name])))
        log.info("the model %s refuses this %s: %s", request.model, value_name, error.message)
        self._note(request.model, lambda form: replace(form, refused_values=form.refused_values | {value}))
        return True

    def _learn_ids(self, request: ModelRequest, bodies: Sequence[JsonObject], error: ModelError) -> bool:
        """Rewrites the ids of tool calls."""
        if not is_call_id_refusal(error) or not self._try(request, bodies, partial(replace, short_ids=True)):
            return False
        log.info("the model %s gets short ids of tool calls: %s", request.model, error.message)
        return True

    def _learn_roles(self, request: ModelRequest, bodies: Sequence[JsonObject], error: ModelError) -> bool:
        """Takes the next form of messages that differs from the one that was sent."""
        if not is_role_refusal(error):
            return False
        form = self._get_form(request.model)
        further = _ROLE_FORMS[_ROLE_FORMS.index(form.roles) :] if form.roles in _ROLE_FORMS else _ROLE_FORMS
        for roles in further[-1:] if names_system_role(error) else further:
            if self._try(request, bodies, partial(replace, roles=roles)):
                log.info("the model %s gets its messages %s: %s", request.model, roles, error.message)
                return True
        return False

    def _learn_schema(self, request: ModelRequest, bodies: Sequence[JsonObject], error: ModelError) -> bool:
        """Takes the next smaller dialect whose schema differs from the one that was sent."""
        sent = bodies[-1]
        if not _has_own_schema(request, sent) or not is_schema_refusal(error):
            return False
        dialect = self._get_form(request.model).dialect
        while dialect is not None and self._is_sent(request, sent):  # a parallel call may have learnt it meanwhile
            dialect = narrow_dialect(dialect, error.message)
            self._set_dialect(request.model, dialect)
        learnt = "no JSON schema" if dialect is None else "a smaller part of JSON Schema"
        log.info("the model %s takes %s: %s", request.model, learnt, error.message)
        return True

    def _guess(self, request: ModelRequest, bodies: Sequence[JsonObject], error: ModelError) -> bool:
        """Tries one form after another for a call that is refused without a reason, unless none has helped before.

        A call of the engine's own is one that the endpoint must take in some form, whatever its words are.
        """
        model = request.model
        if not is_unexplained_refusal(error, in_any_words=_is_own(request)):
            return False
        if (model, strip_numbers(error.message)) in self._hopeless:
            return False
        current = self._get_form(model)
        certain = replace(self._certain.get(model, current), roles=current.roles)  # words may have named the roles
        if any(self._try(request, bodies, partial(_take, guess)) for guess in self._list_guesses(request, certain)):
            self._unsure.add(model)
            return True
        return False

    def _list_guesses(self, request: ModelRequest, form: WireForm) -> Iterator[WireForm]:
        """Yields forms that lack parts of the schema, all of it, our own parameters, the last two. The system's role
        comes last: without it instructions weigh less."""
        refused = form.refused | (OPTIONAL if _is_own(request) else {"stream_options"})
        if form.dialect is not None:
            yield replace(form, dialect=form.dialect.join(SMALLEST))
            yield replace(form, dialect=None)
        yield replace(form, refused=refused)
        yield replace(form, dialect=None, refused=refused)
        yield replace(form, roles="no_system")

    def _count_fault(self, request: ModelRequest, sent: JsonObject, error: ModelError) -> bool:
        """Counts the failures of a server with this model's schemas. After the second in a row the next attempt does
        without: some servers fail over each schema and do not say so."""
        if not is_unexplained_fault(error) or is_schema_refusal(error) or is_role_refusal(error):
            return False
        if not _has_own_schema(request, sent):
            return False
        self._faults[request.model] += 1
        if self._faults[request.model] >= FAULTS:
            self._unsure.add(request.model)
            self._certain.setdefault(request.model, self._get_form(request.model))
            self._forms[request.model] = replace(self._get_form(request.model), dialect=None)
        return True

    def _try(self, request: ModelRequest, bodies: Sequence[JsonObject], change: Change) -> bool:
        """Changes the form on a guess, if that gives a body that was not sent yet. Returns whether it does."""
        form = self._get_form(request.model)
        if len(bodies) >= MOST_REQUESTS or not self._differs(request, bodies, change(form)):
            return False
        self._certain.setdefault(request.model, form)
        self._forms[request.model] = change(form)
        return True

    def _note(self, model: str, change: Change) -> None:
        """Changes the form of a model, and the one before a guess."""
        self._forms[model] = change(self._get_form(model))
        if model in self._certain:
            self._certain[model] = change(self._certain[model])

    def _set_dialect(self, model: str, dialect: SchemaDialect | None) -> None:
        self._note(model, lambda form: replace(form, dialect=dialect))

    def restore_reply(self, request: ModelRequest, reply: ModelReply) -> ModelReply:
        """A reply as the request's own schema has it."""
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

    def _derive(self, request: ModelRequest, form: WireForm | None = None) -> tuple[JsonObject | None, bool]:
        """The request's schema in its model's dialect, and whether its values differ in form; None for no schema."""
        dialect = (form or self._get_form(request.model)).dialect
        if request.response_schema is None or dialect is None:
            return None, False
        schema = request.response_schema.schema
        for own, of, derived in self._derived:
            if own is schema and of == dialect:
                return derived
        derived = derive_schema(schema, dialect)
        self._derived.append((schema, dialect, derived))
        return derived

    def _get_form(self, model: str) -> WireForm:
        return self._forms.get(model, self._first)

    def _write(self, request: ModelRequest, form: WireForm, *, stream: bool) -> JsonObject:
        body = request.to_openai(stream=stream, schema=self._derive(request, form)[0])
        # Of most models nothing is learnt: they get what was asked for.
        is_plain = form is self._first or form == WireForm(form.dialect)
        return body if is_plain else form.write(body, is_own=_is_own(request))

    def _differs(self, request: ModelRequest, bodies: Sequence[JsonObject], form: WireForm) -> bool:
        """Whether the body in this form is none of these."""
        return self._write(request, form, stream="stream" in bodies[-1]) not in bodies

    def _is_sent(self, request: ModelRequest, sent: JsonObject) -> bool:
        """Whether a body with the model's dialect would have the schema that was sent."""
        schema = self._derive(request)[0]
        return schema is not None and sent.get(_SCHEMA) == request.to_openai(stream=False, schema=schema)[_SCHEMA]


def _take(guess: WireForm, _: WireForm) -> WireForm:
    return guess


def _get_kind(request: ModelRequest) -> Kind:
    return request.purpose, request.response_schema.name if request.response_schema is not None else None


def _is_own(request: ModelRequest) -> bool:
    """Whether the engine chose the parameters of a request. Those of an answer are its caller's, who must hear of a
    value that is refused."""
    return request.purpose != "completion"


def _has_own_schema(request: ModelRequest, sent: JsonObject) -> bool:
    return request.response_schema is not None and _SCHEMA not in request.options and _SCHEMA in sent


def _find_refused(sent: JsonObject, error: ModelError) -> str | None:
    """The one parameter of the body that the error refuses and that may be left out."""
    messages = sent["messages"] if isinstance(sent["messages"], list) else []
    fields = OPTIONAL_FIELDS & {key for message in messages if isinstance(message, dict) for key in message}
    for name in list_refused_parameters(error):
        if (name in OPTIONAL and name in sent) or name in fields:
            return name
    if (bare := find_bare_parameter(error, (OPTIONAL & sent.keys()) | fields)) is not None:
        return bare
    return STREAM if STREAM in sent and is_stream_refusal(error) else None
