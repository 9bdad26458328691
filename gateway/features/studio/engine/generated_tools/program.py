"""Puts a generated tool into a program for the sandbox: stand-ins for its models, its functions, and a driver.

The same text runs in both tiers but for two ends: how a host function gets its answer, and how the coroutine is driven.
In the interpreter (`agent.sandbox.interpreter`) a call of the host suspends the program. A process has no such channel:
there a call that has no answer yet ends the program, which is started again with the answer (see `tool_runner`).
"""

import ast
from collections.abc import Sequence

from gateway.features.studio.engine.generated_tools.io_models import is_model_class
from gateway.features.studio.engine.generated_tools.models import SandboxTier
from gateway.features.studio.engine.generated_tools.validation import CheckedTool, indent_statements

MAX_RESULT_CHARS = 2**20
"""Characters of a result as JSON."""

_HEAD = """
import json as stepgate_json
def stepgate_plain(value):
    if isinstance(value, stepgate_models):
        return value.model_dump()
    if isinstance(value, (list, tuple)):
        return [stepgate_plain(item) for item in value]
    if isinstance(value, dict):
        return dict([(str(key), stepgate_plain(item)) for key, item in value.items()])
    return value
"""
_HOST_FUNCTIONS = """
async def http_get(url):
    return await stepgate_call('http_get', [url])
async def read_file(path):
    return await stepgate_call('read_file', [path])
async def call_tool(name, arguments):
    return await stepgate_call('call_tool', [name, stepgate_plain(arguments)])
"""
_SUSPENDING_CALLS = """
async def stepgate_call(function, arguments):
    return stepgate_host(function, arguments)
"""
_RECORDED_CALLS = """
stepgate_recorded = []
def record(function, *arguments, answer):
    stepgate_recorded.append((function, stepgate_plain(arguments), answer))
async def stepgate_call(function, arguments):
    for recorded, given, answer in stepgate_recorded:
        if recorded == function and given == arguments:
            if isinstance(answer, Exception):
                raise RuntimeError(str(answer))
            return answer
    raise RuntimeError('no answer is recorded for ' + function + repr(arguments))
"""
_REPLAYED_CALLS = """
class stepgate_Pending(BaseException):
    pass
stepgate_state = {'position': 0, 'pending': None}
async def stepgate_call(function, arguments):
    position = stepgate_state['position']
    stepgate_state['position'] = position + 1
    answers = inputs['answers']
    if stepgate_state['pending'] is None and position < len(answers):
        call, answer, error = answers[position]
        if call != [function, arguments]:
            raise RuntimeError('the tool asked for something else when it was continued: ' + function)
        if error is not None:
            raise RuntimeError(error)
        return answer
    if stepgate_state['pending'] is None:
        stepgate_state['pending'] = [function, arguments]
    raise stepgate_Pending()
"""
_DRIVE = """
def stepgate_drive(coroutine):
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    raise RuntimeError('the tool waits for something else than the functions of the gateway')
"""
_DRIVE_REPLAYED = """
def stepgate_drive(coroutine):
    value = None
    try:
        coroutine.send(None)
    except StopIteration as end:
        value = end.value
    except stepgate_Pending:
        pass
    else:
        raise RuntimeError('the tool waits for something else than the functions of the gateway')
    if stepgate_state['pending'] is not None:  # also if the tool has swallowed the signal to stop
        return {'pending': stepgate_state['pending']}
    return value
"""
_CALL = """
async def stepgate_main(data):
    result = await {name}(stepgate_make_{input}(data))
    if not isinstance(result, {output}):
        raise TypeError('{name} must return {output}, not ' + repr(result)[:200])
    return {{'value': stepgate_plain(result)}}
"""
_TEST = """
stepgate_outputs = []
stepgate_tool = {name}
async def {name}(argument):
    result = await stepgate_tool(argument)
    if not isinstance(result, {output}):
        raise TypeError('{name} must return {output}, not ' + repr(result)[:200])
    stepgate_outputs.append(stepgate_plain(result))
    return result
async def stepgate_test():
{body}
async def stepgate_main(data):
    try:
        await stepgate_test()
    except AssertionError as error:
        return {{'failed': 'AssertionError' + (': ' + str(error) if str(error) else ''), 'outputs': stepgate_outputs}}
    except Exception as error:
        return {{'failed': repr(error)[:1000], 'outputs': stepgate_outputs}}
    return {{'failed': None, 'outputs': stepgate_outputs}}
"""
_ENCODE = """
def stepgate_encode(reply):
    text = stepgate_json.dumps(reply)
    if len(text) > {limit}:
        raise ValueError('the result has ' + str(len(text)) + ' characters as JSON; at most {limit} are allowed')
    return text
"""
_ENDS: dict[SandboxTier, str] = {
    "interpreter": "stepgate_encode(await stepgate_main(inputs['data']))",
    "process": "stepgate_encode(stepgate_drive(stepgate_main(inputs['data'])))",
}


def build_call(tool: CheckedTool, tier: SandboxTier) -> str:
    """The program that calls the tool with `inputs['data']`: it evaluates to JSON with `value`, or in a process
    `pending`, the call of the host that it needs the answer of.
    """
    body = _CALL.format(name=tool.name, input=tool.input_name, output=tool.output_name)
    calls = _REPLAYED_CALLS + _DRIVE_REPLAYED if tier == "process" else _SUSPENDING_CALLS
    return _assemble(tool, calls, body, tier)


def build_test(tool: CheckedTool, case: str, tier: SandboxTier) -> str:
    """The program that runs one test: it evaluates to JSON with `failed` and the tool's `outputs`."""
    body = _TEST.format(name=tool.name, output=tool.output_name, body=indent_statements(case))
    calls = _RECORDED_CALLS + (_DRIVE if tier == "process" else "")
    return _assemble(tool, calls, body, tier)


def _assemble(tool: CheckedTool, calls: str, body: str, tier: SandboxTier) -> str:
    names = "".join(f"{name}, " for name in tool.models.types)
    return "\n".join(
        [
            *_list_future_imports(tool.tree),
            _HEAD,
            calls,
            _HOST_FUNCTIONS,
            *_list_statements(tool),
            f"stepgate_models = ({names})",
            body,
            _ENCODE.format(limit=MAX_RESULT_CHARS),
            _ENDS[tier],
        ]
    )


def _list_future_imports(tree: ast.Module) -> Sequence[str]:
    return [ast.unparse(node) for node in tree.body if isinstance(node, ast.ImportFrom) and node.module == "__future__"]


def _list_statements(tool: CheckedTool) -> Sequence[str]:
    """The module's statements: stand-ins in the place of models, nothing in that of Pydantic's imports."""
    return [
        tool.models.build_stand_in(node.name)
        if isinstance(node, ast.ClassDef) and is_model_class(node)
        else ast.unparse(node)
        for node in tool.tree.body
        if not (isinstance(node, ast.ImportFrom) and node.module in ("pydantic", "__future__"))
    ]
