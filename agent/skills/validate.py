"""The public validator of the skill format, for `stepgate skills validate`."""

from pathlib import Path


def validate_skill(folder: Path) -> list[str]:
    """Lists what `skills-ref` finds wrong with a skill folder; empty if it is valid."""
    from skills_ref.validator import validate  # noqa: PLC0415 - used by one command only

    try:
        return [str(problem) for problem in validate(folder)]
    except (OSError, UnicodeDecodeError) as error:
        return [f"{folder}: SKILL.md cannot be read as UTF-8 text ({error})"]
