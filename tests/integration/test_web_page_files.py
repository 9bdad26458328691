"""The web page over HTTP: who gets it, with which headers, and that nothing else can be had that way."""

import gzip
import posixpath
import re

import httpx
import pytest

from gateway.doors.web_page import PageFiles
from gateway.feature_loader import find_folder, load_features
from gateway.feature_page import collect_page
from tests.integration.conftest import Serve

PAGE = collect_page(load_features("", with_installed=False))
FILES = PageFiles(PAGE)

BROWSER = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
POLICY = {
    "default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self' data: blob:", "connect-src 'self'",
    "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'", "require-trusted-types-for 'script'",
    "trusted-types stepgate",
}  # fmt: skip


def read(name: str) -> bytes:
    """The text of a file of the page, by its name below the edition."""
    feature, slash, rest = name.rpartition("/")
    return (find_folder(PAGE.folders[feature + slash]) / rest).read_bytes()


def policy(response: httpx.Response) -> set[str]:
    return {one.strip() for one in response.headers["content-security-policy"].split(";")}


@pytest.mark.row("S000-53", "S004-08")
async def test_a_browser_gets_the_page_and_a_program_the_pointer(serve: Serve) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=15) as client:
        page = await client.get("/", headers=BROWSER)
        head = await client.head("/", headers=BROWSER)
        pointer = await client.get("/")
        refused = await client.post("/", headers=BROWSER)
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "<title>Stepgate</title>" in page.text
    assert policy(page) == POLICY
    assert page.headers["x-content-type-options"] == "nosniff"
    assert "set-cookie" not in page.headers
    assert "accept" in page.headers["vary"]
    assert (head.status_code, head.content, head.headers["etag"]) == (200, b"", page.headers["etag"])
    assert pointer.json()["name"] == "Stepgate"
    assert (refused.status_code, refused.headers["allow"]) == (405, "GET, HEAD")


async def test_the_page_needs_no_key_and_shows_nothing_without_one(serve: Serve) -> None:
    async with serve(require_key="always") as url, httpx.AsyncClient(base_url=url, timeout=15) as client:
        assert (await client.get("/", headers=BROWSER)).status_code == 200
        assert (await client.get("/web/app.js")).status_code == 200
        assert (await client.get("/v1/models")).status_code == 401


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("app.js", "text/javascript; charset=utf-8"),
        ("base.css", "text/css; charset=utf-8"),
        ("icon.svg", "image/svg+xml"),
    ],
)
async def test_a_file_has_its_type_and_is_sent_once(serve: Serve, name: str, kind: str) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=15) as client:
        plain = await client.get(f"/web/{name}", headers={"accept-encoding": "identity"})
        packed = await client.get(f"/web/{name}", headers={"accept-encoding": "gzip"})
        again = await client.get(f"/web/{name}", headers={"if-none-match": packed.headers["etag"]})
        stale = await client.get(f"/web/{name}", headers={"if-none-match": '"of-yesterday"'})
    assert plain.content == read(name)
    assert packed.content == plain.content, "unpacked by the client"
    assert int(packed.headers["content-length"]) < len(plain.content)
    assert packed.headers["etag"] != plain.headers["etag"]
    for response in (plain, packed):
        assert (response.headers["content-type"], response.headers["cache-control"]) == (kind, "no-cache")
        assert policy(response) == POLICY
        assert response.headers["x-content-type-options"] == "nosniff"
    assert (again.status_code, again.content) == (304, b"")
    assert stale.status_code == 200


async def test_a_reload_asks_for_no_file_again(serve: Serve) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=15) as client:
        page = await client.get("/", headers=BROWSER)
        named = re.findall(r'"(web/[^"]+)"', page.text)
        files = [await client.get(f"/{path}") for path in named]
        edition = named[0].split("/")[1]
        of_another = await client.get(f"/web/{'0' * len(edition)}/app.js")
        missing = await client.get(f"/web/{edition}/nothing.js")
    assert page.headers["cache-control"] == "no-cache", "the next version names other files"
    assert {path.split("/")[1] for path in named} == {FILES.edition} == {edition}
    for path, file in zip(named, files, strict=True):
        assert file.content == read(path.split("/", 2)[2])
        assert file.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert policy(file) == POLICY
    assert of_another.status_code == 404, "no page of another version gets a module of this one"
    assert missing.status_code == 404


@pytest.mark.parametrize(
    "path",
    [
        "/web/0123456789ab/../app.js", "/web/0123456789ab//app.js", "/web/0123456789ab/0123456789ab/app.js",
        "/web/0123456789ab/", "/web/0123456789ab", "/web/0123456789AB/app.js", "/web/x/app.js", "/web//app.js",
        "/web/nothing.js", "/web/", "/web/../app.py", "/web/%2e%2e/app.py", "/web/..%2fapp.py", "/web//etc/passwd",
        "/web/%2fetc%2fpasswd", "/web/....//app.py", "/web/app.js%00.css", "/web/..\\app.py", "/web/./app.js",
    ],
)  # fmt: skip
async def test_nothing_but_the_files_of_the_page_can_be_had(serve: Serve, path: str) -> None:
    async with serve() as url, httpx.AsyncClient(timeout=15) as client:
        # The path as it stands: a client that tidied it up would hide what is tested.
        request = httpx.Request("GET", url, extensions={"target": path.encode()})
        response = await client.send(request)
    assert response.status_code == 404, response.text
    assert response.json()["error"]["error_code"] == "ERR_NOT_FOUND"


