"""Takes off a model's reply what its chat template writes around the answer, also from a stream.

Endpoints that do not know a model's template send all of it as text: the thoughts in front of the answer, and the
tokens that end a turn, behind which a model goes on with turns that it makes up. The table is the only one: planner,
judge, skills, answers and the reader of written calls all split replies by it.
"""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Literal, NamedTuple

from agent.llm.answer_place import AnswerPlace, Behind

_END_OF_CHANNEL = ("<|end|>", "<|start|>", "<|channel|>")
THOUGHTS: Mapping[str, tuple[str, ...]] = MappingProxyType({
    "<think>": ("</think>",),  # DeepSeek R1, Qwen 3, QwQ, GLM, MiniMax, Nemotron
    "<thinking>": ("</thinking>",),
    "<thought>": ("</thought>",),  # EXAONE
    "<reasoning>": ("</reasoning>",),
    "<scratchpad>": ("</scratchpad>",),
    "<seed:think>": ("</seed:think>",),  # Seed-OSS
    "[think]": ("[/think]",),  # Magistral
    "<|start_thinking|>": ("<|end_thinking|>",),  # Command A
    "\u25c1think\u25b7": ("\u25c1/think\u25b7",),  # Kimi
    "<|inner_prefix|>": ("<|inner_suffix|>",),  # Apertus
    "<|thought_start|>": ("<|thought_end|>",),  # MiniCPM
    "<|begin_of_thought|>": ("<|end_of_thought|>",),  # OpenThinker
    "<longcat_think>": ("</longcat_think>",),
    "<|channel>thought": ("<channel|>",),  # Gemma 4
})  # fmt: skip
"""How thoughts begin, and how they end; in lower case. An answer that has such a tag further on speaks of it."""
_CHANNEL = re.compile(
    r"<\|channel\|>\s*(?P<name>\w+)(?P<recipient>[^<]*)(?:<\|constrain\|>[^<]*)?<\|message\|>", re.IGNORECASE
)
"""A part of gpt-oss's reply: `final` is the answer, one with `to=` is a call, the others are thoughts."""
_CHANNEL_MARK, _CHANNEL_CHARS = "<|channel|>", 160
_BARE, _BARE_END = "analysis", "assistantfinal"
_BARE_THOUGHT = re.compile(rf"{_BARE}(?=[A-Z])")
BARE_BEGIN = re.compile(r"\s*+(?:" + "|".join(f"{_BARE[:end]}\\Z" for end in range(1, len(_BARE))) + f"|{_BARE})")
"""The same where the server has left the tokens out: `analysisThey greet.assistantfinalHello!`. And its beginning."""
_SPACE = re.compile(r"\s*")
_HEADS = (
    "<|start|>assistant", "<|im_start|>assistant", "<|assistant|>", "<start_of_turn>model", "<|begin_of_text|>",
    "<|start_header_id|>assistant<|end_header_id|>", "<|start_of_role|>assistant<|end_of_role|>", "<|start_response|>",
    "<bos>", "<answer>", "<response>", "<|begin_of_solution|>", "<|begin_of_box|>",
)  # fmt: skip
"""Tokens in front of an answer."""
_WRAPPINGS = frozenset({"<answer>", "<response>"})
"""Those of them that are the template's only behind a thought (Hunyuan): others are asked to write them."""
_ENDS = frozenset({
    "<|im_end|>", "<|im_start|>", "<|eot_id|>", "<|eom_id|>", "<|start_header_id|>", "<|end_of_text|>",
    "<|endoftext|>", "<|begin_of_text|>", "<|end|>", "<|return|>", "<|start|>", "<end_of_turn>", "<start_of_turn>",
    "<|end_of_turn|>", "<|endofturn|>", "<|end_of_turn_token|>", "<|start_of_turn_token|>", "<|end_response|>",
    "<|eot|>", "<|user|>", "<|observation|>", "<|system|>", "<\uff5cend\u2581of\u2581sentence\uff5c>",
    "<\uff5cuser\uff5c>", "<eos>", "[e~[", "[|endofturn|]",
})  # fmt: skip
"""Tokens that end a turn, or begin the next one: what follows is not the answer."""
_TURN = re.compile(
    r"(?:<\|im_start\|>|<start_of_turn>|<\|start_header_id\|>|<\|start\|>)(?=[a-z])"
    r"|<\|start_of_turn_token\|>(?=<)|<\|(?:user|observation|system)\|>|<\uff5cuser\uff5c>",
    re.IGNORECASE,
)
"""Those of them that begin the next turn, with its role."""
_LAST = {
    "</s>": "<s>", "</answer>": "<answer>", "</response>": "<response>",
    "<|end_of_solution|>": "<|begin_of_solution|>", "<|end_of_box|>": "<|begin_of_box|>",
}  # fmt: skip
"""Tags that are left out at the very end of an answer that does not open them."""
_UNOPENED = {closing: opening for opening, closings in THOUGHTS.items() for closing in closings}
_MARKS = (*THOUGHTS, *_UNOPENED, *_ENDS, *_LAST, *_LAST.values())
MARK = re.compile("|".join(map(re.escape, sorted(_MARKS, key=len, reverse=True))), re.IGNORECASE)
"""Any token of the table."""
_FIRST_CHARS = "".join(dict.fromkeys(mark[0] for mark in (*_MARKS, _BARE_END)))
MAY_BEGIN = re.compile(r"[<\u25c1]|\[(?:\Z|/?t(?:h|\Z)|/\Z|e(?:~|\Z)|\|)", re.IGNORECASE)
"""What may begin a token of the table: few texts have it, and all others are passed on without a further look."""
_LONGEST = max(map(len, (*_MARKS, *_HEADS)))
_TOKENS = re.compile(rf"\s*(?:(?:{'|'.join(map(re.escape, (*_ENDS, *_LAST)))})\s*){{0,8}}", re.IGNORECASE)
"""Tokens behind the end of a turn, and space. Not all, so that the time stays linear."""
_BEHIND_CHARS = 200
"""Characters behind a token that are waited for, to see whether it is quoted."""
OPENING = re.compile("|".join(map(re.escape, THOUGHTS)), re.IGNORECASE)
"""The beginning of a thought."""
THOUGHT = re.compile(
    "|".join(f"{re.escape(opening)}.*?{re.escape(closing)}" for closing, opening in _UNOPENED.items()),
    re.IGNORECASE | re.DOTALL,
)
"""A whole thought."""

