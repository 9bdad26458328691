"""`StreamedReply`: collects the chunks of a stream into the reply that they form."""

from agent.core.events import FailedUpstream
from agent.core.models import JsonObject
from agent.llm.port import ONE_CALL, ModelChunk, ModelReply
from agent.llm.replies import join_fields
from agent.llm.tool_calls import parse_tool_calls


class StreamedReply:
    """A reply that is still being streamed. `model` is the requested one.

    `finish_reason` is None until the stream has it. The caller sets `usage`, because an endpoint may not report it.
    """

    def __init__(self, model: str) -> None:
        self.finish_reason: str | None = None
        self.requests = 1
        self.upstream = ""
        self.failed_upstreams: tuple[FailedUpstream, ...] = ()
        self.usage = ONE_CALL
        self._model = model
        self._text: list[str] = []
        self._refusal: list[str] = []
        self._deltas: list[JsonObject] = []
        self._fields: JsonObject = {}

    def add_chunk(self, chunk: ModelChunk) -> None:
        """Adds the next chunk. The first one names the upstream and counts the requests."""
        self.finish_reason = chunk.finish_reason or self.finish_reason
        self.requests = max(self.requests, chunk.requests)
        self.upstream = chunk.upstream or self.upstream
        self.failed_upstreams = chunk.failed_upstreams or self.failed_upstreams
        self._deltas += chunk.tool_calls
        if chunk.provider_fields:
            join_fields(self._fields, chunk.provider_fields)
        self._text.append(chunk.text)
        self._refusal.append(chunk.refusal)

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(self._text)

    def build_reply(self) -> ModelReply:
        """The whole reply. A refusal counts as its text only if there is no other."""
        text, refusal = self.text, "".join(self._refusal)
        return ModelReply(
            text or refusal,
            self._model,
            self.finish_reason or "stop",
            self.usage,
            parse_tool_calls(self._deltas),
            requests=self.requests,
            provider_fields=self._fields,
            refused=bool(refusal) and not text,
            upstream=self.upstream,
            failed_upstreams=self.failed_upstreams,
        )
