"""Decides whether a call that only reads may carry words out of the gateway. Pure functions over the facts of a run.

Fetching an address reveals it to its host. A text that a model has read can ask it to put words of other texts there,
in any encoding. So what counts is who chose the address, not what it looks like:

- The user, the room or the operator gave it, or a plan named it before any untrusted text was read: free.
- It is an unchanged link of a result: free while nothing private was read. Afterwards only if the user named the page
  that has the link, and the link carries no private word.
- A model composed it: free until the run has read untrusted text; from then on a person is asked.

The facts come from the run's log (`agent/execution/egress_facts.py`), so they hold after a restart, in forks, in skills
and in sub-agents.
"""

import html
import json
import re
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Final
from urllib.parse import urljoin, urlsplit

from pydantic import JsonValue

from agent.core.json_walk import iter_leaves
from agent.core.models import JsonObject
from agent.policy.guardrails.plain_text import format_literal
from agent.text.replies import UserReply

if TYPE_CHECKING:
    from agent.policy.guardrails.exfiltration_check import ExfiltrationCheck

_ADDRESS: Final = re.compile(r"(?:[a-z][a-z0-9+.-]{1,15}:)?//[^\s<>\"'`\\^{}|]+", re.IGNORECASE)
_BARE_ADDRESS: Final = re.compile(
    r"(?<![\w@./:-])(?:(?:[a-z0-9-]{1,63}\.)+[a-z]{2,24}|(?:\d{1,3}\.){3}\d{1,3}|localhost)(?::\d{1,5})?"
    r"(?:[/?][^\s<>\"'`\\^{}|]*)?",
    re.IGNORECASE,
)
"""A host that somebody wrote without `https://`."""
_ORIGIN: Final = re.compile(r"(?:[a-z][a-z0-9+.-]*:)?//[^/?#\s]+", re.IGNORECASE)
"""An address that ends with its host."""
_MARKDOWN_TARGET: Final = re.compile(r"\]\(\s*<?([^)\s>]+)")
_TRAILING: Final = ".,;:!?)]*_~'\""
_SENT_SCHEMES: Final = frozenset({"", "http", "https", "ftp", "ws", "wss", "mailto"})
MAX_SHOWN_WORDS: Final = 20
MAX_FREE_VALUES: Final = 8
"""How many values a list or an object may have whose choice and order nobody gave; more of them can write a text."""


@dataclass(frozen=True)
class ReadText:
    """A text that the run has read: the result of a call, an answer of the conversation, or a remembered text."""

    text: str
    is_untrusted: bool = True
    is_private: bool = False
    address: str = ""
    """The page's address, to which its relative links belong; empty if it is not a page."""
    requested: str = ""
    """The address that was asked for."""
    server: str = ""
    """The foreign server that returned it."""
    is_shown: bool = False
    """Whether it is an answer that the user has seen, or a file of a skill."""
    repeated_keys: frozenset[str] | None = None
    """Of an answer, the addresses that the model repeated: another one may carry words that it had read. None: all."""

    @cached_property
    def links(self) -> frozenset[str]:
        """The addresses that the text holds and that are not the model's own, as keys."""
        address_keys = set(iter_address_keys(self.text))
        if self.repeated_keys is not None:
            address_keys &= self.repeated_keys
        if self.address:
            address_keys |= {
                key
                for target in _MARKDOWN_TARGET.findall(self.text)
                for key in _list_keys(_join(self.address, html.unescape(target)))
            }
        return frozenset(address_keys)


