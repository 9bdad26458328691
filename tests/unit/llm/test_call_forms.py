# ruff: noqa: E501, RUF001 - the templates' tokens, as they are written
"""Written calls of many model families are read; texts that quote calls make none; nothing hostile takes long."""

import json
from time import perf_counter
from typing import Any

import pytest

from agent.core.models import JsonObject
from agent.llm.call_forms import MAX_CHARS, CallReading, read_calls
from agent.llm.port import ModelToolCall
from tests.unit.llm.quoted_calls import QUOTED_CALLS

TOOLS: dict[str, JsonObject] = {
    "get_weather": {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}, "code": {"type": "string"}},
    },
    "add": {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}},
    "now": {},
    "brave_search": {},
    "notes.save-all": {},
}
LUND = ("get_weather", {"city": "Lund"})
ADD = ("add", {"a": 1, "b": 2.5})
L, A = '{"city": "Lund"}', '{"a": 1, "b": 2.5}'


def named(name: str, arguments: str, key: str = "arguments") -> str:
    return f'{{"name": "{name}", "{key}": {arguments}}}'


JL, JA = named("get_weather", L), named("add", A)
PL, PA = named("get_weather", L, "parameters"), named("add", A, "parameters")

FAMILIES: dict[str, tuple[str, list[tuple[str, Any]]]] = {
    "Qwen 2.5, Hermes 2 Pro, Qwen 3": (f"<tool_call>\n{JL}\n</tool_call>\n<tool_call>\n{JA}\n</tool_call>", [LUND, ADD]),
    "Qwen 3 with thinking": (f"<think>\nI call <tool_call>.\n</think>\n\n<tool_call>\n{JL}\n</tool_call><|im_end|>", [LUND]),
    "QwQ, whose template opens the thinking": (f"I need the weather.\n</think>\n\n<tool_call>\n{JL}\n</tool_call>", [LUND]),
    "Qwen2.5-Coder, fenced": (f"```json\n{JL}\n```", [LUND]),
    "Qwen2.5-Coder, several fences": (f"```json\n{JL}\n```\n\n```json\n{JA}\n```", [LUND, ADD]),
    "fenced list": (f"```json\n[{JL},\n {JA}]\n```", [LUND, ADD]),
    "fence without a language": (f"```\n{JL}\n```", [LUND]),
    "fence without its end": (f"```json\n{JL}", [LUND]),
    "fenced tags": (f"```xml\n<tool_call>\n{JL}\n</tool_call>\n```", [LUND]),
    "Qwen3-Coder": (
        "<tool_call>\n<function=get_weather>\n<parameter=city>\nLund\n</parameter>\n<parameter=days>\n3\n</parameter>\n"
        "<parameter=code>\n007\n</parameter>\n</function>\n</tool_call>",
        [("get_weather", {"city": "Lund", "days": 3, "code": "007"})],
    ),
    "Qwen3-Coder without the outer tag": (
        "<function=add>\n<parameter=a>\n1\n</parameter>\n<parameter=b>\n2.5\n</parameter>\n</function>",
        [ADD],
    ),
    "Seed-OSS": (
        "<seed:think>Hm.</seed:think><seed:tool_call>\n<function=get_weather>\n<parameter=city>Lund</parameter>\n"
        "</function>\n</seed:tool_call>",
        [LUND],
    ),
    "Llama 3.1, custom tools": (f"<function=get_weather>{L}</function>", [LUND]),
    "Functionary 3.1": (f"<function=get_weather>{L}</function><function=add>{A}</function>", [LUND, ADD]),
    "Functionary 3.2": (f">>>get_weather\n{L}\n>>>add\n{A}", [LUND, ADD]),
    "Mistral Nemo": (f"[TOOL_CALLS] [{JL}, {JA}]</s>", [LUND, ADD]),
    "Mistral with ids": (f'[TOOL_CALLS][{JL[:-1]}, "id": "abcdefgh1"}}]', [LUND]),
    "Mistral Small 3.2": (f"[TOOL_CALLS]get_weather[ARGS]{L}[TOOL_CALLS]add[ARGS]{A}", [LUND, ADD]),
    "Mistral with call ids": (f"[TOOL_CALLS]get_weather[CALL_ID]123456789[ARGS]{L}", [LUND]),
    "Magistral": (f"[THINK]Weather?[/THINK][TOOL_CALLS]get_weather[ARGS]{L}", [LUND]),
    "Llama 3.1": (PL + "<|eom_id|>", [LUND]),
    "Llama 3.1 with the tag": (f"<|python_tag|>{PL}; {PA}<|eot_id|>", [LUND, ADD]),
    "Llama 3.1, typed": (f'{{"type": "function", {PL[1:]}', [LUND]),
    "Llama 3.1, built-in": ('<|python_tag|>brave_search.call(query="Lund")', [("brave_search", {"query": "Lund"})]),
    "Llama 3.2": ('[get_weather(city="Lund"), add(a=1, b=2.5)]', [LUND, ADD]),
    "Llama 4": ('<|python_start|>[get_weather(city="Lund")]<|python_end|>', [LUND]),
    "LFM2": ('<|tool_call_start|>[get_weather(city="Lund")]<|tool_call_end|>', [LUND]),
    "Gemma 3": ('```tool_code\nget_weather(city="Lund")\nadd(a=1, b=2.5)\n```', [LUND, ADD]),
    "Olmo 3": ('<function_calls>\nget_weather(city="Lund")\nadd(a=1, b=2.5)\n</function_calls>', [LUND, ADD]),
    "Firefunction 2": (f"functools[{JL}, {JA}]", [LUND, ADD]),
    "Phi-4 mini": (f"<|tool_call|>[{JL}, {JA}]<|/tool_call|>", [LUND, ADD]),
    "DeepSeek V3, R1": (
        f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n{L}\n```<｜tool▁call▁end｜>\n"
        f"<｜tool▁call▁begin｜>function<｜tool▁sep｜>add\n```json\n{A}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
        "<｜end▁of▁sentence｜>",
        [LUND, ADD],
    ),
    "DeepSeek V3.1": (
        f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{L}<｜tool▁call▁end｜>"
        f"<｜tool▁call▁begin｜>add<｜tool▁sep｜>{A}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        [LUND, ADD],
    ),
    "DeepSeek V3.2": (
        '<｜DSML｜function_calls>\n<｜DSML｜invoke name="get_weather">\n<｜DSML｜parameter name="city" string="true">Lund'
        '</｜DSML｜parameter>\n<｜DSML｜parameter name="days" string="false">3</｜DSML｜parameter>\n</｜DSML｜invoke>\n'
        "</｜DSML｜function_calls>",
        [("get_weather", {"city": "Lund", "days": 3})],
    ),
    "Granite 3.0": (f"<|tool_call|>[{JL}]", [LUND]),
    "Granite 3.1": (f"<tool_call>[{JL}, {JA}]", [LUND, ADD]),
    "Granite 20B": (f"<function_call> {JL}", [LUND]),
    "Command R": (
        f'Action: ```json\n[\n    {{\n        "tool_name": "get_weather",\n        "parameters": {L}\n    }}\n]\n```',
        [LUND],
    ),
    "Command R7B, Command A": (
        "<|START_THINKING|>I look.<|END_THINKING|><|START_ACTION|>[\n"
        f'    {{"tool_call_id": "0", "tool_name": "get_weather", "parameters": {L}}}\n]<|END_ACTION|><|END_OF_TURN_TOKEN|>',
        [LUND],
    ),
    "GLM 4.5": (
        "<think></think>\n<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Lund</arg_value>\n"
        "<arg_key>days</arg_key>\n<arg_value>3</arg_value>\n</tool_call>\n<tool_call>now\n</tool_call>",
        [("get_weather", {"city": "Lund", "days": 3}), ("now", {})],
    ),
    "Kimi K2": (
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>"
        f"{L}<|tool_call_end|><|tool_call_begin|>functions.add:1<|tool_call_argument_begin|>{A}<|tool_call_end|>"
        "<|tool_calls_section_end|><|im_end|>",
        [LUND, ADD],
    ),
    "MiniMax M2": (
        '<minimax:tool_call>\n<invoke name="get_weather">\n<parameter name="city">Lund</parameter>\n</invoke>\n'
        '<invoke name="now">\n</invoke>\n</minimax:tool_call>',
        [LUND, ("now", {})],
    ),
    "MiniMax M1, Hunyuan": (f"<tool_calls>\n{JL}\n{JA}\n</tool_calls>", [LUND, ADD]),
    "gpt-oss": (
        "<|channel|>analysis<|message|>Need the weather.<|end|><|start|>assistant<|channel|>commentary "
        f"to=functions.get_weather <|constrain|>json<|message|>{L}<|call|>",
        [LUND],
    ),
    "gpt-oss, recipient first": (
        f"<|start|>assistant to=functions.get_weather<|channel|>commentary json<|message|>{L}<|call|>",
        [LUND],
    ),
    "Nemotron": (f"<TOOLCALL>[{JL}]</TOOLCALL>", [LUND]),
    "InternLM 2": (f"<|action_start|><|plugin|>\n{PL}<|action_end|>", [LUND]),
    "xLAM": (f"[{JL}, {JA}]", [LUND, ADD]),
    "OpenAI's form as text": (
        '{"tool_calls": [{"id": "c", "type": "function", "function": '
        '{"name": "add", "arguments": "{\\"a\\": 1, \\"b\\": 2.5}"}}]}',
        [ADD],
    ),
    "generic": (f'{{"tool_call": {JL}}}', [LUND]),
    "Qwen3-Coder without a closing tag": (
        "<tool_call>\n<function=get_weather>\n<parameter=city>\nLund\n<parameter=days>\n3\n</function>\n</tool_call>",
        [("get_weather", {"city": "Lund", "days": 3})],
    ),
    "Qwen3-Coder with tags in a text": (
        "<tool_call>\n<function=get_weather>\n<parameter=city>\nUse <parameter=x>, </function>\n</parameter>\n</function>\n"
        "</tool_call>",
        [("get_weather", {"city": "Use <parameter=x>, </function>"})],
    ),
    "Gemma 4": (
        '<|tool_call>call:get_weather{city:<|"|>Lund<|"|>,days:3}<tool_call|>'
        '<|tool_call>call:get_weather{city:<|"|>a{b:"<|"|>}<tool_call|>',
        [("get_weather", {"city": "Lund", "days": 3}), ("get_weather", {"city": 'a{b:"'})],
    ),
    "FunctionGemma": ("<start_function_call>call:get_weather{city:<escape>Lund<escape>}<end_function_call>", [LUND]),
    "Apertus": (f'<|tools_prefix|>[{{"get_weather": {L}}}, {{"add": {A}}}]<|tools_suffix|>', [LUND, ADD]),
    "Mistral without its tokens": (f"get_weather[ARGS]{L}", [LUND]),
    "Mistral without arguments' token": (f"[TOOL_CALLS]get_weather{L}", [LUND]),
    "Hunyuan A13B": (f"<tool_call>get_weather\n```json\n{L}\n```\n</tool_call>", [LUND]),
    "EXAONE": (f"<tool_call>{JL}</tool_call>[|endofturn|]", [LUND]),
    "a name with marks": ('<tool_call>{"name": "notes.save-all", "arguments": {}}</tool_call>', [("notes.save-all", {})]),
    "single quotes": ("<tool_call>{'name': 'now', 'arguments': {'exact': True}}</tool_call>", [("now", {"exact": True})]),
    "a comma too many": ('```json\n{"name": "now", "arguments": {"zone": "UTC",},}\n```', [("now", {"zone": "UTC"})]),
    "raw newlines": ('{"name": "now", "arguments": {"zone": "a\nb"}}', [("now", {"zone": "a\nb"})]),
    "an end tag in an argument": (
        '<tool_call>{"name": "now", "arguments": {"zone": "</tool_call> ``` <|im_end|>"}}</tool_call>',
        [("now", {"zone": "</tool_call> ``` <|im_end|>"})],
    ),
    "JSON's constants in Python": ("[now(a=true, b=null, c=[1, -2], d={'e': \"f\"})]", [
        ("now", {"a": True, "b": None, "c": [1, -2], "d": {"e": "f"}})
    ]),
}  # fmt: skip


