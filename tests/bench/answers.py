"""Measures the checks of claims on the labelled set `tests/support/data/claims`: `make eval-answers`.

Prints for each half and language what the exact checks release (verbatim sentences), reject (wrong values) and leave
open. With an endpoint (AGENT_LLM_BASE_URL, AGENT_MODEL_FAST, AGENT_LLM_API_KEY) it then lets that model check the
meaning and prints precision and recall of the accepted claims. `EVAL_SHOW=1` lists the wrong results of the
development half; those of the measured half are not looked at.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from agent.core.models import JsonObject
from agent.core.settings import Settings
from agent.core.settings_loading import load_settings
from agent.grounded_answers.entailment import ENTAILMENT_SCHEMA, AskEntailment
from agent.llm.http import HttpModelClient
from agent.llm.port import ModelRequest
from tests.support.claims import EXACT_KINDS, HALVES, ClaimOutcome, check_claims, load_claims

LANGUAGES = ("en", "sv", "de")


def is_released(one: ClaimOutcome) -> bool:
    """Whether the claim may be shown."""
    return one.outcome == "released"


def is_rejected(one: ClaimOutcome) -> bool:
    """Whether the claim failed a check."""
    return one.outcome == "rejected"


def is_supported(one: ClaimOutcome) -> bool:
    """Whether the passage says the claim."""
    return one.claim.is_supported


def count_share(outcomes: Sequence[ClaimOutcome], holds: Callable[[ClaimOutcome], bool]) -> str:
    """Returns for how many outcomes `holds` is true: `9 of 12`."""
    return f"{sum(map(holds, outcomes))} of {len(outcomes)}"


def print_exact(name: str, outcomes: Sequence[ClaimOutcome]) -> None:
    """Prints precision and recall of the exact checks."""
    released, rejected = list(filter(is_released, outcomes)), list(filter(is_rejected, outcomes))
    verbatim = [one for one in outcomes if one.claim.kind == "verbatim"]
    false_values = [one for one in outcomes if one.claim.kind in EXACT_KINDS]
    print(
        f"{name:16} released {count_share(released, is_supported)} rightly, of the verbatim ones "
        f"{count_share(verbatim, is_released)}; rejected {count_share(rejected, lambda one: not is_supported(one))} "
        f"rightly, of the changed values {count_share(false_values, is_rejected)}; open "
        f"{len(outcomes) - len(released) - len(rejected)}"
    )


def print_accepted(name: str, outcomes: Sequence[ClaimOutcome]) -> None:
    """Prints precision and recall of the accepted claims after the check of their meaning."""
    accepted, supported = list(filter(is_released, outcomes)), list(filter(is_supported, outcomes))
    print(f"{name:16} precision {count_share(accepted, is_supported)}, recall {count_share(supported, is_released)}")


@asynccontextmanager
async def open_model(settings: Settings) -> AsyncIterator[AskEntailment | None]:
    """The call of the configured model, or None without one."""
    if settings.llm_base_url is None or settings.model_fast is None:
        yield None
        return
    key = settings.llm_api_key.get_secret_value() if settings.llm_api_key else None
    client, model = HttpModelClient(settings.llm_base_url, key), settings.model_fast

    async def ask(messages: tuple[JsonObject, ...], max_tokens: int) -> str:
        request = ModelRequest(
            model, messages, "entailment", response_schema=ENTAILMENT_SCHEMA, temperature=0.0, max_tokens=max_tokens
        )
        return (await client.complete(request)).text

    try:
        yield ask
    finally:
        await client.aclose()


async def main() -> None:
    """Measures both halves, by the exact checks alone and with the configured model."""
    async with open_model(load_settings()) as ask:
        await measure(ask)


async def measure(ask: AskEntailment | None) -> None:
    """Measures the exact checks and, with a model, the whole check."""
    for title, asked, print_row in (("exact checks", None, print_exact), ("with a model", ask, print_accepted)):
        print(f"{title}:")
        if title == "with a model" and ask is None:
            print("  not measured: no endpoint is configured")
            return
        for half in HALVES:
            outcomes = await check_claims(*load_claims(half), asked)
            print_row(f"  {half}", outcomes)
            for language in LANGUAGES:
                print_row(f"    {language}", [one for one in outcomes if one.claim.language == language])
            if half == "development" and os.environ.get("EVAL_SHOW"):
                print_errors(outcomes)


def print_errors(outcomes: Sequence[ClaimOutcome]) -> None:
    """Prints the claims that were released or rejected wrongly."""
    for one in outcomes:
        if (is_released(one) and not is_supported(one)) or (is_rejected(one) and is_supported(one)):
            print(f"      {one.outcome}: {one.claim.text} ({one.claim.kind}) {one.problem}")


if __name__ == "__main__":
    asyncio.run(main())
