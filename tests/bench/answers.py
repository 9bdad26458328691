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
from agent.core.settings.loading import load_settings
from agent.llm.http import HttpModelClient
from agent.llm.port import ModelRequest
from gateway.features.documents.engine.grounded_answers.entailment import ENTAILMENT_SCHEMA, AskEntailment
from tests.support.claims import EXACT_KINDS, HALVES, ClaimOutcome, check_claims, load_claims

LANGUAGES = ("en", "sv", "de")
EXACT_HEAD = (
    "exact checks alone", "released, rightly", "verbatim ones released", "rejected, rightly", "changed values rejected",
    "left open",
)  # fmt: skip
CHECKED_HEAD = ("with a model", "accepted, rightly", "true ones accepted", "false ones rejected")


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


def format_exact(outcomes: Sequence[ClaimOutcome]) -> tuple[str, ...]:
    """The columns of `EXACT_HEAD`: precision and recall of the exact checks."""
    released, rejected = list(filter(is_released, outcomes)), list(filter(is_rejected, outcomes))
    verbatim = [one for one in outcomes if one.claim.kind == "verbatim"]
    false_values = [one for one in outcomes if one.claim.kind in EXACT_KINDS]
    return (
        count_share(released, is_supported),
        count_share(verbatim, is_released),
        count_share(rejected, lambda one: not is_supported(one)),
        count_share(false_values, is_rejected),
        str(len(outcomes) - len(released) - len(rejected)),
    )


def format_accepted(outcomes: Sequence[ClaimOutcome]) -> tuple[str, ...]:
    """The columns of `CHECKED_HEAD`: what is accepted after the check of the meaning."""
    accepted, supported = list(filter(is_released, outcomes)), list(filter(is_supported, outcomes))
    false = [one for one in outcomes if not is_supported(one)]
    return (
        count_share(accepted, is_supported),
        count_share(supported, is_released),
        count_share(false, is_rejected),
    )


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
    """Prints the table of the exact checks and, with a model, that of the whole check."""
    print("\n".join(await tabulate(EXACT_HEAD, None, format_exact)))
    if ask is None:
        print("\nThe check of the meaning is not measured: no endpoint is configured.")
        return
    print("", *await tabulate(CHECKED_HEAD, ask, format_accepted), sep="\n")


async def tabulate(
    head: Sequence[str],
    ask: AskEntailment | None,
    format_row: Callable[[Sequence[ClaimOutcome]], tuple[str, ...]],
) -> list[str]:
    """The lines of a Markdown table with a row for each half and language of the set."""
    rows: list[tuple[str, ...]] = [tuple(head), ("---",) * len(head)]
    for half in HALVES:
        outcomes = await check_claims(*load_claims(half), ask)
        rows.append((half, *format_row(outcomes)))
        for language in LANGUAGES:
            own = [one for one in outcomes if one.claim.language == language]
            rows.append((f"{half}, {language}", *format_row(own)))
        if half == "development" and os.environ.get("EVAL_SHOW"):
            print_errors(outcomes)
    return [f"| {' | '.join(row)} |" for row in rows]


def print_errors(outcomes: Sequence[ClaimOutcome]) -> None:
    """Prints the claims that were released or rejected wrongly."""
    for one in outcomes:
        if (is_released(one) and not is_supported(one)) or (is_rejected(one) and is_supported(one)):
            print(f"      {one.outcome}: {one.claim.text} ({one.claim.kind}) {one.problem}")


if __name__ == "__main__":
    asyncio.run(main())