_Stage = Literal["start", "thought", "answer", "over"]


class Piece(NamedTuple):
    """Some of a reply: what was thought, and what is answered. With `restarts`, all text before it was thought."""

    thought: str = ""
    text: str = ""
    restarts: bool = False


def is_never_asked(token: str) -> bool:
    """The default of `is_asked`: the request speaks of no token."""
    return False


class ThoughtSplitter:
    """Splits a reply as it comes. It holds back what may be the half of a tag, and the space around the thought.

    `opened` is the tag that ends a thought whose beginning is in the prompt, for a model whose template does that: the
    reply is a thought up to the tag. If the tag never comes, the reply was the answer. `before` is the beginning of an
    answer that was passed on already, without a token. `is_asked` says of a token, in lower case, whether the
    request speaks of it: such a thought is a part of the answer.
    """

    def __init__(self, opened: str = "", *, before: str = "", is_asked: Callable[[str], bool] = is_never_asked) -> None:
        self.own_tags: set[str] = set()
        """The tags around the thoughts that were taken off, in lower case."""
        self._is_asked = is_asked
        self.opened = opened
        """Set to the tag that ended a thought without a beginning. Emptied by a reply without any."""
        self._stage: _Stage = "answer" if before else "start"
        self._held = ""
        self._closings: tuple[str, ...] = ()
        self._assumed: list[str] | None = None
        """The thought so far, if only `opened` says that it is one."""
        self._has_token = False
        """Whether a token of the template was taken off: the space behind it belongs to it."""
        self._has_thought = False
        self._opened_tags: set[str] = set()
        self._place = AnswerPlace()
        self._place.add(before)

    @property
    def is_over(self) -> bool:
        """Whether the turn of the model has ended: whatever follows is not its answer."""
        return self._stage == "over"

    @property
    def rest(self) -> str:
        """What came from the end of the turn on, of the piece that text it."""
        return self._held if self.is_over else ""

    @property
    def is_thinking(self) -> bool:
        """Whether the reply so far is within a thought."""
        return self._stage == "thought" and self._assumed is None

    def feed(self, text: str) -> Piece:
        """The next piece of the reply."""
        if self._stage == "answer":
            return self._pass_on(text, is_end=False)
        if self._stage == "over":
            return Piece()
        self._held += text
        return self._read_start()

    def end(self, *, is_cut: bool = False) -> Piece:
        """What is left when the reply ends. `is_cut` says that it is not whole: then a thought need not have ended."""
        if self._stage == "thought" and self._assumed is not None and not is_cut:
            answer = "".join((*self._assumed, self._held))
            self.opened = "" if answer.strip() else self.opened
            self._assumed, self._held, self._stage = None, "", "answer"
            return self._pass_on(answer, is_end=True)
        if self._stage == "thought":
            rest, self._held = self._held, ""
            return Piece(thought=rest)
        if self._stage == "over":
            return Piece()
        self._held = self._held.lstrip() if self._stage == "start" and self._has_token else self._held
        self._stage = "answer"
        return self._pass_on("", is_end=True)

    def _read_start(self) -> Piece:
        """Reads thoughts and tokens of the template up to the answer."""
        thoughts: list[str] = []
        at: int | None = 0
        while at is not None:
            start = at
            at = self._read_thought(at, thoughts) if self._stage == "thought" else self._read_token(at)
            if self._stage == "answer":
                rest, self._held = self._held[start:], ""
                piece = self._pass_on(rest.lstrip() if self._has_token else rest, is_end=False)
                return piece._replace(thought="".join(thoughts) + piece.thought)
        return Piece("".join(thoughts))

    def _read_token(self, at: int) -> int | None:
        """Reads a token of the template, or sees that the answer begins. Where it goes on; None for where more must
        come."""
        space = _SPACE.match(self._held, at)
        begin = space.end() if space is not None else at
        folded = self._held[begin : begin + _LONGEST].lower()
        token = next((mark for mark in (*THOUGHTS, *_HEADS) if folded.startswith(mark)), "")
        if token and (self._is_asked(token) or (token in _WRAPPINGS and not self._has_thought)):
            self._stage = "answer"
            return at
        channel = _CHANNEL.match(self._held, begin, begin + _CHANNEL_CHARS)
        self._has_token, had_token = True, self._has_token
        if token in THOUGHTS:
            self.opened = ""
            self.own_tags.update((token, *THOUGHTS[token]))
            return self._begin_thought(THOUGHTS[token], begin + len(token))
        if token:
            return begin + len(token)
        if channel is not None and channel["name"].lower() == "final":
            return channel.end()
        if channel is not None and "to=" not in channel["recipient"]:
            return self._begin_thought(_END_OF_CHANNEL, channel.end())
        is_open_channel = folded.startswith(_CHANNEL_MARK) and len(self._held) - begin < _CHANNEL_CHARS
        is_half = any(mark.startswith(folded) for mark in (*THOUGHTS, *_HEADS, _CHANNEL_MARK, _BARE))
        if channel is None and (is_half or is_open_channel):
            self._held, self._has_token = self._held[at:], had_token
            return None
        bare = _BARE_THOUGHT.match(self._held, begin) if self.opened in ("", _BARE_END) else None
        self.opened = self.opened or ("" if bare is None else _BARE_END)
        if self.opened and not self._has_thought:
            start = at if bare is None else bare.end()
            self._assumed = [self._held[at:start]]
            return self._begin_thought((self.opened,), start)
        self._stage, self._has_token = "answer", had_token
        return at

    def _begin_thought(self, closings: tuple[str, ...], at: int) -> int:
        self._stage, self._closings, self._has_thought = "thought", closings, True
        return at

    def _read_thought(self, at: int, thoughts: list[str]) -> int | None:
        """Reads the thought up to its end, or to what may be the half of the tag that ends it."""
        end = _compile_closings(self._closings).search(self._held, at)
        if end is None:
            half = max(at, _find_half(self._held, self._closings))
            thoughts.append(self._held[at:half])
            if self._assumed is not None:
                self._assumed.append(self._held[at:half])
            self._held = self._held[half:]
            return None
        thoughts.append(self._held[at : end.start()])
        if self._assumed is not None:
            self.own_tags.update((self.opened, _UNOPENED.get(self.opened, _BARE)))
        self._stage, self._assumed = "start", None
        return end.start() if end[0].lower() in _END_OF_CHANNEL[1:] else end.end()

    def _pass_on(self, text: str, *, is_end: bool) -> Piece:
        """The text of the answer that is certain: without tokens of the template at its end."""
        if not self._held and not is_end and MAY_BEGIN.search(text) is None:
            self._place.add(text)
            return Piece(text=text)
        text, self._held = self._held + text, ""
        passed: list[str] = []
        at = start = 0
        while (mark := MARK.search(text, start)) is not None:
            token, start = mark[0].lower(), mark.end()
            if token in THOUGHTS or token in _LAST.values():
                self._opened_tags.add(token)
                continue
            passed.append(text[at : mark.start()])
            self._place.add(passed[-1])
            at = mark.start()
            behind = _look_behind(text, mark, is_end=is_end)
            if behind is None:
                self._held = text[at:]
                return Piece(text="".join(passed))  # what follows decides
            if self._is_quoted(token, behind) or (token in _LAST and not behind.is_last):
                continue
            if token in _UNOPENED:
                return self._restart(token, text[start:], is_end=is_end)
            self._stage, self._held = "over", text[at:]
            return Piece(text="".join(passed))
        end = len(text) if is_end else max(start, _find_half(text, _MARKS))
        passed.append(text[at:end])
        self._place.add(passed[-1])
        self._held = text[end:]
        return Piece(text="".join(passed))

    def _is_quoted(self, token: str, behind: Behind) -> bool:
        """Whether the answer speaks of the token: in code, within a sentence, or because it has opened it, or the
        request asks for it."""
        opening = _LAST.get(token) or _UNOPENED.get(token, "")
        if opening in self._opened_tags or (token in _UNOPENED and self._has_thought):
            return True
        is_asked = self._is_asked(token)
        if opening and (is_asked or self._is_asked(opening)):
            return True
        return self._place.is_quoted(behind, ends_thought=token in _UNOPENED, is_asked=is_asked)

    def _restart(self, token: str, rest: str, *, is_end: bool) -> Piece:
        """Begins the answer behind a thought whose beginning is in the prompt."""
        thought = self._place.text
        self.opened, self._has_thought, self._has_token = token, True, True
        self.own_tags.update((token, _UNOPENED[token]))
        self._stage, self._held, self._place = "start", rest, AnswerPlace()
        piece = self._read_start()
        if is_end:
            piece = join_pieces(piece, self.end())
        return Piece(thought + piece.thought, piece.text, restarts=True)