async def test_the_setting_switches_it_off(serve: Serve) -> None:
    async with serve(web=False) as url, httpx.AsyncClient(base_url=url, timeout=15) as client:
        assert (await client.get("/", headers=BROWSER)).json()["name"] == "Stepgate"
        assert (await client.get("/web/app.js")).status_code == 404


def test_it_is_small_and_names_no_other_host() -> None:
    folders = {prefix: find_folder(folder) for prefix, folder in PAGE.folders.items()}
    named = {prefix + path.name for prefix, folder in folders.items() for path in folder.iterdir()}
    assert named == set(FILES.packed), "every file there is served"
    assert sum(len(one.gzipped) for one in FILES.packed.values()) < 150_000, (
        "all that a browser may load, as it is sent"
    )
    assert sum(len(one.plain) for one in FILES.packed.values()) < 400_000
    for name, one in FILES.packed.items():
        text = one.plain.decode()
        assert gzip.decompress(one.gzipped) == one.plain
        assert text.count("\n") < 300, name
        hosts = set(re.findall(r"https?://([\w.-]+)", text)) - {
            "127.0.0.1",
            "docs.example.org",
            "drive.google.com",
            "www.w3.org",
        }
        assert hosts == set(), f"{name}: placeholders and name spaces only"
        for way in (
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "localStorage",
            "cookie",
        ):
            # Only the choice of light or dark outlives the tab.
            assert way not in text or (way, name) == ("localStorage", "theme.js"), f"{name}: {way}"
    page = FILES.packed["index.html"].plain.decode()
    assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)", page), "nothing inline"


def list_imported(name: str) -> set[str]:
    """The modules of the page that a module imports when it is loaded."""
    imported = re.findall(r'from "(\.[\w./]+)"', FILES.packed[name].plain.decode())
    return {posixpath.normpath(posixpath.join(posixpath.dirname(name), one)) for one in imported}


def list_loaded(name: str) -> set[str]:
    """A module with all that it imports, and that these import."""
    loaded, left = set[str](), [name]
    while left:
        one = left.pop()
        if one not in loaded:
            loaded.add(one)
            left += list_imported(one)
    return loaded


def test_every_module_that_is_named_is_there() -> None:
    scripts = {name for name in FILES.packed if name.endswith(".js")}
    page = FILES.packed["index.html"].plain.decode()
    parts = set(re.findall(r'data-module="([\w./]+)"', page))
    assert parts <= scripts
    named = {*re.findall(r'"web/\w+/([\w./]+)"', page), *parts}
    named |= {one for name in scripts for one in list_imported(name)}
    assert named <= set(FILES.packed)
    assert scripts <= named, "no module that nobody loads"


def list_exported(name: str) -> set[str]:
    """What a module of the page exports."""
    text = FILES.packed[name].plain.decode()
    declared = re.findall(r"^export (?:async )?(?:const|let|class|function)\*? ?\*?\s*(\w+)", text, re.MULTILINE)
    lists = re.findall(r"^export \{([^}]*)\}", text, re.MULTILINE)
    return {*declared, *(one.split()[-1] for names in lists for one in names.split(","))}


def test_what_a_module_imports_by_name_is_exported() -> None:
    for name in FILES.packed:
        text = FILES.packed[name].plain.decode()
        for names, path in re.findall(r'^(?:im|ex)port \{([^}]*)\} from "(\.[\w./]+)"', text, re.MULTILINE):
            target = posixpath.normpath(posixpath.join(posixpath.dirname(name), path))
            missing = {one.split()[0] for one in names.split(",")} - list_exported(target)
            assert not missing, f"{name}: {path} does not export {missing}"


def test_the_module_of_a_part_exports_what_the_page_uses() -> None:
    needed = {
        **{one.module: {"view", "show"} for one in PAGE.views},
        **{one.module: {"about", "open"} for one in PAGE.studio},
        **{one.module: {"offer"} for one in (*PAGE.run_offers, *PAGE.room_offers)},
    }
    assert PAGE.attachments
    assert PAGE.citations
    needed[PAGE.attachments.module] = {"read", "remove", "removeCollection", "listCollections", "isThere"}
    needed[PAGE.citations.module] = {"waysTo"}
    for name, names in needed.items():
        assert names <= list_exported(name), name


def test_the_first_view_loads_no_part_of_a_feature() -> None:
    loaded = list_loaded("app.js")
    assert "chat.js" in loaded
    assert {name for name in loaded if "/" in name} == set()
    assert loaded.isdisjoint({"runs.js", "team.js", "studio.js", "forms.js"}), (
        "other views are loaded when they are shown"
    )
    assert sum(len(FILES.packed[name].gzipped) for name in loaded) < 62_000, "as it is sent"
