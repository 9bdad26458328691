"""The suite's tools and prompt that answer in rounds: `InputRequiredResult`, then the retry (2026-07-28)."""

from typing import Any, TypeVar

import mcp_types as types
from pydantic import BaseModel

from mcp_tools.server.sessions import Context
from tests.support.conformance_extras import CallTool, GetPrompt

Model = TypeVar("Model", bound=BaseModel)
CallParams = types.CallToolRequestParams
Answer = types.CallToolResult | types.InputRequiredResult


def _form(message: str, field: str, kind: str = "string") -> types.ElicitRequest:
    schema: dict[str, Any] = {"type": "object", "properties": {field: {"type": kind}}, "required": [field]}
    return types.ElicitRequest(params=types.ElicitRequestFormParams(message=message, requested_schema=schema))


def _sampling(text: str, max_tokens: int) -> types.CreateMessageRequest:
    asked = types.SamplingMessage(role="user", content=types.TextContent(type="text", text=text))
    return types.CreateMessageRequest(params=types.CreateMessageRequestParams(messages=[asked], max_tokens=max_tokens))


NAME = _form("What is your name?", "name")
ROOTS = types.ListRootsRequest()


def _ask(state: str | None = None, **requests: Any) -> types.InputRequiredResult:
    return types.InputRequiredResult(input_requests=requests, request_state=state)


def _given(params: types.InputResponseRequestParams, key: str, model: type[Model]) -> Model | None:
    """The client's response under this key, if it has the shape asked for."""
    response = (params.input_responses or {}).get(key)
    return response if isinstance(response, model) else None


def _word(params: types.InputResponseRequestParams, key: str, field: str) -> str | None:
    response = _given(params, key, types.ElicitResult)
    value = (response.content or {}).get(field) if response is not None and response.action == "accept" else None
    return str(value) if value is not None else None


def _done(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)])


async def _elicitation(_: Context, params: CallParams) -> Answer:
    name = _word(params, "user_name", "name")
    return _done(f"Hello, {name}!") if name is not None else _ask(user_name=NAME)


async def _capital(_: Context, params: CallParams) -> Answer:
    reply = _given(params, "capital_question", types.CreateMessageResult)
    if reply is None:
        return _ask(capital_question=_sampling("What is the capital of France?", 100))
    return _done(reply.content.text if isinstance(reply.content, types.TextContent) else "no text")


async def _roots(_: Context, params: CallParams) -> Answer:
    reply = _given(params, "client_roots", types.ListRootsResult)
    if reply is None:
        return _ask(client_roots=ROOTS)
    return _done("roots: " + ", ".join(str(root.uri) for root in reply.roots))


async def _state(_: Context, params: CallParams) -> Answer:
    """The state arrives unsealed: what was tampered with never gets here."""
    if params.request_state == "asked" and _word(params, "confirm", "ok") is not None:
        return _done("state-ok")
    return _ask("asked", confirm=_form("Please confirm", "ok", "boolean"))


async def _several(_: Context, params: CallParams) -> Answer:
    if set(params.input_responses or {}) >= {"user_name", "greeting", "client_roots"}:
        return _done("all inputs are there")
    return _ask("several", user_name=NAME, greeting=_sampling("Generate a greeting", 50), client_roots=ROOTS)


async def _rounds(_: Context, params: CallParams) -> Answer:
    if params.request_state is None:
        return _ask("round 1", step1=_form("Step 1: What is your name?", "name"))
    if params.request_state == "round 1":
        name = _word(params, "step1", "name")
        return _ask(f"round 2 {name}", step2=_form("Step 2: What is your favorite color?", "color"))
    return _done(f"{params.request_state.removeprefix('round 2 ')} likes {_word(params, 'step2', 'color')}")


async def _declared(context: Context, _: CallParams) -> Answer:
    """Asks only for what the client said it can give."""
    capabilities = context.session.client_capabilities or types.ClientCapabilities()
    requests: dict[str, Any] = {}
    if capabilities.sampling is not None:
        requests["greeting"] = _sampling("Generate a greeting", 50)
    if capabilities.elicitation is not None:
        requests["user_name"] = NAME
    return _ask(**requests) if requests else _done("the client can give nothing")


async def _prompt(
    _: Context, params: types.GetPromptRequestParams
) -> types.GetPromptResult | types.InputRequiredResult:
    told = _word(params, "user_context", "context")
    if told is None:
        return _ask(user_context=_form("What context should the prompt use?", "context"))
    content = types.TextContent(type="text", text=f"Use this context: {told}")
    return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=content)])


_WORK: dict[str, CallTool] = {
    "test_input_required_result_elicitation": _elicitation,
    "test_streaming_elicitation": _elicitation,
    "test_input_required_result_sampling": _capital,
    "test_input_required_result_list_roots": _roots,
    "test_input_required_result_request_state": _state,
    "test_input_required_result_tampered_state": _state,
    "test_input_required_result_multiple_inputs": _several,
    "test_input_required_result_multi_round": _rounds,
    "test_input_required_result_capabilities": _declared,
}
ROUND_TOOLS: tuple[tuple[types.Tool, CallTool], ...] = tuple(
    (
        types.Tool(
            name=name, description="Answers in rounds of input", input_schema={"type": "object", "properties": {}}
        ),
        work,
    )
    for name, work in _WORK.items()
)
ROUND_PROMPTS: tuple[tuple[types.Prompt, GetPrompt], ...] = (
    (types.Prompt(name="test_input_required_result_prompt", description="Asks for a context"), _prompt),
)
