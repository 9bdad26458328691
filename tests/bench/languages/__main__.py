"""Measures how well questions in Swedish and German find their document:
`python -m tests.bench.languages [dev|blind]`.

The half `dev` was looked at while stemming was made; `blind` was measured before it and after it.
"""

import asyncio
import sys

from tests.bench.languages.measure import LANGUAGES, Half, measured


async def main() -> None:
    """Print a line for each language and half."""
    wanted = sys.argv[1:] or ["dev", "blind"]
    print(f"{'':<10}{'nDCG@10':>9}{'recall@10':>11}{'first':>8}{'>= 0.7':>8}")
    for language in LANGUAGES:
        for half in await measured(language):
            if half.name in wanted:
                show(language, half)


def show(language: str, half: Half) -> None:
    """Prints one line."""
    print(f"{language + ' ' + half.name:<10}{half.ndcg:>9.3f}{half.recall:>11.3f}{half.first:>8.3f}{half.sure:>8.3f}")


if __name__ == "__main__":
    asyncio.run(main())
