"""The journey of a person in stock Open WebUI, in a real Chromium: `make check-open-webui`.

Open WebUI gets an environment of its own (several gigabytes once), is started before a real gateway with a scripted
model, and is used by its page alone. Exits with 1 if a check fails.
"""

import asyncio
import contextlib
import json
import socket
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path

import httpx

from tests.clients.environments import FOLDER, run
from tests.clients.gateways import run_gateways
from tests.support.browser import Page, chromium, open_page, running_chromium
from tests.support.processes import ROOT, start

START_SECONDS = 300.0
"""Open WebUI imports PyTorch and fills its database at its first start."""
WAIT_MS = 25_000
SHOT = FOLDER / "open-webui-failed.png"
SUM = "What is 2*21?"


def main() -> int:
    """Runs every check and prints a line for each. Returns the exit code."""
    if chromium() is None:
        print("Chromium is needed: apt-get install chromium")
        return 2
    program = install()
    failed = 0
    with (
        tempfile.TemporaryDirectory() as folder,
        run_gateways(Path(folder)) as gateways,
        run_open_webui(program, Path(folder) / "open-webui", gateways) as url,
        running_chromium() as devtools,
    ):
        for title, check in CHECKS.items():
            problem = asyncio.run(run_check(check, devtools, url, gateways["STEPGATE_URL"]))
            failed += problem is not None
            print(f"{'FAILED' if problem else 'ok'}  {title}{f': {problem}' if problem else ''}", flush=True)
    print(f"Open WebUI {read_version(program)}: {len(CHECKS) - failed} of {len(CHECKS)} checks")
    return 1 if failed else 0


def install() -> Path:
    """The program; installs it once, by pip, whose configuration may name a build of PyTorch without CUDA."""
    folder = FOLDER / "open-webui"
    program = folder / "bin" / "open-webui"
    if not program.is_file():
        print("Installing Open WebUI (several gigabytes, once)", flush=True)
        folder.mkdir(parents=True, exist_ok=True)
        run([sys.executable, "-m", "venv", "."], folder)
        run(["bin/python", "-m", "pip", "install", "--quiet", "open-webui"], folder, seconds=3600)
    return program


def read_version(program: Path) -> str:
    """The installed version of Open WebUI."""
    code = "import importlib.metadata as m; print(m.version('open-webui'))"
    return run([str(program.with_name("python")), "-c", code], program.parent).strip()


@contextlib.contextmanager
def run_open_webui(program: Path, data: Path, gateways: Mapping[str, str]) -> Iterator[str]:
    """Runs Open WebUI on a free port before the gateway with a model; yields its address."""
    data.mkdir()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    settings = {
        "DATA_DIR": str(data),
        "WEBUI_AUTH": "False",
        "WEBUI_SECRET_KEY": "for this check",
        "ENABLE_OLLAMA_API": "false",
        "OPENAI_API_BASE_URLS": f"{gateways['STEPGATE_URL']}/v1",
        "OPENAI_API_KEYS": "none",
        "OFFLINE_MODE": "true",
        "HF_HUB_OFFLINE": "1",
        "RAG_EMBEDDING_ENGINE": "openai",
        "RAG_OPENAI_API_BASE_URL": f"{gateways['STEPGATE_MODEL_URL']}/v1",
    }
    command = [str(program), "serve", "--host", "127.0.0.1", "--port", str(port)]
    process = start(command, environment=settings, cwd=data)
    try:
        process.line_with("Scheduler worker started", START_SECONDS)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()


Check = Callable[[Page, str], Awaitable[None]]


async def run_check(check: Check, devtools: str, url: str, gateway: str) -> str | None:
    """Returns what went wrong in a page of its own, or None. A failure leaves a picture of the page."""
    async with open_page(devtools, url) as page:
        try:
            await check(page, gateway)
        except (AssertionError, TimeoutError, httpx.HTTPError) as error:
            SHOT.write_bytes(await page.screenshot())
            return f"{str(error)[-600:] or type(error).__name__} (picture: {SHOT.relative_to(ROOT)})"
    return None


async def ask(page: Page, room: str, text: str) -> None:
    """Opens a new chat with a room and sends a message."""
    await page.go(f"{await page.evaluate('location.origin')}/?models={room}")
    await page.until("document.querySelector('#chat-input') !== null", WAIT_MS)
    await page.until("document.body.innerText.includes('Suggested')", WAIT_MS)
    # The release notes cover the page at the first visit.
    await press(page, "Let's Go")
    await page.until("document.querySelector('[role=dialog]') === null", WAIT_MS)
    await page.evaluate("document.querySelector('#chat-input').focus()")
    await page.send("Input.insertText", text=text)
    await page.until(f"document.querySelector('#chat-input').innerText.includes({json.dumps(text)})", WAIT_MS)
    await page.press("Enter")


