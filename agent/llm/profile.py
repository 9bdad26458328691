"""`ModelProfile`: what is known of how a model works best, whichever model it is.

No code asks for a model's name. A profile comes from the setting `AGENT_MODEL_PROFILE` or from what was measured
(`gateway/model_probe/`).
"""

from typing import Literal, NamedTuple

from pydantic import Field

from agent.core.models import FrozenModel

ProfileName = Literal["auto", "small", "capable"]
CallForm = Literal["native", "written"]
CALL_FORMS: tuple[CallForm, ...] = ("native", "written")
ProfileSource = Literal["setting", "measured", "default"]


class ModelProfile(FrozenModel):
    """How the engine works with a model."""

    decides: Literal["rounds", "plans"] = "rounds"
    """`rounds`: one batch of calls at a time, each with inputs typed by its tool, planned with the results so far.
    `plans`: the whole graph of steps at once, with references to results that do not exist yet."""
    judges: bool = False
    """Whether its verdicts on texts are reliable, so that it judges the free text of a skill."""
    checks_answers: bool = True
    """Whether an answer that was chosen before any tool was called is questioned: is a tool needed to be certain?"""
    translates: bool = False
    """Whether requests in other languages are translated into English first. A small model loses names and values when
    it translates, and decides on the original as well."""


class Count(NamedTuple):
    """How many of the tasks of a kind were right."""

    right: int
    asked: int

    def __str__(self) -> str:
        """The count as text."""
        return f"{self.right} of {self.asked}"


class MeasuredTask(NamedTuple):
    """The outcome of one task of the measurement."""

    kind: str
    name: str
    right: bool
    note: str = ""


class MeasuredModel(FrozenModel):
    """The measured properties of one model at one endpoint, with the counts behind each choice."""

    model: str
    base_url: str
    """The address of the endpoint, or `file:` and the path of the model's file."""
    fingerprint: str
    """The model as the endpoint listed it when it was measured: another one means another model."""
    measured_at: float
    """UTC seconds since 1970."""
    is_complete: bool
    """Whether every task was asked. What was not is as safe as for an unknown model."""
    outcomes: tuple[MeasuredTask, ...] = ()
    """The tasks that were asked, while others are missing: the next measurement goes on there."""
    profile: ModelProfile
    takes_schema: bool
    """Whether a JSON schema binds the replies."""
    call_forms: tuple[CallForm, ...] = ()
    """How calls came where tools were offered: as `tool_calls`, or written in the text."""
    longest_catalogue: int = 0
    """The most tools among which the right one was chosen."""
    thinks: bool = False
    """Whether it wrote thoughts before its replies, which a switch of its template may turn off."""
    context_tokens: int | None = None
    languages: tuple[str, ...] = ()
    """Languages, besides English, in which the model answered a question rightly (ISO 639-1)."""
    follows_verdicts: bool = False
    """Whether a judge's verdicts were readable and right."""
    counts: dict[str, Count] = Field(default_factory=dict)
    """Right tasks by kind."""
    first_token_s: float = 0.0
    prompt_tokens_per_s: float = 0.0
    tokens_per_s: float = 0.0
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0


SMALL = ModelProfile()
"""The profile that is safe for an unknown model."""
CAPABLE = ModelProfile(decides="plans", judges=True, checks_answers=False, translates=True)


def choose_profile(name: ProfileName, measured: MeasuredModel | None = None) -> ModelProfile:
    """The profile of this name; for `auto` the measured one, else the one that is safe for any model."""
    if name == "auto" and measured is not None:
        return measured.profile
    return CAPABLE if name == "capable" else SMALL


def get_profile_source(name: ProfileName, measured: MeasuredModel | None) -> ProfileSource:
    """Names the origin of the profile."""
    if name != "auto":
        return "setting"
    return "measured" if measured is not None else "default"
