"""`memory_save` and `memory_search`: facts that the user wants remembered across conversations."""

import asyncio
from dataclasses import replace

from pydantic import Field

from agent.core.errors import ToolInputError
from agent.core.models import DeferredModel
from agent.run_context.memory import MemorySearchResult, MemoryStore
from agent.text.terms import extract_query_terms, extract_terms, has_content_words
from agent.tools import READ_ONLY, PlanHints, ToolAnnotations, ToolContext, TypedTool
from mcp_tools.builtin.memory_forms import SAVE_ROLES, FoundMemory, MemorySaveInput, to_found_memory
from mcp_tools.builtin.request_commands import BEFORE_FACT, RECALL, REMEMBERING

SAVE_ANNOTATIONS = ToolAnnotations(read_only=False, destructive=False, idempotent=True, open_world=False)


class MemorySaveOutput(DeferredModel):
    """The saved memory."""

    id: str
    text: str


class MemorySaveTool(TypedTool[MemorySaveInput, MemorySaveOutput]):
    name = "memory_save"
    description = "Remember a fact about the user or their work for later conversations. Use it when the user asks to."
    annotations = SAVE_ANNOTATIONS
    argument_roles = SAVE_ROLES
    keywords = ("remember", "memorize", "note", "save", "memory", "forget")
    hints = PlanHints(commands=REMEMBERING, is_answer=True, is_memory=True)

    def __init__(self, memory: MemoryStore) -> None:
        super().__init__()
        self._memory = memory

    async def run(self, args: MemorySaveInput, context: ToolContext) -> MemorySaveOutput:
        """Saves the text. The same text twice is one memory.

        Of a model's wording of what it may have read, the user's own words are saved: whole sentences as they are, and
        otherwise the sentence that it restates, whose other words may say the opposite.
        """
        if not args.text.strip():
            raise ToolInputError("the text is empty")
        text, tainted = args.text, context.tainted
        if tainted:
            words = await asyncio.to_thread(context.get_own_words)
            own = words.find_statement(text, BEFORE_FACT)
            text, tainted = own or text, own is None
        saved = await self._memory.save(context.owner, text, source=f"run {context.run_id}", tainted=tainted)
        return MemorySaveOutput(id=saved.id, text=saved.text)

    def format_text(self, output: MemorySaveOutput) -> str:
        return f"Remembered: {output.text}"


class MemorySearchInput(DeferredModel):
    """Arguments of `memory_search`."""

    query: str = Field(default="", max_length=1_000, description="what to find, in words; empty: the newest memories")
    limit: int = Field(default=5, ge=1, le=20, description="how many memories at most")
    all_words: bool = Field(default=False, description="true: only memories that hold every word of the query")


class MemorySearchOutput(DeferredModel):
    """Memories in order of relevance."""

    memories: list[FoundMemory]
    embedder: str = Field(description="what compared the memories with the query; empty for the newest ones")
    note: str = ""


class MemorySearchTool(TypedTool[MemorySearchInput, MemorySearchOutput]):
    name = "memory_search"
    description = (
        "Search what was remembered for this user in earlier conversations, by meaning. Without a query it lists the "
        "newest memories. Not for documents or files."
    )
    annotations = READ_ONLY
    keywords = ("remember", "recall", "memory", "memories", "know", "told", "earlier", "before")
    hints = PlanHints(commands=RECALL, source="memories", is_memory=True, is_search=True)

    def __init__(self, memory: MemoryStore) -> None:
        super().__init__()
        self._memory = memory

    async def run(self, args: MemorySearchInput, context: ToolContext) -> MemorySearchOutput:
        recall = await self._recall(args, context)
        memories = [to_found_memory(memory) for memory in recall.memories]
        return MemorySearchOutput(memories=memories, embedder=recall.embedder, note=recall.fallback_reason or "")

    async def _recall(self, args: MemorySearchInput, context: ToolContext) -> MemorySearchResult:
        """The memories that fit the arguments; the newest facts for a query without content."""
        if not has_content_words(args.query):
            return MemorySearchResult(tuple(await self._memory.list_newest(context.owner, limit=args.limit)))
        recall = await self._memory.search(
            context.owner, args.query, conversation_id=context.conversation_id, limit=args.limit
        )
        if not args.all_words:
            return recall
        wanted = set(extract_query_terms(args.query))
        fitting = (memory for memory in recall.memories if wanted <= set(extract_terms(memory.text)))
        return replace(recall, memories=tuple(fitting))

    def format_text(self, output: MemorySearchOutput) -> str:
        if not output.memories:
            return "Nothing is remembered about that." if output.embedder else "Nothing is remembered yet."
        return "\n".join(f"- {memory.text}" for memory in output.memories)

    def is_tainted(self, output: MemorySearchOutput) -> bool:
        """Whether any memory was saved as text from outside."""
        return any(memory.from_outside for memory in output.memories)
