"""`LocalModelClient`: the model client of the engine inside. Waits for a model that is being loaded."""

from collections.abc import AsyncIterator

from agent.core.errors import ConfigError, ModelError, ModelTimeoutError, ModelUnreachableError
from agent.core.models import JsonObject
from agent.llm.http import HttpModelClient
from agent.llm.port import ModelChunk, ModelReply, ModelRequest
from gateway.local_engine.engine import LocalEngine

LOCAL_URL = "http://localhost/v1"
"""The address in requests on the socket; nothing is looked up."""


class LocalModelClient:
    """Implements `ModelClient` over an engine. The first call loads the model."""

    def __init__(self, engine: LocalEngine, extra_body: JsonObject | None = None) -> None:
        """`extra_body` as in `HttpModelClient`."""
        self.engine = engine
        self._extra_body = extra_body
        self._client: HttpModelClient | None = None
        self._socket = ""

    async def complete(self, request: ModelRequest) -> ModelReply:
        """See `ModelClient.complete`."""
        client = await self._connect(request.timeout_s)
        try:
            return await client.complete(request)
        except ModelUnreachableError as error:
            raise self._explain(error) from error

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelChunk]:
        """See `ModelClient.stream`."""
        client = await self._connect(request.timeout_s)
        try:
            async for chunk in client.stream(request):
                yield chunk
        except ModelUnreachableError as error:
            raise self._explain(error) from error

    async def check(self) -> None:
        """See `ModelClient.check`. Does not load the model: what can be seen from the file is checked."""
        if self.engine.state == "failed":
            raise ModelUnreachableError(self.engine.reason, agent_id="models")
        try:
            self.engine.check()
        except ConfigError as error:
            raise ModelUnreachableError(error.message, agent_id="models") from error

    def start(self) -> None:
        """See `ServedModel.start`."""
        self.engine.start()

    def describe(self) -> str:
        """See `ServedModel.describe`."""
        return self.engine.describe()

    async def aclose(self) -> None:
        """See `ModelClient.aclose`. Ends the engine."""
        if self._client is not None:
            await self._client.aclose()
        await self.engine.aclose()

    async def _connect(self, timeout_s: float) -> HttpModelClient:
        try:
            await self.engine.wait_until_ready(timeout_s)
        except TimeoutError as error:
            loading_note = f"{self.engine.options.name} is not loaded yet ({self.engine.describe()})"
            raise ModelTimeoutError(loading_note, agent_id="models") from error
        except ConfigError as error:
            raise ModelUnreachableError(error.message, agent_id="models") from error
        if self._client is None or self._socket != self.engine.socket:  # another child has another socket
            if self._client is not None:
                await self._client.aclose()
            self._client = HttpModelClient(
                LOCAL_URL, self.engine.key, socket=self.engine.socket, extra_body=self._extra_body
            )
            self._socket = self.engine.socket
        return self._client

    def _explain(self, error: ModelUnreachableError) -> ModelError:
        """The error with what became of the engine, in place of an address that nobody knows."""
        error.message = f"{self.engine.options.name}: {self.engine.describe()}"
        return error
