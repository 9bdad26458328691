"""The parts of features on the page: loaded when they are shown, not there while their feature is off, and a view of a
package."""

import json
from importlib import import_module
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from gateway import feature_loader
from gateway.feature import Feature, Page, PagePart
from gateway.feature_loader import FeatureSource
from tests.integration.conftest import Serve
from tests.page.journey import page_at
from tests.support.browser import BROWSER_TEST
from tests.support.browser import Page as BrowserPage
from tests.support.processes import ROOT

pytestmark = BROWSER_TEST
LOADED = "performance.getEntriesByType('resource').map((one) => one.name)"
NAV = "[...document.querySelectorAll('header nav a')].map((one) => one.innerText)"
SECTIONS = "[...document.querySelectorAll('.studio .tabs a:not([hidden])')].map((one) => one.innerText)"
COMPLAINTS = "[...document.querySelectorAll('.problem, .banner.blocking')].map((one) => one.innerText).filter(Boolean)"
OFF = "-documents,-pipeline_builder,-studio,-recipes,-schedules,-fleet,-incident"


async def list_paths(page: BrowserPage) -> list[str]:
    """What the page has loaded and asked for, by paths."""
    return [urlsplit(name).path for name in await page.evaluate(LOADED)]


async def list_parts(page: BrowserPage) -> set[str]:
    """The files of features that the page has loaded: `FEATURE/FILE`."""
    paths = (path.split("/") for path in await list_paths(page))
    return {"/".join(path[3:]) for path in paths if path[1] == "web" and len(path) == 5}


def install(monkeypatch: pytest.MonkeyPatch, feature: Feature) -> None:
    """Makes a feature one of an installed package."""
    source = FeatureSource(feature.name, feature.name, lambda: feature, is_installed=True)
    monkeypatch.setattr(feature_loader, "_list_installed", lambda: (source,))


async def show(page: BrowserPage, place: str, selector: str) -> None:
    """Opens a view and waits for something in it."""
    await page.evaluate(f"location.hash = {json.dumps(place)}")
    await page.until(f"document.querySelector({json.dumps(selector)})?.checkVisibility()")


async def test_the_modules_of_a_feature_are_loaded_when_they_are_shown(devtools: str, serve: Serve) -> None:
    async with serve() as url, page_at(devtools, url) as page:
        await page.until("document.querySelectorAll('.card').length > 2")
        assert await page.evaluate(NAV) == ["Chat", "Documents", "Build", "Runs", "Team", "Studio"]
        assert await list_parts(page) == set()
        await show(page, "#/studio/schedules", ".studio .tabs a[aria-current]")
        await page.until("document.querySelector('.studio .stage .empty')")
        assert await list_parts(page) == {"schedules/schedules.js"}
        await show(page, "#/studio/queue", ".studio .lead")
        assert {"fleet/queue.js", "fleet/queue.css"} <= await list_parts(page)
        await show(page, "#/documents", ".drop")
        assert "documents/documents.js" in await list_parts(page)
        assert "pipeline_builder/build.js" not in await list_parts(page)
        await show(page, "#/build", "form.guide")
        await page.until("document.title.startsWith('Build')")
        assert await page.evaluate("getComputedStyle(document.querySelector('.guide')).display") == "grid"


async def test_features_that_are_off_leave_no_view_no_request_and_no_error(devtools: str, serve: Serve) -> None:
    async with serve(features=OFF) as url, page_at(devtools, url) as page:
        await page.until("document.querySelectorAll('.card').length > 0")
        assert await page.evaluate(NAV) == ["Chat", "Runs", "Team"]
        assert await page.evaluate("document.querySelector('.clip').title") == "Attach pictures"
        assert await page.evaluate("document.querySelector('.composer input[type=file]').accept") == "image/*"
        for place, selector in (("#/runs", ".side .seek"), ("#/team", ".team"), ("#/models", ".models")):
            await show(page, place, selector)
        for place in ("#/documents/notes", "#/build", "#/studio/recipes"):
            await show(page, place, ".chat textarea")
        asked = [path for path in await list_paths(page) if path.startswith(("/v1", "/api"))]
        assert not [path for path in asked if path.startswith(("/v1/collections", "/v1/documents", "/v1/jobs", "/api"))]
        assert await list_parts(page) == set()
        assert await page.evaluate(COMPLAINTS) == []


async def test_sections_of_other_features_stay_while_the_studio_is_off(devtools: str, serve: Serve) -> None:
    async with serve(features="-studio,-recipes") as url, page_at(devtools, url, "#/studio/rooms") as page:
        await page.until("document.querySelector('.studio .tabs a[aria-current]')")
        assert await page.evaluate(SECTIONS) == ["Schedules", "Queue"]
        assert await page.evaluate("document.querySelector('.studio .tabs a[aria-current]').innerText") == "Schedules"
        assert await list_parts(page) == {"schedules/schedules.js"}


async def test_a_view_that_cannot_be_loaded_says_so_and_the_others_work(
    devtools: str, serve: Serve, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / "stepgate_laments" / "page"
    folder.mkdir(parents=True)
    (folder.parent / "__init__.py").touch()
    (folder / "laments.js").write_text('import { lament } from "../dom.js";')
    monkeypatch.syspath_prepend(tmp_path)
    part = PagePart("laments", "Laments", "laments.js")
    install(
        monkeypatch, Feature(name="laments", page=Page(folder="stepgate_laments:page", views=(part,), studio=(part,)))
    )
    async with serve() as url, page_at(devtools, url, "#/laments") as page:
        await page.until("document.querySelector('main .banner')?.innerText.includes('Load the page again')")
        await show(page, "#/documents", ".drop")
        assert await page.evaluate("document.querySelectorAll('main .banner').length") == 0
        await show(page, "#/studio/laments", ".studio .items .problem")
        await page.evaluate("location.hash = '#/studio/schedules'")
        await page.until("document.querySelector('.studio .items')?.innerText.startsWith('None yet')")
        await page.until("document.querySelector('.studio .problem') === null")


async def test_a_view_of_a_package_shows_what_its_routes_return(
    devtools: str, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(ROOT / "docs" / "examples" / "stepgate-poems")
    install(monkeypatch, import_module("stepgate_poems.feature").FEATURE)
    async with serve() as url:
        async with page_at(devtools, url) as page:
            await page.until("document.querySelectorAll('.card').length > 2")
            assert (await page.evaluate(NAV))[-1] == "Poems"
            await page.evaluate("document.querySelector('nav a[href=\"#/poems\"]').click()")
            await page.until("document.querySelector('.poems .quiet')?.innerText.startsWith('None yet')")
            assert (await page.evaluate("document.title")).startswith("Poems")
            await page.write(".poems input", "Hope & <b>things")
            await page.press("Enter")
            await page.until("document.querySelector('.poems .lines li')?.innerText === 'Hope & <b>things'")
        async with page_at(devtools, url, "#/poems") as page:
            await page.until("document.querySelector('.poems .lines li')?.innerText === 'Hope & <b>things'")
    async with serve(features="-poems") as url, page_at(devtools, url, "#/poems") as page:
        await page.until("document.querySelector('.chat textarea')?.checkVisibility()")
        assert "Poems" not in await page.evaluate(NAV)
