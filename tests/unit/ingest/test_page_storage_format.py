"""Pages in the storage format of Confluence: ticks of tasks, texts in sections, macros, links and pictures."""

from pathlib import Path

import pytest

from gateway.features.documents.engine.ingest.coverage.measure import measure_coverage
from tests.unit.ingest.test_markdown_html_coverage import lines, read

TASKS = """<ac:task-list><ac:task><ac:task-id>1</ac:task-id><ac:task-status>complete</ac:task-status>
<ac:task-body><span>Order valves</span></ac:task-body></ac:task><ac:task><ac:task-id>2</ac:task-id>
<ac:task-status>incomplete</ac:task-status><ac:task-body>Call Birch by <time datetime="2026-03-09" /></ac:task-body>
</ac:task></ac:task-list>"""
CODE = """<ac:structured-macro ac:name="code"><ac:parameter ac:name="language">bash</ac:parameter>
<ac:parameter ac:name="title">Restart</ac:parameter><ac:plain-text-body><![CDATA[restart <unit> && echo "701 > ok"
if [[ $a ]]; then b; fi]]></ac:plain-text-body></ac:structured-macro>"""
PARTS = {
    "tasks": (TASKS, ["- ☒ Order valves", "- ☐ Call Birch by 2026-03-09"]),
    "code": (CODE, ["Restart", 'restart <unit> && echo "701 > ok"\nif [[ $a ]]; then b; fi']),
    "link": (
        '<p>By <ac:link><ri:user ri:account-id="5f1"/><ac:plain-text-link-body><![CDATA[Ada Berg]]>'
        "</ac:plain-text-link-body></ac:link>, "
        'see <ac:link><ri:page ri:content-title="Pump plan"/></ac:link>.</p>',
        ["By Ada Berg, see Pump plan."],
    ),
    "status": (
        '<p>State: <ac:structured-macro ac:name="status"><ac:parameter ac:name="colour">Green</ac:parameter>'
        '<ac:parameter ac:name="title">APPROVED</ac:parameter></ac:structured-macro> today</p>',
        ["State: APPROVED today"],
    ),
    "panel": (
        '<ac:structured-macro ac:name="info"><ac:rich-text-body><p>Limit is 40 bar.</p></ac:rich-text-body>'
        "</ac:structured-macro>",
        ["Limit is 40 bar."],
    ),
    "picture": (
        '<ac:image ac:alt="Diagram of the pump"><ri:attachment ri:filename="pump.png"/></ac:image>',
        ["[image: Diagram of the pump]"],
    ),
}


@pytest.mark.parametrize("name", PARTS)
def test_what_the_storage_format_shows_is_read(name: str, tmp_path: Path) -> None:
    written, expected = PARTS[name]
    output = read(f"<h1>Runbook</h1>{written}<p>End.</p>", "html", tmp_path)
    assert lines(output) == ["Runbook", *expected, "End."]
    assert output.coverage is not None
    assert output.coverage.share == 1.0


@pytest.mark.parametrize("name", ["tasks", "code", "link"])
def test_text_of_the_storage_format_that_is_not_read_is_missed(name: str) -> None:
    page = f"<h1>Runbook</h1>{PARTS[name][0]}"
    coverage = measure_coverage(page.encode(), "html", ["Runbook"])
    assert coverage is not None
    assert coverage.missing["text"] >= 4


def test_a_section_in_html_stays_a_comment(tmp_path: Path) -> None:
    assert lines(read("<p>One.</p><![CDATA[not seen]]><p>Two.</p>", "html", tmp_path)) == ["One.", "Two."]
