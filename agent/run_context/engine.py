"""`Engine`: what all runs of a process share: the journal, the models, the tools and the caches."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from agent.core.client_requests import ClientRequests
from agent.core.events import Event
from agent.core.models import Usage
from agent.core.progress import RunProgress
from agent.core.run_state import RunState
from agent.core.settings import Settings
from agent.llm.tiers import ModelTiers
from agent.run_context.calls import CallSite
from agent.run_context.extensions import NO_EXTENSIONS, Extensions
from agent.run_context.ground_sources import GroundSources
from agent.run_context.memory import MemoryStore
from agent.run_context.note_timer import NoteTimer
from agent.skills import SkillLibrary
from agent.storage.journal import ConversationStore, Journal
from agent.storage.prompt_log import PromptLog
from agent.text.language import LanguageDetector
from agent.tools import SubAgentSpawner, ToolRegistry
from agent.tools.catalogue import Catalogue

if TYPE_CHECKING:
    from agent.run_context.run import Run

Observer = Callable[[RunState, Event], None]
"""Called with the state and each event, once the event is durable. Must be quick. Its errors are logged."""


class SubAgentSpawners(Protocol):
    """The sub-agents of this process, for the tools that the tool gateway calls."""

    def find_spawner(self, run: "Run", site: CallSite, *, tainted: bool) -> SubAgentSpawner:
        """The spawner for the call at `site`. `tainted` is whether the call's arguments are."""
        ...


class QuotaReservations(Protocol):
    """The budgets of the callers' API keys."""

    async def reserve(self, key: str, expected: Usage, *, run_id: str, epoch: int) -> str:
        """Reserves the expected tokens and cost of a call. Returns the reservation for `record_usage`.

        Raises `QuotaError` and `RateLimitError`.
        """
        ...

    async def record_usage(self, key: str, reservation: str, usage: Usage) -> None:
        """Replaces a reservation with the actual usage."""
        ...


@dataclass(frozen=True, slots=True)
class Engine:
    """The shared objects of all runs of this process."""

    settings: Settings
    journal: Journal
    conversations: ConversationStore
    models: ModelTiers
    registry: ToolRegistry
    skills: SkillLibrary
    memory: MemoryStore
    languages: LanguageDetector
    secrets: tuple[str, ...]
    """Those of the settings. None of them may be in a prompt, an answer or a log."""
    subagents: SubAgentSpawners | None = None
    observers: tuple[Observer, ...] = ()
    end_observers: tuple[Observer, ...] = ()
    """Called with the terminal event only."""
    quota_reservations: QuotaReservations | None = None
    extensions: Extensions = NO_EXTENSIONS
    """The gates, topics and hooks of all packages."""
    ground: GroundSources = field(default_factory=GroundSources)
    """The sources of the planner's ground block."""
    allowed_tools: dict[Hashable, tuple[str, ...]] = field(default_factory=dict)
    """Cached names of the tools that a run may use, by all that decides on them."""
    catalogues: dict[Hashable, Catalogue] = field(default_factory=dict)
    """Cached catalogues by their inputs."""
    progress: RunProgress = field(default_factory=RunProgress)
    """The listeners to the tools' progress."""
    prompts: PromptLog | None = None
    """Keeps what is sent to models and what they reply; None where nothing is kept."""
    client_requests: ClientRequests = field(default_factory=ClientRequests)
    """The waiting clients to which a run's tools can send requests."""
    note_timer: NoteTimer = field(default_factory=NoteTimer)
    """The runs whose notes must be appended."""