def read(text: str) -> CallReading:
    return read_calls(text, (), TOOLS)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_calls_of_a_family_are_read(family: str) -> None:
    text, expected = FAMILIES[family]
    reading = read(text)
    assert [(call.name, call.arguments) for call in reading.calls] == expected, reading.reason
    assert reading.reason == ""


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("around", ["Here is what you asked for:\n{}", "{}\nThis is how it is called.", "A: {}, B"])
def test_words_around_a_call_make_it_a_quotation(family: str, around: str) -> None:
    text, _ = FAMILIES[family]
    if "</think>" in text and "<think>" not in text and around.startswith(("Here", "A:")):
        pytest.skip("what is before the end of an opened thinking belongs to it")
    reading = read(around.format(text))
    assert reading.calls == ()
    assert reading.reason


@pytest.mark.parametrize("family", FAMILIES)
def test_a_call_that_is_cut_off_is_not_completed(family: str) -> None:
    text, expected = FAMILIES[family]
    for at in range(len(text)):
        assert all((call.name, call.arguments) in expected for call in read(text[:at]).calls)


@pytest.mark.parametrize("text", QUOTED_CALLS)
def test_a_text_that_quotes_calls_makes_none(text: str) -> None:
    reading = read(text)
    assert reading.calls == ()
    assert reading.reason