def _look_behind(text: str, mark: re.Match[str], *, is_end: bool) -> Behind | None:
    """What follows a token. None where more must come."""
    start = mark.end()
    tokens = _TOKENS.match(text, start)
    end = tokens.end() if tokens is not None else start
    is_line_end = mark[0].lower() in _UNOPENED and text.startswith("\n", start)  # says enough of the end of a thought
    if not is_end and not is_line_end and _find_half(text, _MARKS) <= end and len(text) - start < _BEHIND_CHARS:
        return None
    turn = _TURN.search(text, mark.start(), end + 1)
    is_turn = turn is not None and turn.start() == mark.start()
    is_last = end == len(text)
    return Behind(text[start : start + _BEHIND_CHARS], is_last, is_turn, turn is not None and not is_turn)


@lru_cache(maxsize=64)
def _compile_closings(closings: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(map(re.escape, closings)), re.IGNORECASE)


@lru_cache(maxsize=64)
def _list_halves(marks: tuple[str, ...]) -> frozenset[str]:
    return frozenset(mark[:size] for mark in marks for size in range(1, len(mark)))


def _find_half(text: str, marks: tuple[str, ...]) -> int:
    """Where the half of a mark begins that the end of the text may be; its length if there is none."""
    halves = _list_halves(marks)
    tail = (at for at in range(max(0, len(text) - _LONGEST), len(text)) if text[at] in _FIRST_CHARS)
    return next((at for at in tail if text[at:].lower() in halves), len(text))


