"""`POST /v1/render`: Markdown as HTML that a page may show, whatever a text tries."""

import html.parser
import re
import time

import httpx
import pytest

from gateway.render.html import BlockStream, limits, render_markdown
from gateway.render.html.blocks import split_finished
from tests.integration.conftest import Serve
from tests.support.hostile_html import ATTACKS

ANSWER = """# Report

The **result** of `f(x)` is 42[^1], see https://example.org/a and ~~not~~ [this](https://example.org/b "t").
Second line with $a^2 + b^2 = c^2$ and a price of $5 to $6.

\\[ \\int_0^1 x \\, dx \\]

- [ ] open
- [x] done
  1. inner

| name | sum |
| :-- | --: |
| a | 1 |

```python
def f(x: int) -> int:
    return x + 1  # why
```

```mermaid
graph TD; A-->B
```

<details><summary>More</summary>

Inner *text*.

</details>

A `List<String>` and List<String>.

[^1]: The note.
"""


class Elements(html.parser.HTMLParser):
    """The elements and attributes of some HTML, as a browser reads them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


class Words(html.parser.HTMLParser):
    """The text of some HTML, as a browser shows it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = ""
        self.feed(text)
        self.close()

    def handle_data(self, data: str) -> None:
        self.text += data


def tags(text: str) -> set[str]:
    return {tag for tag, _ in Elements(text).found}


def test_everything_that_answers_hold_is_rendered() -> None:
    shown = render_markdown(ANSWER, "m1")
    wanted = {"h3", "strong", "code", "s", "a", "ul", "ol", "input", "table", "pre", "details", "summary", "section"}
    assert wanted <= tags(shown)
    assert '<th class="end">sum</th>' in shown
    assert '<span class="k">def</span>' in shown, "coloured"
    assert '<code class="language-mermaid">graph TD; A--&gt;B' in shown, "its source"
    assert shown.count("<math") == 2
    assert "a price of $5 to $6" in shown
    assert "List&lt;String&gt;." in shown, "an unknown tag is words"
    assert 'id="fn-m1-1"' in shown
    assert 'rel="noopener noreferrer"' in shown
    assert " style=" not in shown


FORMS = (
    "ATTACK", "# ATTACK", "| ATTACK |\n| --- |\n| ATTACK |", "<details>\n\nATTACK\n\n</details>", "$$\nATTACK\n$$",
    "$ATTACK$", "[ATTACK](ATTACK)", "![ATTACK](ATTACK)", "```ATTACK\nATTACK\n```", "[^a]: ATTACK\n\ntext[^a]",
    "\\[ ATTACK \\]",
)  # fmt: skip


@pytest.mark.parametrize("attack", ATTACKS)
def test_no_text_becomes_something_that_acts(attack: str) -> None:
    for form in FORMS:
        text = form.replace("ATTACK", attack)
        shown = render_markdown(text, attack)
        for tag, attributes in Elements(shown).found:
            assert tag not in {
                "script",
                "iframe",
                "object",
                "embed",
                "form",
                "style",
                "link",
                "meta",
                "base",
                "svg",
                "video",
            }
            for name, value in attributes.items():
                assert not name.startswith("on"), shown
                assert name not in {"style", "srcdoc", "formaction", "srcset"}
                if name in {"href", "src"}:
                    assert re.match(r"https?://|mailto:|#fn|/v1/runs/\w+/artifacts/", value or ""), shown


def test_pictures_of_other_hosts_are_links() -> None:
    shown = render_markdown("![p](https://evil.example/p.png?q=secret) ![c](/v1/runs/run_1/artifacts/c.png)")
    assert 'href="https://evil.example/p.png?q=secret"' in shown
    assert Elements(shown).found[-1] == ("img", {"src": "/v1/runs/run_1/artifacts/c.png", "alt": "c"})
    assert "<img" not in render_markdown("![c](/v1/runs/run_1/artifacts/../../keys.png)")


@pytest.mark.parametrize("size", [1, 3, 17, 400])
def test_blocks_of_a_growing_text_are_those_of_the_whole(size: int) -> None:
    text = ANSWER.replace("42[^1]", "42").replace("[^1]: The note.\n", "")
    stream, shown = BlockStream("m"), dict[int, str]()
    finished = set[int]()
    for at in range(0, len(text), size):
        stream.feed(text[at : at + size])
        for block in stream.render():
            assert block.index not in finished, "a finished block stays"
            shown[block.index] = block.html or ""
            finished |= {block.index} if block.finished else set()
    assert "".join(shown.values()).split() == render_markdown(text, "m").split()