@dataclass(frozen=True)
class EgressFacts:
    """What decides about the addresses of a run."""

    given: tuple[str, ...] = ()
    """What the user, the room and the operator wrote."""
    replies: tuple[UserReply, ...] = ()
    """What a person answered to questions of the run. It gives no address and no value that a question showed."""
    planned: tuple[str, ...] = ()
    """Arguments of plans that were made before any untrusted text was read, or that a person approved."""
    reads: tuple[ReadText, ...] = ()
    starts_private: bool = False
    """Whether the run began with private text: the conversation relies on it, or the planner was shown it."""
    starts_untrusted: bool = False
    """Whether its current plan was made after untrusted text was read."""
    extra: tuple[str, ...] = field(default=())
    """Private texts that are known but are not results, such as remembered ones."""

    @cached_property
    def is_private(self) -> bool:
        """Whether the run has read something private."""
        return self.starts_private or bool(self.extra) or any(read.is_private for read in self.reads)

    @cached_property
    def is_untrusted(self) -> bool:
        """Whether the run has read text that nobody vouches for."""
        return self.starts_untrusted or self.is_private or any(read.is_untrusted for read in self.reads)

    @cached_property
    def named_keys(self) -> frozenset[str]:
        """The addresses that the user, the room or the operator gave."""
        given = {key for text in self.given for key in iter_address_keys(text, bare=True)}
        replied = ((reply, key) for reply in self.replies for key in iter_address_keys(reply.text, bare=True))
        return frozenset(given | {key for reply, key in replied if not reply.repeats(key)})

    @cached_property
    def free_keys(self) -> frozenset[str]:
        """The addresses that nobody is asked about."""
        return self.named_keys | {key for text in self.planned for key in iter_address_keys(text, bare=True)}

    def has_given(self, text: str) -> bool:
        """Whether the user, the room or the operator wrote a text."""
        return _is_written(text, self.given) or any(
            _is_written(text, (reply.text,)) and not reply.repeats(text) for reply in self.replies
        )

    def is_private_beside(self, server: str) -> bool:
        """Whether the run has read something private that this server did not return."""
        return self.starts_private or bool(self.extra) or any(self._list_private(server))

    def may_return(self, text: str, server: str) -> bool:
        """Whether a text is the server's own, and no private text from elsewhere has it too."""
        if not server or not _is_written(text, [read.text for read in self.reads if read.server == server]):
            return False
        private = [*(read.text for read in self._list_private(server)), *self.extra]
        return not (_is_written(text, private) or self.make_check(beside=server).has_leak(text))

    def make_check(self, without: ReadText | None = None, beside: str = "") -> "ExfiltrationCheck":
        """The check for words of the private texts, except those of one page, or of one server."""
        from agent.policy.guardrails.exfiltration_check import ExfiltrationCheck  # noqa: PLC0415 - see `run_links`

        private = [read.text for read in self._list_private(beside) if read is not without]
        return ExfiltrationCheck("\n".join((*private, *self.extra)), "\n".join(self.given))

    def _list_private(self, beside: str) -> list[ReadText]:
        return [read for read in self.reads if read.is_private and not (beside and read.server == beside)]


@dataclass(frozen=True, slots=True)
class EgressFinding:
    """Why a person must allow a call that only reads."""

    reason: str
    target: str
    """The address or value that would leave."""
    words: tuple[str, ...] = ()
    """Words of private texts that are recognised in it."""

    def format_question(self) -> str:
        """The text for a person, as Markdown without live parts."""
        lines = [f"This would be sent: {format_literal(self.target)}"]
        if self.words:
            lines.append(f"Words in it that were read in this run: {', '.join(map(format_literal, self.words))}")
        return "\n\n".join(lines)


def find_egress(
    args: JsonObject,
    facts: EgressFacts,
    *,
    where_args: Iterable[str],
    is_open_world: bool = False,
    server: str = "",
    is_trusted_server: bool = False,
    fixed_values: Iterable[JsonValue] = (),
    declared_args: Container[str] | None = None,
) -> EgressFinding | None:
    """The reason why a person must allow a reading call with these arguments, or None if it is free.

    `where_args` are addresses. The other arguments go to `server`; they leave only if it `is_open_world`.
    `fixed_values` are those that the tool's schema lists, which carry no words. `declared_args` are the arguments of
    that schema; the name of any other one is a value that leaves. Without it, all are declared.
    """
    if not facts.is_untrusted:
        return None
    where = frozenset(where_args)
    fixed = frozenset(map(json.dumps, fixed_values))
    for name in sorted(where & args.keys()):
        for value in iter_values(args[name]):
            is_free = isinstance(value, bool) or json.dumps(value) in fixed
            finding = None if is_free else _judge_address(str(value), facts, server)
            if finding is not None:
                return finding
    if not is_open_world or is_trusted_server or not facts.is_private:
        return None
    for name in sorted(args.keys() - where):
        names = () if declared_args is None or name in declared_args else (name,)
        for value in (*names, *iter_values(args[name])):
            if json.dumps(value) not in fixed and not _is_known_value(value, facts, server):
                return _find_sent_value(str(value), facts)
        if isinstance(args[name], dict | list) and _can_spell(args[name]) and not _is_known_whole(args[name], facts):
            return _find_sent_value(json.dumps(args[name], ensure_ascii=False), facts)
    return None


