"""A real Chromium, spoken to by the Chrome DevTools Protocol over a websocket: pages, clicks, keys, screenshots."""

import asyncio
import base64
import itertools
import json
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final

import aiohttp
import pytest

from tests.support.processes import DEADLINE_S, start

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
    "--disable-extensions", "--hide-scrollbars", "--remote-debugging-port=0",
)  # fmt: skip
WAIT_MS = 30_000
MISSES = 5
"""How often an element may move away from the mouse."""
_ENTER = {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13, "text": "\r"}
_ESCAPE = {"key": "Escape", "code": "Escape", "windowsVirtualKeyCode": 27}
KEYS = {"Enter": _ENTER, "Escape": _ESCAPE}


def chromium() -> str | None:
    """The program, if there is one on this machine."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


NEEDS_CHROMIUM: Final = pytest.mark.skipif(
    chromium() is None, reason="no Chromium on this machine: apt-get install chromium"
)
BROWSER_TEST: Final = [pytest.mark.browser, NEEDS_CHROMIUM]
"""Marks of a module whose tests are those of `make check-browser`."""


@contextmanager
def running_chromium(*flags: str) -> Iterator[str]:
    """Chromium with an empty profile, and further flags; the websocket address of its DevTools."""
    program = chromium()
    assert program is not None, "there is no Chromium on this machine"
    with tempfile.TemporaryDirectory(prefix="stepgate-browser-", ignore_cleanup_errors=True) as profile:
        process = start([program, *FLAGS, *flags, f"--user-data-dir={profile}", "about:blank"])
        try:
            yield process.line_with("DevTools listening on ").rsplit(" ", 1)[1]
        finally:
            process.kill()


class Page:
    """One page with storage of its own. `faults` are uncaught errors and what the page's policy refused."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._session = ""
        self._loaded = asyncio.Event()
        self.faults: list[str] = []
        self.dialogs: list[str] = []

    async def go(self, url: str) -> None:
        """Load an address; back once its load event has been fired."""
        self._loaded.clear()
        await self.send("Page.navigate", url=url)
        async with asyncio.timeout(DEADLINE_S):
            await self._loaded.wait()

    async def evaluate(self, expression: str, ms: int = 0) -> Any:
        """The value of a JavaScript expression, awaited; AssertionError with its error. It may take `ms` by itself."""
        options = {"expression": expression, "awaitPromise": True, "returnByValue": True}
        async with asyncio.timeout(DEADLINE_S + ms / 1000):
            told = await self._ask("Runtime.evaluate", options)
        failed = told.get("exceptionDetails")
        assert failed is None, f"{expression}: {failed.get('exception', {}).get('description', failed)}"
        return told["result"].get("value")

    async def until(self, expression: str, ms: int = WAIT_MS) -> Any:
        """The value of an expression once it is true; AssertionError with the page's text when it never is."""
        look = f"""new Promise((found, failed) => {{
            const end = performance.now() + {ms};
            const look = () => {{
                const value = ({expression});
                if (value) found(value);
                else if (performance.now() > end) failed(new Error("never true: " + document.body.innerText));
                else setTimeout(look, 15);
            }};
            look();
        }})"""
        try:
            return await self.evaluate(look, ms)
        except AssertionError as error:
            if "navigated or closed" not in str(error):
                raise
        return await self.evaluate(look, ms)  # on the page that the other has led to

    async def becomes(self, expression: str, expected: Any) -> None:
        """Wait for an expression to have a value, given as JSON would be; AssertionError with the page's text when it
        never has. What a page shows follows what was done to it by a frame or by a request."""
        await self.until(f"JSON.stringify({expression}) === {json.dumps(json.dumps(expected, separators=(',', ':')))}")

    async def text(self, selector: str = "body") -> str:
        """The visible text of the first element that is selected."""
        return str(await self.evaluate(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''"))

    async def click(self, selector: str) -> None:
        """Press the first visible element that is selected, with a mouse, in its middle, once it stands still there and
        nothing covers it; once more if it moved away from the mouse meanwhile."""
        aim = f"""(() => {{
            const all = [...document.querySelectorAll({json.dumps(selector)})];
            const one = all.find((found) => found.checkVisibility() && !found.disabled);
            if (!one) return null;
            one.scrollIntoView({{ block: "center" }});
            const at = one.getBoundingClientRect();
            const [x, y] = [at.left + at.width / 2, at.top + at.height / 2];
            const stood = window.lastSeen === `${{x}} ${{y}}`;
            window.lastSeen = `${{x}} ${{y}}`;
            if (!stood || !one.contains(document.elementFromPoint(x, y))) return null;
            window.isPressed = false;
            one.addEventListener("click", () => (window.isPressed = true), {{ capture: true, once: true }});
            return [x, y];
        }})()"""
        for _ in range(MISSES):
            x, y = await self.until(aim)
            for kind in ("mousePressed", "mouseReleased"):
                await self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
            try:
                if await self.evaluate("window.isPressed !== false"):
                    return
            except AssertionError:
                return  # it led to another page
        raise AssertionError(f"{selector} moved away from the mouse {MISSES} times")

    async def write(self, selector: str, text: str) -> None:
        """Write into a field, instead of what it holds."""
        await self.until(f"document.querySelector({json.dumps(selector)})?.checkVisibility()")
        await self.evaluate(
            f"(() => {{ const at = document.querySelector({json.dumps(selector)}); at.focus(); at.select(); }})()"
        )
        await self.send("Input.insertText", text=text)

    async def press(self, key: str) -> None:
        """Press and release a key of `KEYS`."""
        for kind in ("keyDown", "keyUp"):
            await self.send("Input.dispatchKeyEvent", type=kind, **KEYS[key])

    async def look_like(self, width: int, height: int, *, dark: bool = False) -> None:
        """The size of the window in CSS pixels, and which colours its user prefers; nothing moves by itself."""
        await self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        wishes = {"prefers-color-scheme": "dark" if dark else "light", "prefers-reduced-motion": "reduce"}
        features = [{"name": name, "value": value} for name, value in wishes.items()]
        await self.send("Emulation.setEmulatedMedia", features=features)

    async def screenshot(self) -> bytes:
        """What is seen, as a PNG."""
        return base64.b64decode((await self.send("Page.captureScreenshot", format="png"))["data"])

    async def opens(self, url: str) -> bool:
        """Whether another page comes to stand at an address; False when none does in time."""
        for _ in range(WAIT_MS // 100):
            targets = (await self.send("Target.getTargets"))["targetInfos"]
            if any((target["type"], target["url"]) == ("page", url) for target in targets):
                return True
            await asyncio.sleep(0.1)
        return False

    async def send(self, method: str, **params: Any) -> dict[str, Any]:
        """A command of the protocol, and what it returns."""
        async with asyncio.timeout(DEADLINE_S):
            return await self._ask(method, params)

    async def _ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        number = next(self._numbers)
        told: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[number] = told
        message = {"id": number, "method": method, "params": params}
        await self._socket.send_json(message | ({"sessionId": self._session} if self._session else {}))
        return await told

    async def _begin(self, url: str) -> str:
        context = (await self.send("Target.createBrowserContext"))["browserContextId"]
        target = await self.send("Target.createTarget", url="about:blank", browserContextId=context)
        attached = await self.send("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            await self.send(f"{domain}.enable")
        await self.look_like(1280, 860)
        await self.go(url)
        return str(context)

    async def _end(self, context: str) -> None:
        self._session = ""
        await self.send("Target.disposeBrowserContext", browserContextId=context)

    async def _listen(self) -> None:
        async for message in self._socket:
            told = json.loads(message.data)
            waiting = self._waiting.pop(told.get("id"), None)
            if waiting is not None and not waiting.done():
                if "error" in told:
                    waiting.set_exception(AssertionError(told["error"]))
                else:
                    waiting.set_result(told["result"])
            params = told.get("params", {})
            match told.get("method"):
                case "Page.loadEventFired":
                    self._loaded.set()
                case "Runtime.exceptionThrown":
                    self.faults.append(
                        str(params["exceptionDetails"].get("exception", params).get("description", params))
                    )
                case "Log.entryAdded" if params["entry"]["source"] in ("security", "javascript", "violation"):
                    self.faults.append(params["entry"]["text"])
                case "Page.javascriptDialogOpening":
                    self.dialogs.append(params["message"])
                    number = next(self._numbers)
                    closing = {"id": number, "sessionId": told["sessionId"], "method": "Page.handleJavaScriptDialog"}
                    await self._socket.send_json(closing | {"params": {"accept": True}})


@asynccontextmanager
async def open_page(devtools: str, url: str) -> AsyncIterator[Page]:
    """A page of a running Chromium at an address, 1280 by 860 and light."""
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(devtools, max_msg_size=0) as socket,
    ):
        page = Page(socket)
        listening = asyncio.create_task(page._listen())
        context = await page._begin(url)
        try:
            yield page
        finally:
            await page._end(context)
            listening.cancel()


def contrast(one: str, other: str) -> float:
    """The contrast of two colours like #0f6b57, by WCAG's formula."""

    def luminance(colour: str) -> float:
        parts = [int(colour.strip()[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)