def test_there_are_fifty_quotations_that_name_our_tools() -> None:
    assert len(set(QUOTED_CALLS)) >= 50


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no call"),
        ("<think>Only thinking", "within the model's thinking"),
        ("<tool_call>\n</tool_call>", "no call"),
        (named("unknown", "{}"), "no tool named 'unknown'"),
        (f"{JL}\n{named('unknown', '{}')}", "no tool named 'unknown'"),
        (named("add", "[1, 2]"), "not an object"),
        (named("add", '"1, 2"'), "not complete JSON"),
        (named("add", "5"), "not an object"),
        ('{"name": "add"}', "not a call"),
        ('{"name": 5, "arguments": {}}', "not a call"),
        ('{"name": "add", "arguments": {}, "result": 3}', "not a call"),
        ('{"name": "add", "parameters": {"type": "object", "properties": {"a": {}}}}', "not a call"),
        ("[1, 2, 3]", "not a call"),
        ("null", "other text"),
        ("[]", "no call"),
        ("add(1, 2)", "without names"),
        ("add(a=b)", "literal"),
        ("add(a=__import__('os').system('id'))", "literal"),
        ("add(**{'a': 1})", "keywords"),
        ("x = add(a=1)", "other text"),
        ("[add(a=1), 2]", "not a call"),
        ("add(a=1", "not a Python expression"),
        ("<function=add>\n<parameter=a>\n1\n</parameter>\n", "not complete"),
        ("<function=add>\n<parameter=a>\n1", "not complete"),
        ('<tool_call>{"name": "add", "arguments": {"a": 1', "not complete JSON"),
        ("```python\nadd(a=1, b=2)\n```", "other text"),
        (json.dumps([{"name": "now", "arguments": {}}] * 101), "more than 100"),
        ("x" * (MAX_CHARS + 1), "longer than"),
        ('{"name": "add", "arguments": {"a": "\ud800"}} and', "other text"),
    ],
)
def test_what_is_no_call_is_told(text: str, reason: str) -> None:
    reading = read(text)
    assert reading.calls == ()
    assert reason in reading.reason


