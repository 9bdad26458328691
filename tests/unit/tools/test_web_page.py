"""`extract_main_part`: what a reader sees of a page, in page order, and the words of the rest counted."""

import pytest

from mcp_tools.builtin.web_page import extract_main_part

LONG = "The paragraph says enough about the fair in the town hall to be the main text of the page for anybody."
NAVIGATION = "".join(f'<li><a href="/{number}">Section {number}</a></li>' for number in range(12))


def make_page(main: str, *, around: str = "main") -> str:
    return (
        f"<html><head><title>Spring fair</title></head><body><nav><ul>{NAVIGATION}</ul></nav>"
        f"<{around}><h1>Spring fair</h1><p>{LONG}</p>{main}<p>{LONG[::-1]}</p></{around}>"
        "<footer><p>Copyright of the museum</p></footer></body></html>"
    )


@pytest.mark.parametrize(
    "main",
    [
        "<p>It opens at <time>half six</time> today.</p>",
        "<p>It opens at <output>half six</output> today.</p>",
        "<p>It opens at <label>half six</label> today.</p>",
        "<p>It opens at <button>half six</button> today.</p>",
        "<p>It opens at <x-hour>half six</x-hour> today.</p>",
        "<p>It opens at <data value='1'>half six</data> today.</p>",
        "<div>It opens at half six today.</div>",
        "<section>It opens at half six today.</section>",
        "<dl><dt>It opens at</dt><dd>half six today.</dd></dl>",
        "<details><summary>It opens at half six today.</summary>Welcome</details>",
        "<figure><img src='a.png'><figcaption>It opens at half six today.</figcaption></figure>",
        "<fieldset><legend>It opens at half six today.</legend><p>Welcome</p></fieldset>",
        "<center>It opens at half six today.</center>",
        "<table><tr><td>It opens</td><td><table><tr><td>at</td><td>half six</td></tr></table></td></tr></table>",
    ],
)
def test_nothing_in_the_middle_of_the_main_text_is_lost(main: str) -> None:
    text = extract_main_part(make_page(main), "https://museum.example/").text
    before, _, after = text.partition("half six")
    assert LONG in before
    assert LONG[::-1] in after


def test_each_of_several_articles_is_read() -> None:
    articles = "".join(f"<article><h2>Fair {n}</h2><p>{LONG} Number {n}.</p></article>" for n in range(3))
    text = extract_main_part(f"<html><body><nav>{NAVIGATION}</nav><main>{articles}</main></body></html>", "").text
    assert [f"Number {n}." in text for n in range(3)] == [True] * 3


def test_a_closing_heading_and_an_address_belong_to_the_article() -> None:
    page = make_page("<h2>How to get there</h2><address>Contact: Bo Ek</address>", around="article")
    text = extract_main_part(page, "").text
    assert "## How to get there" in text
    assert "Contact: Bo Ek" in text


def test_what_stands_around_the_main_part_is_left_out_and_counted() -> None:
    page = extract_main_part(make_page("<nav><ul><li><a href='/a'>Share this</a></li></ul></nav>"), "")
    assert "Section 7" not in page.text
    assert "Copyright" not in page.text
    assert "Share this" not in page.text
    assert page.left_out == 12 * 2 + 4 + 2


def test_a_page_without_a_main_part_is_read_whole() -> None:
    page = extract_main_part("<html><body><div>Closed today.</div><footer>See you</footer></body></html>", "")
    assert page.text == "Closed today.\n\nSee you"
    assert page.left_out == 0


def test_lists_tables_and_links_are_markdown_in_page_order() -> None:
    main = (
        "<ol start='4'><li>Fourth</li><li><a href='/five'>Fifth</a></li></ol>"
        "<table><tr><th>Size</th><th>Price</th></tr><tr><td>L</td><td>9 | 10</td></tr></table>"
    )
    text = extract_main_part(make_page(main), "https://museum.example/x/").text
    assert (
        "4. Fourth\n5. [Fifth](https://museum.example/five)\n\n| Size | Price |\n| --- | --- |\n| L | 9 \\| 10 |"
        in text
    )


@pytest.mark.parametrize("page", ["", "   ", "<!-- nothing -->", "plain text", "<div>" * 400 + "deep" + "</div>" * 400])
def test_an_odd_page_is_read_as_far_as_it_goes(page: str) -> None:
    text = extract_main_part(page, "").text
    assert ("plain text" in text) == ("plain" in page)
