"""The random killer, for a few seconds; `make soak` lets it run for as long as one likes. Of `make check-long`."""

from pathlib import Path

import pytest

from tests.soak.killer import soak

SECONDS, LIVES, LONGEST_LIFE_S, SEED = 5, 4, 1.5, 20


@pytest.mark.long
async def test_a_gateway_killed_again_and_again_loses_nothing_and_does_nothing_twice(tmp_path: Path) -> None:
    done = await soak(
        tmp_path,
        seconds=SECONDS,
        seed=SEED,
        say=lambda _: None,
        longest_life_s=LONGEST_LIFE_S,
        least_lives=LIVES,
    )
    assert done.verdict.findings == []
    assert done.lives > LIVES
    assert done.verdict.figures["resumed"] > 0, "some run outlived a gateway"
    assert done.verdict.figures["complete"] > 0
    assert done.verdict.figures["effects"] > 0