def test_native_calls_count_whatever_is_said_beside_them() -> None:
    native = (ModelToolCall("1", "add", A), ModelToolCall("2", "now", ""))
    reading = read_calls("I will add these.", native, TOOLS)
    assert [(call.name, call.arguments) for call in reading.calls] == [ADD, ("now", {})]
    spoilt = read_calls("", (*native, ModelToolCall("3", "unknown", "{}")), TOOLS)
    assert (spoilt.calls, "unknown" in spoilt.reason) == ((), True)
    assert read_calls("", (ModelToolCall("1", "add", '{"a": '),), TOOLS).calls == ()


HOSTILE = [
    "<think>", "<tool_call>", "</think>", "[", "{", '{"a":', "```json\n", "[TOOL_CALLS]", "functools[", "add(", "add(a=",
    "<function=add>", "<function=add><parameter=a>", "<arg_key>a</arg_key><arg_value>", "<tool_call>add<arg_key>",
    "<｜tool▁call▁begin｜>", '<invoke name="add">', ">>>add\n", "<|channel|>analysis<|message|>", "<|im_end|>", ";", "\n",
    "<|tool_call_begin|>add:1<|tool_call_argument_begin|>", "'", '"', "\\", "-", "not ", "(", "<|start|>assistant",
    '{"name": "add", "arguments": {"a": 1,}}', "{'name': 'now', 'arguments': {}}", "now()", "now()\n", "</tool_call>",
]  # fmt: skip


@pytest.mark.parametrize("piece", HOSTILE)
@pytest.mark.parametrize(
    "prefix",
    ["", "<tool_call>", '{"name": "add", "arguments": ', "[add(a=", "<function=add>", "<|tool_call>call:add{"],
)
def test_a_huge_hostile_text_takes_no_time(piece: str, prefix: str) -> None:
    text = prefix + piece * ((MAX_CHARS - len(prefix)) // len(piece))
    started = perf_counter()
    read(text)
    read(text[:19_000])
    assert perf_counter() - started < 2
