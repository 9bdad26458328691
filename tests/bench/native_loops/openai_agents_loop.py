"""A conversation by the OpenAI Agents SDK's own loop: `python -m tests.bench.native_loops.openai_agents_loop`.

As its documentation shows it for other providers' models: the Chat Completions model, and no tracing.
"""

import json
from typing import Any

from agents import (  # type: ignore[import-not-found]
    Agent,
    AgentsException,
    FunctionTool,
    ModelSettings,
    OpenAIChatCompletionsModel,
    Runner,
    set_tracing_disabled,
)
from openai import AsyncOpenAI, OpenAIError

from tests.bench.native_loops.loop_job import Job, run_job


async def hold(job: Job) -> str:
    """The answer to the last turn."""
    set_tracing_disabled(True)
    client = AsyncOpenAI(base_url=job.model_url, api_key="none", timeout=job.seconds, max_retries=0)
    agent = Agent(
        name="assistant",
        instructions=job.instructions,
        model=OpenAIChatCompletionsModel(model=job.model, openai_client=client),
        model_settings=ModelSettings(temperature=0, max_tokens=job.max_tokens, extra_body={"seed": job.seed}),
        tools=[make_tool(job, tool) for tool in job.tools],
    )
    messages: list[Any] = []
    answer = ""
    for turn in job.turns:
        messages.append({"role": "user", "content": turn})
        result = await Runner.run(agent, messages, max_turns=job.max_requests)
        messages, answer = result.to_input_list(), str(result.final_output)
    return answer


def make_tool(job: Job, tool: dict[str, Any]) -> Any:
    """A tool with the schema that the gateway gives it."""

    async def call(_: Any, arguments: str) -> str:
        try:
            given = json.loads(arguments or "{}")
        except ValueError as error:
            return f"Error: the arguments are not JSON: {error}"
        if not isinstance(given, dict):
            return "Error: the arguments are not an object"
        return await job.call_tool(tool["name"], given)

    return FunctionTool(
        name=tool["name"],
        description=tool["description"],
        params_json_schema=tool["schema"],
        on_invoke_tool=call,
        strict_json_schema=False,
    )


if __name__ == "__main__":
    run_job(hold, (AgentsException, OpenAIError, OSError))