def list_repeated_links(answer: str, facts: EgressFacts, texts: Iterable[str] = ()) -> tuple[str, ...]:
    """The keys of the addresses in an answer that are not a model's own, sorted: they are written in what the run has
    read, or in `texts`. Of a run that has read nothing private, all.
    """
    keys = set(iter_address_keys(answer))
    if facts.is_private:
        own = facts.free_keys.union(*(read.links for read in facts.reads))
        keys &= own.union(*(iter_address_keys(text, bare=True) for text in (*facts.extra, *texts)))
    return tuple(sorted(keys))


def _find_sent_value(value: str, facts: EgressFacts) -> EgressFinding:
    reason = "private text was read in this run, and this value goes to a server outside"
    return EgressFinding(reason, value, facts.make_check().list_leaks(value)[:MAX_SHOWN_WORDS])


def _can_spell(value: JsonValue) -> bool:
    """Whether a list or an object is long enough to write a text with values each of which may be known: `[true, false,
    ...]`, two words of the request in turn, or some of its words in an order that says something.
    """
    return sum(1 for _ in iter_leaves(value)) > MAX_FREE_VALUES


def _is_known_whole(value: JsonValue, facts: EgressFacts) -> bool:
    """Whether the user gave, or a plan named, exactly this list or object."""
    written = json.dumps(value, ensure_ascii=False)
    return any(written in text for text in (*facts.given, *facts.planned))


def judge_redirect(source: str, target: str, facts: EgressFacts) -> str | None:
    """The reason why a redirect to another host is not followed, or None if it may be."""
    if not facts.is_private or _get_host(source) == _get_host(target) or set(_list_keys(target)) & facts.free_keys:
        return None
    check = facts.make_check()
    is_free = find_egress({"url": source}, facts, where_args=("url",)) is None
    if is_free and not check.has_leak(target):
        return None
    return (
        f"{source} redirects to {target}, on another host, and private text was read in this run: "
        "the redirect is not followed; fetch that address itself if it is wanted"
    )


def list_addresses(text: str) -> list[str]:
    """The addresses in a text, with and without a scheme, as they are written there."""
    matches = (match[0].rstrip(_TRAILING) for pattern in (_ADDRESS, _BARE_ADDRESS) for match in pattern.finditer(text))
    return list(dict.fromkeys(matches))


def iter_address_keys(text: str, *, bare: bool = False) -> Iterator[str]:
    """Yields the keys of the addresses in a text; with `bare` also of hosts without a scheme."""
    for match in _ADDRESS.finditer(text):
        yield from _iter_variants(match[0])
    if bare:
        for match in _BARE_ADDRESS.finditer(text):
            yield from _iter_variants(f"http://{match[0]}")
            yield from _iter_variants(f"https://{match[0]}")


def _iter_variants(raw: str) -> Iterator[str]:
    """Yields the keys of an address in prose or Markdown, whose end may belong to the sentence around it."""
    variants = [raw, raw.rstrip(_TRAILING), raw.partition(")")[0], raw.partition("](")[0].rstrip(_TRAILING)]
    for variant in dict.fromkeys((*variants, *map(html.unescape, variants))):
        yield from _list_keys(variant)


