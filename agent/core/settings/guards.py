"""What is done about personal data and prompt injection."""

from pydantic import BaseModel, Field

from agent.core.models import AnswerPiiAction, GuardAction


class GuardSettings(BaseModel):
    """What is done about personal data and prompt injection."""

    guard_pii: GuardAction = Field(
        default="redact",
        description=(
            "personal data in a prompt, if the room's file says nothing: not searched, reported, hidden "
            "from models by placeholders (answers and tools get the original), or the prompt refused"
        ),
    )
    guard_answer_pii: AnswerPiiAction = Field(
        default="auto",
        description=(
            "personal data of others in an answer, if the room's file says nothing: off if the run read only documents "
            "that nobody but the caller reads, else redact_answer; not searched, reported, removed "
            "from the answer, removed from the answer and the results of tools, or the answer refused"
        ),
    )
    guard_injection: GuardAction = Field(
        default="flag",
        description=(
            "prompt injection, if the room's file says nothing: not searched, reported, removed from the "
            "prompt, or the prompt refused"
        ),
    )
