"""What stock Open WebUI (0.12.4) makes of a stream: its reading of our frames, in our words, and what it sends itself.

Read in its middleware and its page, then seen in a browser; `Shown` is what a person is left with."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

HEADERS = {"X-OpenWebUI-Chat-Id": "c1"}
ASK_USER = {
    "type": "function",
    "function": {
        "name": "ask_user",
        "description": "Ask the person something before going on.",
        "parameters": {
            "type": "object",
            "properties": {
                "questions": {"type": "array", "items": {"type": "object"}},
                "allow_other": {"type": "boolean"},
                "timeout_ms": {"type": "integer"},
            },
            "required": ["questions"],
        },
    },
}
"""Its own tool, cut to what tells it from another client's."""


def with_passages(question: str, *passages: str, name: str = "soup.txt") -> str:
    """A message with a file attached, as it is sent: its template, the passages it found, and the question at last."""
    found = "\n".join(f'<source id="{n}" name="{name}">{text}</source>' for n, text in enumerate(passages, start=1))
    template = "### Task:\nAnswer from the context. Follow the format, with tags and titles.\n"
    return f"{template}\n<context>\n{found}\n</context>\n\n{attached(question, name)}"


def attached(question: str, name: str = "soup.txt") -> str:
    """A message with a file of which it found no passage."""
    return f'<attached_files>\n<file type="file" id="f1" url="f1" name="{name}"/>\n</attached_files>\n\n{question}'


@dataclass
class Shown:
    """A message as Open WebUI builds it from the frames of one stream."""

    output: list[dict[str, Any]] = field(default_factory=list)
    statuses: list[tuple[str, bool]] = field(default_factory=list)
    sources: dict[str, dict[str, Any]] = field(default_factory=dict)
    error: dict[str, Any] | None = None
    called: list[dict[str, Any]] = field(default_factory=list)

    def read(self, frames: Iterable[str]) -> "Shown":
        """Take up the data of every frame, in order."""
        for data in frames:
            if data != "[DONE]":
                self._take(json.loads(data))
        return self

    @property
    def text(self) -> str:
        """What stands there as the answer."""
        return "".join(item["text"] for item in self.output if item["type"] == "message")

    @property
    def chips(self) -> list[str]:
        """What `[1]`, `[2]` ... in the text turn into: the names of the sources by their keys, in order of arrival."""
        return [source["name"] for source in self.sources.values()]

    @property
    def asks_the_net(self) -> list[str]:
        """Names for which the page fetches an icon from a search engine, which so learns of them."""
        return [name for name in self.chips if name.startswith("http")]

    @property
    def left_open(self) -> list[str]:
        """Calls without an output: it would take each for one that it must carry out, and come back with the result."""
        done = {item["call_id"] for item in self.output if item["type"] == "function_call_output"}
        return [item["name"] for item in self.output if item["type"] == "function_call" and item["call_id"] not in done]

    def history(self) -> list[dict[str, Any]]:
        """The message as it comes back with the next request: every card as a call of a tool and its result."""
        told: list[dict[str, Any]] = []
        for item in self.output:
            if item["type"] == "function_call":
                function = {"name": item["name"], "arguments": item["arguments"]}
                call = {"id": item["call_id"], "type": "function", "function": function}
                told.append({"role": "assistant", "content": "", "tool_calls": [call]})
            elif item["type"] == "function_call_output":
                said = item["output"][0]["text"]
                told.append({"role": "tool", "tool_call_id": item["call_id"], "content": said})
            else:
                told.append({"role": "assistant", "content": item["text"]})
        return told

    def _take(self, frame: dict[str, Any]) -> None:
        if "event" in frame:
            self._event(frame["event"]["type"], frame["event"]["data"])
        if str(frame.get("type", "")).startswith("response."):
            self._line(frame)
            return
        if not frame.get("choices"):
            self.error = frame.get("error") or self.error
            return
        delta = frame["choices"][0]["delta"]
        self.called += delta.get("tool_calls") or []
        if delta.get("content"):
            if not self.output or self.output[-1]["type"] != "message":
                self.output.append({"type": "message", "text": ""})
            self.output[-1]["text"] += delta["content"]

    def _event(self, kind: str, data: dict[str, Any]) -> None:
        if kind == "status":
            self.statuses.append((data["description"], data["done"]))
        if kind != "source":
            return  # `replace` changes nothing that is shown: the text stands in `output`
        for quote, about in zip(data["document"], data["metadata"], strict=True):
            key = about["source"]
            name = key if key.startswith(("http://", "https://")) else about["name"]
            one = self.sources.setdefault(key, {"name": name, "url": data["source"].get("url"), "quotes": []})
            one["quotes"].append(quote)

    def _line(self, frame: dict[str, Any]) -> None:
        at, item = frame.get("output_index", len(self.output) - 1), frame.get("item", {})
        match frame["type"]:
            case "response.output_item.added":
                same = [n for n, other in enumerate(self.output) if other.get("id") == item["id"]]
                if same:
                    self.output[same[0]] = item
                else:
                    self.output.insert(at, item)
            case "response.output_item.done":
                self.output[at : at + 1] = [item]
            case "response.output_text.done" if self.output and self.output[at]["type"] == "message":
                self.output[at]["text"] = frame["text"]
