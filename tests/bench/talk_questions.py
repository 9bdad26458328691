"""Asks the conversations of `tests/bench/talks`, without a model or with the configured one: `make eval-talks`.

`EVAL_TALKS=en-01,sv-02` limits them, `EVAL_SHOW=1` prints the answers. With an endpoint (AGENT_LLM_BASE_URL,
AGENT_MODEL_FAST) the same questions are asked twice, by rules and with the model.
"""

import asyncio
import os
import tempfile
from pathlib import Path

import httpx

from agent.core.settings.loading import load_settings
from tests.support.serving import serving
from tests.support.talk_questions import Talk, TalkResult, hold_talks, read_talks, upload_documents


async def ask_all(talks: list[Talk], *, with_model: bool) -> list[TalkResult]:
    """The last answer of each conversation."""
    with tempfile.TemporaryDirectory() as folder:
        settings = load_settings().model_copy(update={"data_dir": Path(folder), "port": 0})
        if not with_model:
            settings = settings.model_copy(update={"llm_base_url": None, "model_fast": None, "model_high": None})
        async with serving(settings) as url, httpx.AsyncClient(base_url=url, timeout=900) as client:
            await upload_documents(client)
            told = []
            async for one in hold_talks(client, talks):
                told.append(one)
                if os.environ.get("EVAL_SHOW"):
                    print(f"{'+' if one.is_right else '-'} {one.talk.id} calls={one.model_calls} {one.searches}")
                    print("    " + one.answer.replace("\n", "\n    "), flush=True)
            return told


def report(name: str, told: list[TalkResult]) -> None:
    """Prints the shares of right answers."""
    with_answer = [one for one in told if one.talk.expect]
    without = [one for one in told if not one.talk.expect]
    right = [one.talk.id for one in told if one.is_right]
    print(
        f"| {name} | {len(right)}/{len(told)} | {sum(one.is_right for one in with_answer)}/{len(with_answer)} "
        f"| {sum(one.is_right for one in without)}/{len(without)} | {sum(one.model_calls for one in told)} |"
    )
    print(f"wrong: {' '.join(one.talk.id for one in told if not one.is_right)}", flush=True)


def main() -> None:
    """Prints the table."""
    wanted = {name for name in os.environ.get("EVAL_TALKS", "").split(",") if name}
    talks = [talk for talk in read_talks() if not wanted or talk.id in wanted]
    print("| | right | with an answer | without an answer | model calls of the last turn |")
    print("| --- | --- | --- | --- | --- |")
    ruled = asyncio.run(ask_all(talks, with_model=False))
    report("no model", ruled)
    if os.environ.get("AGENT_LLM_BASE_URL"):
        modelled = asyncio.run(ask_all(talks, with_model=True))
        report(os.environ.get("AGENT_MODEL_FAST", "model"), modelled)
        pairs = zip(ruled, modelled, strict=True)
        print("worse than rules:", [new.talk.id for old, new in pairs if old.is_right and not new.is_right])


if __name__ == "__main__":
    main()
