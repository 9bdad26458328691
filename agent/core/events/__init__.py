"""The typed events of a run. Its log is the truth; state, trace and the frames of every door are derived from it.

An `Event` is the envelope (`run_id, seq, epoch, type, v, step_id, attempt, at`) around a typed body. Bodies are
versioned by `v`: a reader must accept every version that was ever written.

To add an event: add a body beside similar ones, its name below and in `_BODY_CLASSES`, its rule in
`agent/core/run_reducer.py`, its case in `agent/runs/trace_projection.py`, and its rule in
`agent/policy/redaction/events.py`, or there why it needs none. A feature declares its own: `FeatureEvent`.
"""

from collections.abc import Mapping

from agent.core.events.answer import (
    AnswerChecked,
    AnswerDelta,
    AnswerFinished,
    AnswerStarted,
    AnswerTranslated,
    ClaimProblem,
    FinishReason,
    GateChecked,
    OutputGuarded,
)
from agent.core.events.call import (
    AssistantTurn,
    FailedUpstream,
    ModelReturned,
    Purpose,
    SubAgentFinished,
    SubAgentOutcome,
    SubAgentStarted,
    ToolCalled,
    ToolRefused,
    ToolReturned,
)
from agent.core.events.envelope import Event, EventBody, EventDraft
from agent.core.events.feature import FEATURE_EVENTS, FeatureEvent, declare_event, is_declared
from agent.core.events.label import StepLabel, TextLabel, TextSource
from agent.core.events.plan import (
    ApprovalDecided,
    ApprovalItem,
    ApprovalRequested,
    ClientToolCall,
    ClientToolsCalled,
    InputRequested,
    PlanProposed,
    PlanRejected,
    TaintSource,
)
from agent.core.events.request import (
    ConfirmedValue,
    EarlierResult,
    InputGuarded,
    IntentClassified,
    MemoryItem,
    MemoryRetrieved,
    RequestUnderstood,
)
from agent.core.events.run import (
    CancelRequested,
    GivenPlan,
    RunCancelled,
    RunClaimed,
    RunCreated,
    RunFailed,
    RunSucceeded,
    RunSuspended,
    RunWaiting,
)
from agent.core.events.step import (
    EntriesSelected,
    StepDiscarded,
    StepFinished,
    StepJudged,
    StepOutput,
    StepSpeculative,
    StepStarted,
    StepUnknown,
)

__all__ = [
    "BODY_TYPES",
    "FEATURE_EVENTS",
    "AnswerChecked",
    "AnswerDelta",
    "AnswerFinished",
    "AnswerStarted",
    "AnswerTranslated",
    "ApprovalDecided",
    "ApprovalItem",
    "ApprovalRequested",
    "AssistantTurn",
    "CancelRequested",
    "ClaimProblem",
    "ClientToolCall",
    "ClientToolsCalled",
    "ConfirmedValue",
    "EarlierResult",
    "EntriesSelected",
    "Event",
    "EventBody",
    "EventDraft",
    "FailedUpstream",
    "FeatureEvent",
    "FinishReason",
    "GateChecked",
    "GivenPlan",
    "InputGuarded",
    "InputRequested",
    "IntentClassified",
    "MemoryItem",
    "MemoryRetrieved",
    "ModelReturned",
    "OutputGuarded",
    "PlanProposed",
    "PlanRejected",
    "Purpose",
    "RequestUnderstood",
    "RunCancelled",
    "RunClaimed",
    "RunCreated",
    "RunFailed",
    "RunSucceeded",
    "RunSuspended",
    "RunWaiting",
    "StepDiscarded",
    "StepFinished",
    "StepJudged",
    "StepLabel",
    "StepOutput",
    "StepSpeculative",
    "StepStarted",
    "StepUnknown",
    "SubAgentFinished",
    "SubAgentOutcome",
    "SubAgentStarted",
    "TaintSource",
    "TextLabel",
    "TextSource",
    "ToolCalled",
    "ToolRefused",
    "ToolReturned",
    "declare_event",
    "is_declared",
]

_BODY_CLASSES: tuple[type[EventBody], ...] = (
    RunCreated, RunClaimed, RunSuspended, RunWaiting, CancelRequested, RunSucceeded, RunFailed, RunCancelled,
    InputGuarded, RequestUnderstood, MemoryRetrieved, IntentClassified,
    PlanRejected, PlanProposed, InputRequested, ClientToolsCalled, ApprovalRequested, ApprovalDecided,
    StepStarted, StepSpeculative, StepFinished, StepJudged, StepDiscarded, StepUnknown, EntriesSelected,
    ModelReturned, ToolCalled, ToolReturned, ToolRefused, SubAgentStarted, SubAgentFinished,
    AnswerStarted, AnswerDelta, AnswerChecked, OutputGuarded, GateChecked, AnswerTranslated, AnswerFinished,
)  # fmt: skip

BODY_TYPES: Mapping[str, type[EventBody]] = {body.type: body for body in _BODY_CLASSES}
"""Every body class of the kernel by its stored type."""