async def press(page: Page, words: str) -> bool:
    """Presses the button with these words, or returns False if there is none."""
    button = f"[...document.querySelectorAll('button')].find(one => one.innerText.includes({json.dumps(words)}))"
    return bool(await page.evaluate(f"(() => {{ const at = {button}; at?.click(); return Boolean(at); }})()"))


async def shows(page: Page, words: str) -> None:
    """Waits until the page shows these words. Raises AssertionError with its text."""
    await page.until(f"document.body.innerText.includes({json.dumps(words)})", WAIT_MS)


async def show_steps(page: Page, gateway: str) -> None:
    """A plan: the status line, the card of a step with its result, and the answer."""
    await ask(page, "stepgate", SUM)
    await shows(page, "It is 42, as computed.")
    await shows(page, "Done: 2 steps")
    await shows(page, "1. calculator")
    await page.evaluate(
        "[...document.querySelectorAll('*')].filter(one => one.innerText?.includes('1. calculator')).at(-1).click()"
    )
    await shows(page, "2*21 = 42")


async def show_title(page: Page, gateway: str) -> None:
    """The chat has a title, which is not a run in the list."""
    async with httpx.AsyncClient(base_url=gateway) as client:
        before = len((await client.get("/v1/runs")).json()["data"])
        await ask(page, "chat", "Say hello.")
        await shows(page, "Hello from the model.")
        await shows(page, "Chat about sums")
        after = len((await client.get("/v1/runs")).json()["data"])
    assert after == before + 1, f"{after - before} runs in the list"


async def show_markdown(page: Page, gateway: str) -> None:
    """A table that the model has put into a code fence is shown as a table."""
    await ask(page, "stepgate", "Show the cities as a table.")
    await page.until("document.querySelector('table') !== null", WAIT_MS)
    cells = await page.evaluate("[...document.querySelectorAll('table td')].map(one => one.innerText.trim())")
    assert cells == ["Lund", "12"], cells
    assert await page.evaluate("document.querySelector('.cm-editor, pre code') === null"), "there is a code block"


async def approve_plan(page: Page, gateway: str) -> None:
    """An approval by Open WebUI's own dialog: the run goes on in the same message."""
    await ask(page, "careful", SUM)
    await shows(page, "Approval needed")
    await shows(page, "Carry it out as shown")
    assert "It is 42" not in await page.text(), "the plan was carried out before the approval"
    assert await press(page, "Carry it out as shown")
    await press(page, "Submit answers")
    await shows(page, "It is 42, as computed.")


async def reject_plan(page: Page, gateway: str) -> None:
    """A rejection by the same dialog: nothing is done."""
    await ask(page, "careful", SUM)
    await shows(page, "Carry it out as shown")
    assert await press(page, "Stop here")
    await press(page, "Submit answers")
    await page.until("!document.body.innerText.includes('Submit answers')", WAIT_MS)
    await wait_for_status(gateway, "cancelled")
    assert "It is 42" not in await page.text()


async def stop_run(page: Page, gateway: str) -> None:
    """The stop button cancels the run."""
    await ask(page, "chat", "Answer slowly.")
    await page.until("document.querySelector('button[aria-label=\"Stop\"]') !== null", WAIT_MS)
    await wait_for_status(gateway, "running")
    await page.click('button[aria-label="Stop"]')
    await wait_for_status(gateway, "cancelled")


async def wait_for_status(gateway: str, status: str) -> None:
    """Waits until the newest run has a status. Raises `TimeoutError`."""
    async with httpx.AsyncClient(base_url=gateway) as client, asyncio.timeout(WAIT_MS / 1000):
        while (await client.get("/v1/runs")).json()["data"][0]["status"] != status:  # noqa: ASYNC110 - over HTTP
            await asyncio.sleep(0.1)


CHECKS: Mapping[str, Check] = {
    "a plan with its steps and the answer": show_steps,
    "titles, outside of the list of runs": show_title,
    "a fenced Markdown answer is a table": show_markdown,
    "approve in the dialog": approve_plan,
    "reject in the dialog": reject_plan,
    "stop": stop_run,
}


if __name__ == "__main__":
    sys.exit(main())