class WholeReply(NamedTuple):
    """A whole reply: its thought and its answer. `is_open` says that it ends within the thought; `opened` as in
    `ThoughtSplitter`. `rest` is what the model wrote from the end of its turn on. `own_tags` are those that were around
    the thought."""

    thought: str
    text: str
    is_open: bool = False
    opened: str = ""
    rest: str = ""
    own_tags: frozenset[str] = frozenset()


def split_text(
    text: str, *, is_cut: bool = False, opened: str = "", is_asked: Callable[[str], bool] = is_never_asked
) -> WholeReply:
    """Splits a whole reply. The time is linear in its length. `is_cut` as in `ThoughtSplitter.end`, the others as in
    the splitter."""
    if not opened and MAY_BEGIN.search(text) is None and BARE_BEGIN.match(text) is None:
        return WholeReply("", text)
    splitter = ThoughtSplitter(opened, is_asked=is_asked)
    first = splitter.feed(text)
    is_open = splitter.is_thinking
    last = splitter.end(is_cut=is_cut)
    before = "" if last.restarts else first.text
    thought, own_tags = first.thought + last.thought, frozenset(splitter.own_tags)
    return WholeReply(thought, before + last.text, is_open, splitter.opened, splitter.rest, own_tags)


def join_pieces(first: Piece, last: Piece) -> Piece:
    """Two pieces that follow each other as one."""
    before = "" if last.restarts else first.text
    return Piece(first.thought + last.thought, before + last.text, first.restarts or last.restarts)
