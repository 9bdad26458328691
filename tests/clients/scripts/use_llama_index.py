"""LlamaIndex: a chat model behind `OpenAILike`, its agents with tools, older completions, embeddings."""

from typing import Any

from checks import MODEL, RULES, SUM, TOOL_RESULT, WEATHER, check, contains, equal, run_checks
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.llms import ChatMessage
from llama_index.core.tools import FunctionTool
from llama_index.embeddings.openai_like import OpenAILikeEmbedding
from llama_index.llms.openai_like import OpenAILike


def get_weather(city: str) -> str:
    """Returns the weather."""
    return f"{TOOL_RESULT} in {city}"


def connect(room: str, url: str = MODEL, **options: Any) -> OpenAILike:
    """A model of a gateway."""
    options = {"is_chat_model": True, "is_function_calling_model": True, "context_window": 16_000, **options}
    return OpenAILike(model=room, api_base=f"{url}/v1", api_key="none", max_retries=0, **options)


@check("chat: answer, stream")
def chat() -> None:
    messages = [ChatMessage(role="user", content=SUM)]
    contains(str(connect("stepgate").chat(messages)), "42")
    contains("".join(piece.delta or "" for piece in connect("stepgate").stream_chat(messages)), "42")
    contains(str(connect("stepgate", RULES).chat(messages)), "42")


@check("chat: asynchronous")
async def asynchronous() -> None:
    contains(str(await connect("stepgate").achat([ChatMessage(role="user", content=SUM)])), "42")
    pieces = await connect("stepgate").astream_chat([ChatMessage(role="user", content=SUM)])
    contains("".join([piece.delta or "" async for piece in pieces]), "42")


@check("older completions")
def completions() -> None:
    assert connect("chat", is_chat_model=False).complete("Say hello.").text
    assert "".join(piece.delta or "" for piece in connect("chat", is_chat_model=False).stream_complete("Say hello."))


@check("tools: an agent's loop")
async def agent() -> None:
    tool = FunctionTool.from_defaults(get_weather)
    agent = FunctionAgent(tools=[tool], llm=connect("chat"), system_prompt="Use the tools.")
    contains(str(await agent.run(WEATHER)), TOOL_RESULT)


@check("embeddings")
def embeddings() -> None:
    model = OpenAILikeEmbedding(model_name="default", api_base=f"{MODEL}/v1", api_key="none", max_retries=0)
    equal(len(model.get_text_embedding_batch(["a", "b"])), 2)


if __name__ == "__main__":
    run_checks("The `__fields", "Accessing the 'model_")  # its agents look at every attribute of their own models