def _list_keys(address: str) -> tuple[str, ...]:
    """The normal form of a request's address: no fragment, a host in lower case.

    Nothing else is normalised, because every difference could carry a bit. `http` allows `https`.
    """
    try:
        parts = urlsplit(address.strip())
    except ValueError:
        return ()
    host = parts.netloc.lower()
    if parts.scheme.lower() not in _SENT_SCHEMES or (not host and parts.scheme.lower() != "mailto"):
        return ()
    rest = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    if parts.scheme.lower() in ("", "http"):
        return (f"http://{host}{rest}", f"https://{host}{rest}")
    return (f"{parts.scheme.lower()}://{host}{rest}",)


def is_same_address(one: str, other: str) -> bool:
    """Whether both are web addresses, and a request to each is the same."""
    return not set(_list_keys(one)).isdisjoint(_list_keys(other))


def _get_key(address: str) -> str:
    """The key of an address to fetch; empty if it is not an address."""
    return next(iter(_list_keys(address)), "")


def _is_given_address(key: str, address: str, facts: EgressFacts) -> bool:
    return key in facts.free_keys or facts.has_given(address)


def _judge_address(address: str, facts: EgressFacts, server: str) -> EgressFinding | None:
    """The reason why a person must allow fetching the address, or None if it is free."""
    key = _get_key(address)
    if _is_given_address(key, address, facts):
        return None
    if not key:  # an identifier of the server's own, such as the URI of a resource
        if facts.is_private and not _is_known_value(address, facts, server):
            reason = "private text was read in this run, and this value decides where a call goes"
            return EgressFinding(reason, address, facts.make_check().list_leaks(address)[:MAX_SHOWN_WORDS])
        return None
    holders = [read for read in facts.reads if key in read.links]
    if not facts.is_private:
        if holders:
            return None
        return EgressFinding("a model composed this address after it had read text from outside", address)
    named = [read for read in holders if read.is_shown or _get_key(read.requested) in facts.named_keys]
    if any(not facts.make_check(without=read).has_leak(address) for read in named):
        return None
    reason = (
        "this link carries words of private text that was read in this run"
        if named
        else "private text was read in this run, and nobody gave this address: it may carry words of it"
    )
    return EgressFinding(reason, address, facts.make_check().list_leaks(address)[:MAX_SHOWN_WORDS])


def _is_known_value(value: JsonValue, facts: EgressFacts, server: str) -> bool:
    """Whether a value was given, planned, or returned by the server that it goes to, and not by another source."""
    return is_given_value(value, facts) or facts.may_return(str(value).strip(), server)


def is_chosen_link(address: str, facts: EgressFacts) -> bool:
    """Whether an address is free only as a link of a result, and not because somebody gave it."""
    key = _get_key(address)
    return bool(key) and not _is_given_address(key, address, facts)


def is_given_value(value: JsonValue, facts: EgressFacts) -> bool:
    """Whether a value carries no word, was given, or was planned."""
    text = str(value).strip()
    return isinstance(value, bool) or not text or facts.has_given(text) or _is_written(text, facts.planned)


def _is_written(text: str, texts: Iterable[str]) -> bool:
    """Whether one of the others contains a text, not as a part of a longer word or number."""
    text = text.strip()
    if not text:
        return True
    begin = r"(?<!\w)" if re.match(r"\w", text) else ""
    end = r"(?!\w)" if re.search(r"\w\Z", text) else ""
    if _ORIGIN.fullmatch(text):  # `https://bbc.co` is another host than that of `https://bbc.co.uk`
        end = rf"{end}(?![.:@-]+\w)"
    pattern = re.compile(f"{begin}{re.escape(text)}{end}")
    return any(pattern.search(other) is not None for other in texts)


def iter_values(value: JsonValue) -> Iterator[JsonValue]:
    """Yields the texts, numbers, booleans and keys in an argument."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            yield from one
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one
        elif one is not None:
            yield one


def _join(base: str, target: str) -> str:
    try:
        return urljoin(base, target)
    except ValueError:
        return ""


def _get_host(address: str) -> str:
    try:
        parts = urlsplit(address)
        return f"{(parts.hostname or '').removeprefix('www.')}:{parts.port or ''}"
    except ValueError:
        return ""
