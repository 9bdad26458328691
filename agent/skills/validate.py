"""The public validator of the format, for `stepgate skills validate`."""

import importlib.util
from pathlib import Path


def validate_skill(folder: Path) -> list[str]:
    """What `skills-ref` finds wrong with a skill folder; empty when it is valid.

    The validator is a development dependency: where it is not installed, that is the one problem told."""
    if importlib.util.find_spec("skills_ref") is None:
        return ["the public validator is not installed; install it with `pip install skills-ref`"]
    from skills_ref.validator import validate  # noqa: PLC0415 - a development dependency

    try:
        return [str(problem) for problem in validate(folder)]
    except (OSError, UnicodeDecodeError) as error:
        return [f"{folder}: SKILL.md cannot be read as UTF-8 text ({error})"]
