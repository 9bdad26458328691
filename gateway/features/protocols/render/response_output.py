"""`ResponseOutput`: the items of a response as they grow, and the frames that report it."""

from collections.abc import Sequence
from typing import Any, Final

from agent.core.models import JsonObject, Source
from agent.runs.trace_details import shorten
from gateway.features.protocols.render.response_items import (
    SERVER_LABEL,
    annotate,
    build_custom_call_item,
    build_function_call_item,
)

MAX_OUTPUT_CHARS: Final = 20_000
"""Longest output of a step within a response; the trace has all of it."""
REASONING_NUMBERS: Final = 1_000_000
"""Sequence numbers that are kept free for the deltas of one reasoning item."""
STREAMED: Final = frozenset({"response.output_text.delta", "response.refusal.delta", "response.reasoning_text.delta"})
"""Events whose number advances by characters, because the journal does not keep where the pieces began."""
StepKey = tuple[str | None, int | None]


class ResponseOutput:
    """The items in order. `key` makes their ids unique; every method returns the frames of its change."""

    def __init__(self, key: str) -> None:
        self.items: list[JsonObject] = []
        self._key = key
        self._number = 0
        self._steps: dict[StepKey, int] = {}
        self._message: int | None = None
        self._void: set[int] = set()
        """The messages whose text was begun once more."""
        self._reasoning: int | None = None
        self._thought_number = 0

    @property
    def valid_items(self) -> list[JsonObject]:
        """The items without the messages that others replaced: a client joins the texts of all messages."""
        last = max((at for at, item in enumerate(self.items) if item["type"] == "message"), default=0)
        return [item for at, item in enumerate(self.items) if at not in self._void or at == last]

    @property
    def has_message(self) -> bool:
        """Whether the text of the answer has begun and not ended."""
        return self._message is not None

    @property
    def has_reasoning(self) -> bool:
        """Whether a model's thoughts have begun and not ended."""
        return self._reasoning is not None

    def read_message(self) -> str:
        """The text, or the refusal, of the open message."""
        if self._message is None:
            return ""
        part = _get_first_part(self.items[self._message])
        return str(part["refusal"] if part["type"] == "refusal" else part["text"])

    def has_step(self, key: StepKey) -> bool:
        """Whether this attempt of a step has an item."""
        return key in self._steps

    def open_step(self, key: StepKey, name: str, arguments: str) -> list[JsonObject]:
        """Starts the item of an attempt of a step, once: a resumed run repeats the start."""
        if key in self._steps:
            return []
        item: JsonObject = {
            "id": f"mcp_{self._key}_{len(self.items)}",
            "type": "mcp_call",
            "server_label": SERVER_LABEL,
            "name": name,
            "arguments": "",
            "status": "in_progress",
        }
        self._steps[key] = len(self.items)
        frames = self._open_item(item)
        where = self._place(self._steps[key])
        item["arguments"] = arguments
        return [
            *frames,
            self.build_frame("response.mcp_call.in_progress", **where),
            self.build_frame("response.mcp_call_arguments.delta", **where, delta=arguments),
            self.build_frame("response.mcp_call_arguments.done", **where, arguments=arguments),
        ]

    def close_step(self, key: StepKey, text: str, error: str | None) -> list[JsonObject]:
        """Ends the item of an attempt with its text, or with an error."""
        index = self._steps[key]
        item = self.items[index]
        if item["status"] != "in_progress":
            return []
        item |= {"output": None, "error": error, "status": "failed"} if error is not None else {
            "output": shorten(text, MAX_OUTPUT_CHARS), "error": None, "status": "completed",
        }  # fmt: skip
        kind = "failed" if error is not None else "completed"
        return [self.build_frame(f"response.mcp_call.{kind}", **self._place(index)), *self._finish_item(index)]

    def close_items(self) -> list[JsonObject]:
        """The frames that end what is open as incomplete, because the run ends or waits."""
        frames = [*self.close_message("incomplete"), *self.close_reasoning()]
        for index in self._steps.values():
            if self.items[index]["status"] == "in_progress":
                self.items[index]["status"] = "incomplete"
                frames += self._finish_item(index)
        return frames

    def add_summary(self, text: str) -> list[JsonObject]:
        """Adds a whole reasoning item with this summary."""
        index = len(self.items)
        part: JsonObject = {"type": "summary_text", "text": text}
        item: JsonObject = {
            "id": f"rs_{self._key}_{index}",
            "type": "reasoning",
            "summary": [],
            "status": "in_progress",
        }
        frames = self._open_item(item)
        item |= {"summary": [part], "status": "completed"}
        where = {**self._place(index), "summary_index": 0}
        return [
            *frames,
            self.build_frame("response.reasoning_summary_part.added", **where, part={**part, "text": ""}),
            self.build_frame("response.reasoning_summary_text.delta", **where, delta=text),
            self.build_frame("response.reasoning_summary_text.done", **where, text=text),
            self.build_frame("response.reasoning_summary_part.done", **where, part=part),
            *self._finish_item(index),
        ]

    def add_reasoning(self, text: str) -> list[JsonObject]:
        """The frames of what the model that answers has thought, as its provider shows it.

        Its last piece may come after the answer has begun, since secrets are looked for across pieces. Only the end of
        the item has that piece. The deltas have a block of numbers of their own.
        """
        frames: list[JsonObject] = []
        if self._reasoning is None:
            if self._message is not None:
                return []
            self._reasoning = len(self.items)
            item_id = f"rs_{self._key}_{self._reasoning}"
            part: JsonObject = {"type": "reasoning_text", "text": ""}
            frames = self._open_item(
                {"id": item_id, "type": "reasoning", "summary": [], "content": [], "status": "in_progress"}
            )
            self.items[self._reasoning]["content"] = [part]
            self._thought_number = self._number
            self._number += REASONING_NUMBERS
        thought = _get_first_part(self.items[self._reasoning])
        thought["text"] += text
        if text and self._message is None and len(thought["text"]) <= REASONING_NUMBERS:
            number = self._thought_number + len(thought["text"]) - 1
            where = {**self._place(self._reasoning), "content_index": 0}
            frame: JsonObject = {"type": "response.reasoning_text.delta", "sequence_number": number, **where}
            frames.append({**frame, "delta": text})
        return frames

    def close_reasoning(self, whole: str = "") -> list[JsonObject]:
        """Ends the reasoning item. `whole` replaces the text that was streamed."""
        if self._reasoning is None:
            return []
        index, self._reasoning = self._reasoning, None
        item, part = self.items[index], _get_first_part(self.items[index])
        item["status"] = "completed"
        part["text"] = whole or part["text"]
        where = {**self._place(index), "content_index": 0}
        return [self.build_frame("response.reasoning_text.done", **where, text=part["text"]), *self._finish_item(index)]

    def add_text(self, text: str, *, refusal: bool = False) -> list[JsonObject]:
        """Adds a piece of the answer or of a refusal; starts the message with the first one."""
        kind, field = ("refusal", "refusal") if refusal else ("output_text", "text")
        frames: list[JsonObject] = []
        if self._message is None:
            self._message = len(self.items)
            item: JsonObject = {
                "id": f"msg_{self._key}_{self._message}",
                "type": "message",
                "role": "assistant",
                "status": "in_progress",
                "content": [],
            }
            frames = self._open_item(item)
            part: JsonObject = {"type": kind, field: ""}
            if not refusal:
                part |= {"annotations": [], "logprobs": []}
            item["content"] = [part]
            where = {**self._place(self._message), "content_index": 0}
            frames.append(self.build_frame("response.content_part.added", **where, part={**part}))
        if text:
            _get_first_part(self.items[self._message])[field] += text
            where = {**self._place(self._message), "content_index": 0}
            extra: JsonObject = {} if refusal else {"logprobs": []}
            frames.append(self.build_frame(f"response.{kind}.delta", **where, delta=text, **extra))
        return frames

    def close_message(self, status: str = "completed", sources: Sequence[Source] = ()) -> list[JsonObject]:
        """Ends the message, with annotations for the sources that its text cites."""
        if self._message is None:
            return []
        index, self._message = self._message, None
        item, part = self.items[index], _get_first_part(self.items[index])
        where = {**self._place(index), "content_index": 0}
        item["status"] = status
        if part["type"] == "refusal":
            frames = [self.build_frame("response.refusal.done", **where, refusal=part["refusal"])]
        else:
            notes = annotate(str(part["text"]), sources)
            frames = [
                self.build_frame(
                    "response.output_text.annotation.added", **where, annotation_index=number, annotation=note
                )
                for number, note in enumerate(notes)
            ]
            part["annotations"] = [*notes]
            frames.append(self.build_frame("response.output_text.done", **where, text=part["text"], logprobs=[]))
        return [
            *frames,
            self.build_frame("response.content_part.done", **where, part={**part}),
            *self._finish_item(index),
        ]

    def void_message(self) -> list[JsonObject]:
        """Ends the message as incomplete: its text is void."""
        self._void |= {self._message} if self._message is not None else set()
        return self.close_message("incomplete")

    def add_call(self, call: JsonObject, *, is_custom: bool) -> list[JsonObject]:
        """The frames of a call of one of the client's own tools; a custom one takes a text."""
        index = len(self.items)
        if is_custom:
            item = build_custom_call_item(f"ctc_{self._key}_{index}", call)
            frames = self._open_item({**item, "input": ""})
            self.items[index] = item
            where = self._place(index)
            return [
                *frames,
                self.build_frame("response.custom_tool_call_input.delta", **where, delta=item["input"]),
                self.build_frame("response.custom_tool_call_input.done", **where, input=item["input"]),
                *self._finish_item(index),
            ]
        item = build_function_call_item(f"fc_{self._key}_{index}", call)
        frames = self._open_item({**item, "arguments": "", "status": "in_progress"})
        self.items[index] = item
        where = self._place(index)
        done = {"arguments": item["arguments"], "name": item["name"]}
        return [
            *frames,
            self.build_frame("response.function_call_arguments.delta", **where, delta=item["arguments"]),
            self.build_frame("response.function_call_arguments.done", **where, **done),
            *self._finish_item(index),
        ]

    def add_item(self, item: JsonObject) -> list[JsonObject]:
        """Adds an item that is complete."""
        frames = self._open_item(item)
        return [*frames, *self._finish_item(len(self.items) - 1)]

    def _open_item(self, item: JsonObject) -> list[JsonObject]:
        self.items.append(item)
        return [self.build_frame("response.output_item.added", output_index=len(self.items) - 1, item={**item})]

    def _finish_item(self, index: int) -> list[JsonObject]:
        return [self.build_frame("response.output_item.done", output_index=index, item={**self.items[index]})]

    def _place(self, index: int) -> dict[str, Any]:
        return {"item_id": self.items[index]["id"], "output_index": index}

    def build_frame(self, kind: str, **fields: Any) -> JsonObject:
        """A frame with its number: that of its last character, or the next one."""
        self._number += len(fields["delta"]) if kind in STREAMED else 1
        return {"type": kind, "sequence_number": self._number - 1, **fields}


def _get_first_part(item: JsonObject) -> dict[str, Any]:
    content = item["content"]
    if not isinstance(content, list) or not isinstance(content[0], dict):
        raise TypeError("an open item has one part")
    return content[0]
