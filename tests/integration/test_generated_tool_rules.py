"""The checks of generated code, over the real door: what a model writes against each rule is refused by its stage."""

from typing import Any

import httpx
import pytest

from tests.integration.conftest import Serve
from tests.integration.test_generated_tool_life import API, NAME, assert_nothing_is_left, error_of, generate
from tests.integration.test_generated_tools import client_of
from tests.support.hostile_tools import REFUSED
from tests.support.sandboxes import requires_sandbox
from tests.support.script import script
from tests.support.scripted_server import ScriptedServer
from tests.support.tool_scripts import APPROVED, CODE, INTERFACE, TESTS, WRITES_CODE, ToolScript

pytestmark = requires_sandbox

DOCSTRING = '    """Convert a part number of the old form (A-12) to the new one (12A)."""\n'
HEAD = "async def convert_part_number"
AGAINST_RULES = {
    "no docstring": (CODE.replace(DOCSTRING, ""), "docstring"),
    "not async": (CODE.replace("async def", "def"), "async"),
    "no model": (CODE.replace("-> ConvertOutput", "-> dict"), "return_type"),
    "an import of the system": ("import os\n" + CODE, "import"),
    "not Python": ("def broken(:", "syntax"),
    "Python that cannot be compiled": (CODE.replace("    return ConvertOutput(converted=d", "    yield (d"), "compile"),
    "another function": (CODE.replace(HEAD, "async def other"), "function"),
    "not callable": (CODE.replace(HEAD, "convert_part_number = 3\nasync def other"), "callable"),
    "eval": (CODE.replace("digits + letter", "eval(digits) + letter"), "security"),
    "a path from outside": (CODE.replace("digits + letter", "open('../' + digits).read() + letter"), "security"),
    "a shell": ("import subprocess\n" + CODE.replace("digits + letter", "subprocess.getoutput(digits)"), "import"),
}
ATTACKS = (
    "body: class and subclasses", "body: import function", "body: exec", "body: globals of a function",
    "body: format string", "body: open", "import: fork bomb", "import: socket",
)  # fmt: skip


async def refuse(client: httpx.AsyncClient, server: ScriptedServer, code: str) -> dict[str, Any]:
    """What the model is told that writes this in every round."""
    server.load(script(*ToolScript(codes=(code,)).rules()))
    refused = await generate(client)
    assert refused.status_code == 400, (code, refused.text)
    await assert_nothing_is_left(client)
    return error_of(refused)


@pytest.mark.row("S002-15", "S002-17", "S002-33", "S002-34")
async def test_each_rule_refuses_what_the_critic_approves(serve: Serve, model_server: ScriptedServer) -> None:
    async with serve(script()) as url, client_of(url) as client:
        for kind, (code, stage) in AGAINST_RULES.items():
            failure = await refuse(client, model_server, code)
            assert failure["details"]["stage"] == stage, (kind, failure)
            assert any(problem.startswith(f"{stage}: ") for problem in failure["details"]["problems"]), (kind, failure)
            told = [one["body"]["messages"] for one in model_server.requests()]
            rounds = [str(messages) for messages in told if WRITES_CODE in str(messages)]
            assert [f"{stage}: " in one for one in rounds] == [False, True, True], (kind, "its author is told why")


@pytest.mark.row("S002-17")
async def test_hostile_code_never_reaches_the_sandbox(serve: Serve, model_server: ScriptedServer) -> None:
    async with serve(script()) as url, client_of(url) as client:
        for name in ATTACKS:
            failure = await refuse(client, model_server, REFUSED[name].replace("attack", NAME))
            stages = {problem.partition(":")[0] for problem in failure["details"]["problems"]}
            assert stages & {"security", "import", "names", "construct"}, (name, failure)
            assert "tests" not in stages, (name, "a program that runs is too late to refuse")


@pytest.mark.row("S002-38")
async def test_all_that_is_wrong_is_said_at_once(serve: Serve, model_server: ScriptedServer) -> None:
    code = "import os\n" + CODE.replace("async def", "def").replace(DOCSTRING, "").replace(
        "digits + l", "exec(digits) + l"
    )
    async with serve(script()) as url, client_of(url) as client:
        problems = (await refuse(client, model_server, code))["details"]["problems"]
    assert {problem.partition(":")[0] for problem in problems} == {"import", "security", "docstring", "async"}


@pytest.mark.row("S002-16")
async def test_soft_rules_are_advice_beside_a_staged_tool(serve: Serve, model_server: ScriptedServer) -> None:
    unchecked = INTERFACE.replace(
        "    ...\n",
        '    letter, dash, digits = args.number.strip().partition("-")\n'
        "    return ConvertOutput(converted=digits + letter.upper())\n",
    )
    raising = unchecked.replace(
        "    return Conv", "    if not dash:\n        raise ValueError(args.number)\n    return Conv"
    )
    tests = (*TESTS[:2], TESTS[1].replace("b-7", "c-8").replace("7B", "8C"))
    advised: dict[str, list[str]] = {}
    async with serve(script()) as url, client_of(url) as client:
        for name, code in {"unchecked": unchecked, "raising": raising, "sound": CODE}.items():
            model_server.load(script(*ToolScript(codes=(code,), tests=tests, reviews=(APPROVED,)).rules()))
            made = await generate(client)
            assert made.status_code == 201, made.text
            advised[name] = made.json()["warnings"]
            assert advised[name] == (await client.get(f"{API}/{NAME}")).json()["warnings"]
            seen = [str(one["body"]["messages"]) for one in model_server.requests()][-1]
            assert all(warning in seen for warning in advised[name]), "the critic reads it too"
            assert (await client.delete(f"{API}/{NAME}")).status_code == 204
    assert advised["sound"] == []
    assert ["the input is not checked" in one for one in advised["unchecked"]] == [True]
    assert ["errors are raised" in one for one in advised["raising"]] == [True]
