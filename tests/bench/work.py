"""The kinds of work: what the client asks, and what the model answers."""

from dataclasses import replace
from typing import Any

from tests.support.script import Call, Script, judges, plans, says, script

ANSWER = "It is 42, and here is what the steps have shown in two or three sentences of text."
LOOKED_INTO = "The matter was looked into, and here is what the steps have shown in two or three sentences of text."
"""Without a figure: none stands in the results of the steps, so one would be written again."""
PROMPTS = {
    "turn": "search and compute two times 21",
    "fan": "research eight matters and compare them",
    "chain": "research one matter step by step",
    "stream": "tell a story",
}


def request(work: str, *, stream: bool = False) -> dict[str, Any]:
    """The client's body: the same for every contender."""
    return {"model": work, "stream": stream, "messages": [{"role": "user", "content": PROMPTS[work]}]}


def turn(delay_s: float = 0.0, **answer: Any) -> Script:
    """A plan, a tool step, an answer: two model calls. The peer's agent calls the same tool."""
    return delayed(
        script(
            plans(
                {"tool": "calculator", "inputs": {"expression": "2*21"}},
                {"tool": "completion", "depends_on": ["s1"]},
            ),
            says(ANSWER, to="agent", about="the result is 42", chunk=16, **answer),
            says("", to="agent", calls=(Call("calculator", {"expression": "2*21"}),)),
            says(ANSWER, to="completion", chunk=16, **answer),
        ),
        delay_s,
    )


def fan(delay_s: float, steps: int = 8) -> Script:
    """Steps that need one another's end only at the answer: a plan, eight times work and judgement, an answer."""
    wire = [{"tool": "investigate", "inputs": {"task": f"look into matter {number}"}} for number in range(steps)]
    return delayed(
        script(
            plans(*wire, {"tool": "completion", "depends_on": [f"s{number + 1}" for number in range(steps)]}),
            says("The matter was looked into.", to="skill"),
            judges("SUCCESS"),
            says(LOOKED_INTO, to="completion"),
        ),
        delay_s,
    )


def chain(delay_s: float) -> Script:
    """Three steps, each on the one before: five model calls one after the other."""
    first: dict[str, Any] = {"tool": "investigate", "inputs": {"task": "look into the matter"}}
    later: list[dict[str, Any]] = [
        {
            "tool": "investigate",
            "inputs": {"task": f"look into what is behind $s{number}"},
            "depends_on": [f"s{number}"],
        }
        for number in (1, 2)
    ]
    return delayed(
        script(
            plans(first, *later, {"tool": "completion", "depends_on": ["s3"]}),
            says("The matter was looked into.", to="skill"),
            says(LOOKED_INTO, to="completion"),
        ),
        delay_s,
    )


def story(chunks: int, delay_s: float = 0.0) -> Script:
    """A streamed answer of that many chunks of twelve characters, all different: LiteLLM ends a stream that repeats
    one."""
    text = "".join(f"once {number:6d} " for number in range(chunks))
    return delayed(script(says(text, to="completion", chunk=12)), delay_s)


def delayed(rules: Script, delay_s: float) -> Script:
    """The same script, every reply begun after `delay_s` seconds."""
    return Script([replace(rule, reply=replace(rule.reply, delay_s=delay_s)) for rule in rules.rules])


def for_anyone(rules: Script) -> Script:
    """The same script for callers that do not say what for they ask, such as a client of the model itself."""
    return Script([replace(rule, purpose=None) for rule in rules.rules])
