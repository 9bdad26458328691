"""A conversation by pydantic-ai's own loop: `python -m tests.bench.native_loops.pydantic_ai_loop`."""

from typing import Any

from openai import AsyncOpenAI, OpenAIError
from pydantic_ai import Agent, AgentRunError, Tool, UsageLimits  # type: ignore[import-not-found]
from pydantic_ai.models.openai import OpenAIChatModel  # type: ignore[import-not-found]
from pydantic_ai.providers.openai import OpenAIProvider  # type: ignore[import-not-found]

from tests.bench.native_loops.loop_job import Job, run_job

RETRIES = 3
"""How often a model may name an unknown tool before the run fails; the framework's default is once."""


async def hold(job: Job) -> str:
    """The answer to the last turn."""
    client = AsyncOpenAI(base_url=job.model_url, api_key="none", timeout=job.seconds, max_retries=0)
    agent = Agent(
        OpenAIChatModel(job.model, provider=OpenAIProvider(openai_client=client)),
        instructions=job.instructions,
        tools=[make_tool(job, tool) for tool in job.tools],
        model_settings={"temperature": 0, "seed": job.seed, "max_tokens": job.max_tokens},
        retries=RETRIES,
    )
    history: Any = None
    answer = ""
    for turn in job.turns:
        limits = UsageLimits(request_limit=job.max_requests)
        result = await agent.run(turn, message_history=history, usage_limits=limits)
        history, answer = result.all_messages(), str(result.output)
    return answer


def make_tool(job: Job, tool: dict[str, Any]) -> Any:
    """A tool with the schema that the gateway gives it."""

    async def call(**arguments: Any) -> str:
        return await job.call_tool(tool["name"], arguments)

    return Tool.from_schema(call, tool["name"], tool["description"], tool["schema"])


if __name__ == "__main__":
    run_job(hold, (AgentRunError, OpenAIError, OSError))
