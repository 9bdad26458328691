# ruff: noqa: RUF001 - letters and marks of other scripts, as people write them
"""Formulas and emphasis as people and models really write them."""

import re
from time import thread_time

import pytest

from gateway.render.html import render_markdown
from gateway.render.html.blocks import split_finished


def show(text: str) -> str:
    """The HTML with the letters of each formula in place of its MathML."""
    formula = re.compile(r"<math.*?</math>", re.DOTALL)
    html = formula.sub(lambda mark: f"<{re.sub('<[^>]+>', '', mark[0])}>", render_markdown(text))
    return html.replace("\n", "")


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("So:\n\\[\nx = 1\n\\]\nwhere", "<p>So:</p><p><x=1></p><p>where</p>"),
        ("1. First:\n   \\[\n   x = 1\n   \\]\n2. Then \\[y\\]",
         "<ol><li>First:<p><x=1></p></li><li>Then <y></li></ol>"),
        ("so \\[y\\] holds, \\(a_1 * b * c\\) too", "<p>so <y> holds, <a1*b*c> too</p>"),
        ("\\[ y \\] holds", "<p><y> holds</p>"),
        ("a\n\\[\na\n+ b\n\\]", "<p>a</p><p><a+b></p>"),
        ("> q\n> \\[\n> x\n> \\]\n> w", "<blockquote><p>q</p><p><x></p><p>w</p></blockquote>"),
        ("> \\[\n> x\n\nout \\]", "<blockquote><p>[<br>x</p></blockquote><p>out ]</p>"),
        ("a \\[ only", "<p>a [ only</p>"),
        ("See \\[1\\] and \\[a-z\\].", "<p>See [1] and [a-z].</p>"),
        ("`\\[x\\]`", "<p><code>\\[x\\]</code></p>"),
        ("    \\[x\\]", "<pre><code>\\[x\\]</code></pre>"),
    ],
)  # fmt: skip
def test_formulas_in_brackets_are_found_wherever_they_stand(text: str, html: str) -> None:
    assert show(text) == html


@pytest.mark.parametrize(
    "text",
    [
        "export PATH=$HOME/bin:$PATH to", "$AAPL/$MSFT", "^foo$|^bar$", "$this-x=$y", "${HOME}/${USER}", "$1 and $2",
    ],
)  # fmt: skip
def test_dollars_of_programs_stay_as_they_are(text: str) -> None:
    assert show(text) == f"<p>{text}</p>"


def test_dollars_around_a_formula_are_read() -> None:
    assert show("$n$th, $x$s, $\\alpha$-test, $x+y$.") == "<p><n>th, <x>s, <α>-test, <x+y>.</p>"
    assert show("**$1,000**–**$2,000**, `$HOME`").count("<code>$HOME</code>") == 1


@pytest.mark.parametrize(
    ("latex", "letters"),
    [
        ("\\begin{aligned} a &= b \\\\ c &= d \\end{aligned}", "a=bc=d"),
        ("\\begin{gathered} a \\\\ b \\end{gathered}", "ab"),
        ("\\begin{equation} a=b \\end{equation}", "a=b"),
        ("\\operatorname*{argmax}_x", "argmaxx"),
    ],
)
def test_environments_that_look_like_a_known_one_are_formulas(latex: str, letters: str) -> None:
    assert show(f"$${latex}$$") == f"<p><{letters}></p>"
    if "\\\\" in latex:
        assert "<mtr>" in render_markdown(f"$${latex}$$")


@pytest.mark.parametrize("latex", ["\\ce{H2O}", "\\SI{3}{m}", "a & b", "a \\\\ b", "x \\label{e}"])
def test_a_formula_that_is_not_understood_is_its_source(latex: str) -> None:
    escaped = latex.replace("&", "&amp;")
    assert show(f"$${latex}$$") == f'<p><code class="formula">{escaped}</code></p>'


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("请注意：**“重要”**的是**金额。**然后", "请注意：<strong>“重要”</strong>的是<strong>金额。</strong>然后"),
        ("これは**「重要」**です", "これは<strong>「重要」</strong>です"),
        ("합계는 **합계(원)**는", "합계는 <strong>합계(원)</strong>는"),
        ("هذا **(مهم)**جدا", "هذا <strong>(مهم)</strong>جدا"),
        ("Die **„Frist“**en", "Die <strong>„Frist“</strong>en"),
        ("5*(3+4)*2", "5*(3+4)*2"),
        ("**Note:** a **(b)** c", "<strong>Note:</strong> a <strong>(b)</strong> c"),
    ],
)
def test_stars_mark_text_in_languages_without_spaces_too(text: str, html: str) -> None:
    assert show(text) == f"<p>{html}</p>"


def test_a_growing_text_ends_its_paragraph_where_a_formula_begins() -> None:
    finished, rest = split_finished("So:\n\\[\nx = 1\n\\]\nwhere\n\nEnd.")
    assert finished == ["So:\n", "\\[\nx = 1\n\\]\n", "where\n\n"]
    assert rest == "End."


@pytest.mark.parametrize("mark", [":", "![", "[^", "a:", "http:", "**a", "www.", "www._", "_a_"])
def test_paragraphs_of_marks_take_as_long_as_any_text(mark: str) -> None:
    """Each of the 5,990 marks of a paragraph was looked for in the whole paragraph: 12 seconds for colons."""
    paragraph = (mark * 5_990)[:5_990]
    started = thread_time()
    html = render_markdown("\n\n".join([paragraph] * 33))
    assert thread_time() - started < 3.0
    assert html.count("<p>") == 33


def test_dense_prose_is_parsed_to_its_end() -> None:
    prose = "It costs **12**: see [the list](https://a.example/b), `item` and (as said) *no* other. " * 5
    assert render_markdown("\n\n".join([prose] * 400)).count("<strong>") == 5 * 400


def test_many_open_brackets_take_no_time() -> None:
    started = thread_time()
    render_markdown("\\[\n" * 1_400)
    split_finished("\\[\n" * 20_000)
    assert thread_time() - started < 5.0


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("![Harbour](https://p.example/h.png)", '<a href="https://p.example/h.png"%>image: Harbour</a>'),
        ("[![Build](https://p.example/b.svg)](https://ci.example)", '<a href="https://ci.example"%>Build</a>'),
        ("[a ![](https://p.example/b.svg) b](https://ci.example)", '<a href="https://ci.example"%>a image b</a>'),
    ],
)  # fmt: skip
def test_a_picture_of_another_host_is_a_link_or_the_words_of_one(text: str, html: str) -> None:
    assert show(text) == f"<p>{html}</p>".replace("%", ' rel="noopener noreferrer"')
