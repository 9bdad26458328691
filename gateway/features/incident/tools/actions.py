"""`extract_action_items`: lists what somebody is asked, or has promised, to do."""

import asyncio
import re

from pydantic import Field

from agent.core.models import DeferredModel, FrozenModel
from agent.tools import PlanHints, ToolContext, TypedTool
from gateway.features.incident.engine.instructions import INSTRUCTION_VERBS, is_instruction
from gateway.features.incident.engine.text import Sentence, split_into_sentences

MAX_ITEMS = 100
_NAME = r"(?:@[\w.-]{1,40}|[A-Z][\w'-]{1,40}(?:\s[A-Z][\w'-]{1,40}){0,2}|[Tt]he\s[\w-]{1,30}(?:\s[\w-]{1,30}){0,3})"
_LABELLED = re.compile(
    r"^(?:action(?:\sitems?)?|todo|to-do|ai|task|follow-?up|next\sstep)s?\b\s*+(?:\([^)]{1,40}\))?\s*+[:\-]\s*",
    re.IGNORECASE,
)
_OWNED = re.compile(
    rf"^(?P<owner>{_NAME})\s*(?::|,|\s(?:will|shall|must|should|needs?\sto|has\sto|have\sto|is\sto|to|please))\s+(?P<what>\S.*)",
    re.DOTALL,
)
_ADDRESSED = re.compile(
    rf"^(?:(?P<called>@[\w.-]{{1,40}})|(?i:can|could|would|will)\s(?P<able>{_NAME})"
    rf"|(?i:we|i)(?:['\u2019]d|\swould)?\s(?i:need|want|like|ask)\s(?P<needed>{_NAME})\sto)\s+(?P<what>\S.*)",
    re.DOTALL,
)
"""Somebody is addressed by name: "@bob update the page", "can Maria restart it?", "we need Sam to look"."""
_ASSIGNED = re.compile(
    rf"(?:\(|\[|[\u2013-]\s*)?(?:owner|assignee|assigned to|responsible)\s*+[:=]?\s*+(?P<owner>{_NAME})", re.IGNORECASE
)
_DUE = re.compile(
    r"\b(?:by|before|until|within|due|no later than)\s+"
    r"(?!(?:the\s)?(?:way|hand|default|us|them|design)\b)[^,;.()?!]{1,40}|\basap\b|\bas soon as possible\b",
    re.IGNORECASE,
)
_REQUESTED = re.compile(r"\b(?:please|must|should|need(?:s)?\sto|has\sto|have\sto)\s+(?P<verb>[a-z]+)\b", re.IGNORECASE)


class ExtractActionItemsInput(DeferredModel):
    """Arguments of `extract_action_items`."""

    text: str = Field(max_length=1_000_000, description="the text; its first 100,000 characters count")


class ActionItem(FrozenModel):
    """A task in the words of the text, with owner and due time if it names them."""

    text: str
    owner: str | None = None
    due: str | None = None


class ExtractActionItemsOutput(DeferredModel):
    """The items in the order of the text, without duplicates."""

    action_items: list[ActionItem]


class ExtractActionItemsTool(TypedTool[ExtractActionItemsInput, ExtractActionItemsOutput]):
    name = "extract_action_items"
    description = (
        "List what a text asks somebody to do: instructions, to-dos and promises, with owner and time if named."
    )
    is_opt_in = True
    keywords = ("action", "actions", "items", "todo", "tasks", "steps", "extract", "minutes", "follow-up", "incident")
    hints = PlanHints(heading="Action items")

    async def run(self, args: ExtractActionItemsInput, context: ToolContext) -> ExtractActionItemsOutput:
        return ExtractActionItemsOutput(action_items=await asyncio.to_thread(extract_action_items, args.text))

    def format_text(self, output: ExtractActionItemsOutput) -> str:
        if not output.action_items:
            return "The text asks nobody to do anything."
        return "\n".join(f"- {item.text}" for item in output.action_items)


def extract_action_items(text: str) -> list[ActionItem]:
    """The action items of a text, at most `MAX_ITEMS`."""
    items: dict[str, ActionItem] = {}
    for sentence in split_into_sentences(text):
        item = _parse_item(sentence)
        if item is not None:
            items.setdefault(" ".join(item.text.lower().split()), item)
            if len(items) == MAX_ITEMS:
                break
    return list(items.values())


def _parse_item(sentence: Sentence) -> ActionItem | None:
    text = sentence.text.strip().rstrip(".")
    labelled = _LABELLED.match(text)
    sentence_text = text[labelled.end() :] if labelled is not None else text
    owned = _OWNED.match(sentence_text)
    owner = None
    if is_instruction(sentence_text):
        pass
    elif (addressed := _ADDRESSED.match(sentence_text)) is not None and is_instruction(addressed["what"]):
        owner = addressed["called"] or addressed["able"] or addressed["needed"]
    elif owned is not None and is_instruction(owned["what"]):
        owner = owned["owner"]
    else:
        wanted = _REQUESTED.search(sentence_text)
        if (wanted is None or wanted["verb"].lower() not in INSTRUCTION_VERBS) and (
            labelled is None or not sentence_text.strip()
        ):
            return None
    assigned = _ASSIGNED.search(sentence_text)
    due = _DUE.search(sentence_text)
    return ActionItem(
        text=sentence_text.strip(), owner=assigned["owner"] if assigned else owner, due=due[0].strip() if due else None
    )
