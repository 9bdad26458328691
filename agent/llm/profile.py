"""`ModelProfile`: what is known of how a model works best, whichever model it is.

No code asks for a model's name. A profile comes from the setting `AGENT_MODEL_PROFILE` or from what was measured.
"""

from typing import Literal

from agent.core.models import FrozenModel

ProfileName = Literal["auto", "small", "capable"]


class ModelProfile(FrozenModel):
    """How the engine works with a model."""

    decides: Literal["rounds", "plans"] = "rounds"
    """`rounds`: one batch of calls at a time, each with inputs typed by its tool, planned with the results so far.
    `plans`: the whole graph of steps at once, with references to results that do not exist yet."""
    checks_answers: bool = True
    """Whether an answer that was chosen before any tool was called is questioned: is a tool needed to be certain?"""


SMALL = ModelProfile()
"""What is safe for a model of which nothing is known."""
CAPABLE = ModelProfile(decides="plans", checks_answers=False)


def choose_profile(name: ProfileName) -> ModelProfile:
    """Returns the profile of this name; for `auto` the one that is safe for any model."""
    return CAPABLE if name == "capable" else SMALL
