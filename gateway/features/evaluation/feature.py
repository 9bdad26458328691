"""The feature `evaluation`: `stepgate eval`."""

from gateway.feature import Command, Feature

FEATURE = Feature(
    name="evaluation",
    commands={
        "eval": Command(
            "gateway.features.evaluation.commands.evaluate:evaluate",
            "Run the evaluation's tasks and print right answers, calls, tokens, time and status by family.",
            place=80,
        ),
    },
)