@pytest.mark.parametrize(
    "line", ["## Part\n\n" + "word " * 80 + "\n\n", "- item\n", "| a | b |\n", "word " * 40, "w\u2028\f\r\n\r\n"]
)
@pytest.mark.parametrize("size", [400, 10_000])
def test_an_overlong_text_is_whole_and_its_rest_plain(line: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_RENDERED_CHARS", 40_000)  # a fifth of either limit
    monkeypatch.setattr(limits, "MAX_RENDERED_LINES", 2_000)
    text = line * (limits.MAX_RENDERED_CHARS * 2 // len(line))
    stream, shown, sent = BlockStream("m"), dict[int, str](), 0
    started = time.thread_time()
    for at in range(0, len(text), size):
        stream.feed(text[at : at + size])
        for block in stream.render():
            piece = Words(block.html).text if block.html is not None else block.text
            shown[block.index] = shown[block.index] + piece if block.appends else piece
            sent += len(piece)
    whole = Words(render_markdown(text, "m")).text
    assert "The rest is shown as plain text" in whole
    note = whole.index("This text is too long")
    for words in ("".join(shown.values()), whole[:note] + whole[note:].partition("plain text.")[2]):
        assert re.findall(r"\w", words) == re.findall(r"\w", text)
    assert sent < 4 * len(text), "work grows with the length, not with its square"
    assert time.thread_time() - started < 3


def test_only_the_end_of_an_overlong_open_block_is_sent() -> None:
    stream = BlockStream("m")
    stream.feed("word " * 2_000)
    (first,) = stream.render()
    stream.feed("more ")
    (second,) = stream.render()
    assert (first.html, first.appends, first.text) == (None, False, "word " * 2_000)
    assert (second.index, second.text, second.appends) == (first.index, "more ", True)
    stream.feed("\n\nnext " + "x " * 2_000)
    blocks = list(stream.render())
    assert blocks[0].index == first.index
    assert blocks[0].finished
    assert blocks[0].html


def test_open_details_are_one_block() -> None:
    text = "a\n\n<details><summary>s</summary>\n\nb\n\nc\n\n"
    assert split_finished(text) == (["a\n\n"], text[3:])
    assert len(split_finished(text + "</details>\n\nd\n\ne")[0]) == 3


def test_a_block_takes_less_than_two_milliseconds() -> None:
    blocks, rest = split_finished(ANSWER)
    slow = {}
    for block in (*blocks, rest):
        render_markdown(block)  # what is loaded and learned at first
        times = []
        for _ in range(15):
            started = time.thread_time()
            render_markdown(block)
            times.append(time.thread_time() - started)
        if min(times) > 0.002:
            slow[block] = min(times)
    assert slow == {}


@pytest.mark.parametrize(
    "text",
    [
        "*" * 250_000, "[" * 250_000, "`a" * 120_000, ">" * 250_000, "- " * 120_000, "![a](" * 50_000, "<a " * 80_000,
        "$a" * 120_000, "[^a]" * 60_000, "**a *b " * 30_000, "\\[" * 120_000,
        "\n".join("  " * n + "- a" for n in range(600)),
        "{" * 3000, "$" + "{" * 1900 + "$", "&" * 250_000, "_a " * 80_000, "http://a" * 30_000, "\ud800\x00",
    ],
)  # fmt: skip
def test_no_text_takes_long(text: str) -> None:
    started = time.thread_time()
    render_markdown(text)
    assert time.thread_time() - started < 3


async def test_the_door_renders_one_text_or_several(serve: Serve) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        one = await client.post("/v1/render", json={"text": "**a**"})
        several = await client.post("/v1/render", json={"texts": ["a", "b"]})
        neither = await client.post("/v1/render", json={})
        large = await client.post("/v1/render", json={"text": "a" * 300_000})
        odd = await client.post("/v1/render", json={"text": "a", "prefix": "x y"})
    assert one.json()["html"] == "<p><strong>a</strong></p>\n"
    assert several.json()["htmls"] == ["<p>a</p>\n", "<p>b</p>\n"]
    assert [neither.status_code, large.status_code, odd.status_code] == [400, 413, 400]


async def test_the_door_needs_a_key_where_chat_does(serve: Serve) -> None:
    async with serve(require_key="always") as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        assert (await client.post("/v1/render", json={"text": "a"})).status_code == 401
