"""`llm`: its command line and its Python interface, with a model of its configuration file."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from checks import ADA, MODEL, PERSON, RULES, SUM, WEATHER, check, contains, equal, run_checks

FOLDER = Path(tempfile.mkdtemp())
CONFIG = """
- {{model_id: stepgate, model_name: stepgate, api_base: "{url}/v1", api_key_name: stepgate}}
- {{model_id: rules, model_name: stepgate, api_base: "{rules}/v1", api_key_name: stepgate}}
- {{model_id: sg-chat, model_name: chat, api_base: "{url}/v1", api_key_name: stepgate, supports_tools: true,
   supports_schema: true}}
- {{model_id: sg-responses, model_name: chat, api_base: "{url}/v1", api_key_name: stepgate, responses: true}}
"""
(FOLDER / "extra-openai-models.yaml").write_text(CONFIG.format(url=MODEL, rules=RULES), "utf-8")
(FOLDER / "keys.json").write_text('{"stepgate": "none"}', "utf-8")
os.environ["LLM_USER_PATH"] = str(FOLDER)

import llm  # noqa: E402 - reads the folder of its user when it is imported


def run_llm(*arguments: str) -> str:
    """Returns what the command line prints; it prints nothing else."""
    command = [str(Path(sys.executable).with_name("llm")), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    equal((done.returncode, done.stderr), (0, ""))
    return done.stdout


@check("command line: stream, no stream, a conversation that is continued")
def command_line() -> None:
    contains(run_llm("-m", "stepgate", SUM), "42")
    contains(run_llm("-m", "stepgate", "--no-stream", SUM), "42")
    contains(run_llm("-m", "rules", SUM), "42")
    run_llm("-m", "sg-chat", ADA)
    contains(run_llm("-c", "Who am I?"), "Ada-Marie")


@check("command line: schema")
def schema() -> None:
    equal(json.loads(run_llm("-m", "sg-chat", "--schema", "name, age int", PERSON)), {"name": "Ada", "age": 36})


@check("Python: answer, usage, trace")
def python() -> None:
    response = llm.get_model("stepgate").prompt(SUM, stream=False)
    contains(response.text(), "42")
    assert response.usage().input
    contains(json.dumps(response.response_json), "calculator")


@check("Python: tools")
def tools() -> None:
    called = []

    def get_weather(city: str) -> str:
        """The weather."""
        called.append(city)
        return "12 degrees"

    chain = llm.get_model("sg-chat").chain(WEATHER, tools=[get_weather])
    contains(chain.text(), "12 degrees")
    equal(called, ["Lund"])


@check("Python: asynchronous")
async def asynchronous() -> None:
    response = await llm.get_async_model("stepgate").prompt(SUM)
    contains(await response.text(), "42")


if __name__ == "__main__":
    run_checks()
