"""`WebConnector`: which pages of a site are read, how politely, and what is not sent twice."""

import gzip
import hashlib
import json
from pathlib import Path

import pytest
from aiohttp import web

from agent.net import SafeClient
from agent.storage.credentials import Credentials
from gateway.features.documents.engine.ingest.connectors.crawl import WebLimits
from gateway.features.documents.engine.ingest.connectors.source_client import ConnectorTransientError
from gateway.features.documents.engine.ingest.errors import (
    ConnectorAuthError,
    ConnectorError,
    ConnectorNotFoundError,
    ConnectorRefusedError,
)
from gateway.features.documents.engine.ingest.ingest_report import SkippedDocument
from gateway.features.documents.engine.search.models import ConnectorInput
from tests.support.crawling import Crawler
from tests.support.website import ANY_HOST, OTHER_HOST, Page, Website


@pytest.fixture
def crawler(site: Website, client: SafeClient, tmp_path: Path) -> Crawler:
    return Crawler(site, client, tmp_path)


def ask(url: str, *, recursive: bool = True) -> ConnectorInput:
    return ConnectorInput(source_type="web", source_identifier=url, recursive=recursive)


# One page


@pytest.mark.row("S003-08", "S003-09", "S003-14")
async def test_one_page(site: Website, crawler: Crawler) -> None:
    page = site.html("/a?id=1", "/b", headers={"last-modified": "Thu, 01 Jan 2026 00:00:00 GMT"})
    one = (await crawler.walk("/a?id=1#part", recursive=False)).one()
    assert (one.source, one.url, one.file_type) == (site.at("/a?id=1"), site.at("/a?id=1"), "html")
    assert one.output is not None
    assert Path(one.output.file_path).is_absolute()
    assert one.output.checksum == hashlib.sha256(page.body).hexdigest()
    assert one.output.file_size_bytes == len(page.body)
    data = one.output.source_metadata
    assert data["final_url"] == site.at("/a?id=1")
    assert data["headers"] == {
        "content-type": "text/html; charset=utf-8",
        "last-modified": "Thu, 01 Jan 2026 00:00:00 GMT",
        "etag": page.etag,
    }
    assert str(data["fetched_at"]).endswith("+00:00")
    assert site.paths() == ["/a?id=1"]
    assert crawler.left() == []


async def test_a_page_is_named_by_where_redirects_end(site: Website, crawler: Crawler) -> None:
    site.put("/old", Page(status=301, headers={"location": site.at("/new", OTHER_HOST)}))
    site.html("/new")
    one = (await crawler.walk("/old", recursive=False)).one()
    assert one.source == site.at("/new", OTHER_HOST)


@pytest.mark.row("S003-43", "S003-44")
@pytest.mark.parametrize("recursive", [True, False])
@pytest.mark.parametrize(
    ("status", "kind"),
    [(404, ConnectorNotFoundError), (401, ConnectorAuthError), (500, ConnectorTransientError), (400, ConnectorError)],
)
async def test_a_start_that_cannot_be_had_is_raised(
    site: Website, crawler: Crawler, status: int, kind: type[ConnectorError], recursive: bool
) -> None:
    site.put("/a", Page(status=status))
    with pytest.raises(kind, match=str(status)):
        await crawler.walk("/a", recursive=recursive)
    assert crawler.left() == []


@pytest.mark.parametrize("text", ["", " ", "javascript:alert(1)", "ftp://h/a", "http://", "http://u:p@h/", "a b c"])
def test_what_is_no_address_of_a_page(crawler: Crawler, text: str) -> None:
    request = ConnectorInput.model_construct(source_type="web", source_identifier=text, recursive=False)
    with pytest.raises(ConnectorError, match="is not the address of a web page"):
        crawler.connector.covers(request, "http://h/")


def test_what_a_request_covers(crawler: Crawler) -> None:
    covers = crawler.connector.covers
    walk, page = ask("docs.example/guide"), ask("http://docs.example/guide#top", recursive=False)
    assert covers(walk, "https://docs.example/elsewhere")
    assert covers(walk, "http://www.docs.example/")
    assert not covers(walk, "https://docs.example:8443/elsewhere")
    assert not covers(walk, "https://other.example/guide")
    assert not covers(walk, "/docs.example/guide")
    assert covers(page, "https://docs.example/guide")
    assert not covers(page, "http://docs.example/guide/more")


# Credentials


def credentials(folder: Path, **entries: dict[str, str]) -> Credentials:
    path = folder / "credentials.json"
    path.write_text(json.dumps(entries))
    path.chmod(0o600)
    return Credentials(path)


@pytest.mark.row("S003-10", "S003-43")
@pytest.mark.parametrize(
    ("entry", "header", "value"),
    [
        ({"type": "header", "name": "X-Api-Key", "value": "k-123"}, "x-api-key", "k-123"),
        ({"type": "basic", "username": "ann", "password": "s3cret"}, "authorization", "Basic YW5uOnMzY3JldA=="),
        ({"type": "bearer", "token": "t-1"}, "authorization", "Bearer t-1"),
    ],
)
async def test_a_named_credential_is_sent_to_every_page_of_its_site_and_to_no_other(
    site: Website, client: SafeClient, tmp_path: Path, entry: dict[str, str], header: str, value: str
) -> None:
    async def guarded(request: web.Request) -> web.Response:
        status = 200 if request.headers.get(header) == value else 401
        return web.Response(status=status, text='<a href="/b">b</a>', content_type="text/html")

    site.put("/", guarded)
    site.html("/b")
    site.put("/away", Page(status=302, headers={"location": site.at("/elsewhere", OTHER_HOST)}))
    site.html("/elsewhere")
    crawler = Crawler(site, client, tmp_path, credentials=credentials(tmp_path, mine=entry))
    assert (await crawler.walk(credentials_id="mine")).names == ["", "b"]
    assert all(one.headers.get(header) == value for one in site.asked if one.path in ("/", "/b", "/sitemap.xml"))
    site.asked.clear()
    assert (await crawler.walk("/away", recursive=False, credentials_id="mine")).names == ["elsewhere"]
    assert [header in one.headers for one in site.asked if one.path == "/elsewhere"] == [False]
    with pytest.raises(ConnectorAuthError, match="name a credential"):
        await crawler.walk()


@pytest.mark.row("S003-10")
async def test_an_oauth_client_gets_a_token_once_and_a_new_one_when_it_expires(
    site: Website, client: SafeClient, tmp_path: Path
) -> None:
    forms: list[dict[str, str]] = []

    async def token(request: web.Request) -> web.Response:
        forms.append({key: str(value) for key, value in (await request.post()).items()})
        return web.json_response({"access_token": f"t-{len(forms)}", "expires_in": 600})

    site.put("/token", token)
    site.html("/", "/a")
    site.html("/a")
    entry = {"type": "oauth_client", "client_id": "c", "client_secret": "s", "scope": "read"}
    named = credentials(tmp_path, mine={**entry, "token_uri": site.at("/token")})
    crawler = Crawler(site, client, tmp_path, credentials=named)
    assert (await crawler.walk(credentials_id="mine")).names == ["", "a"]
    assert forms == [{"grant_type": "client_credentials", "client_id": "c", "client_secret": "s", "scope": "read"}]
    assert {one.headers.get("authorization") for one in site.asked if one.path in ("/", "/a")} == {"Bearer t-1"}
    site.put("/token", Page(b"{}", kind="application/json"))
    with pytest.raises(ConnectorError, match="/token answered without an access token"):
        await crawler.walk(credentials_id="mine")


async def test_a_credential_that_does_not_fit_is_refused_not_ignored(
    site: Website, client: SafeClient, tmp_path: Path
) -> None:
    named = credentials(
        tmp_path, pdf={"type": "document_password", "password": "p"}, mine={"type": "bearer", "token": "t"}
    )
    crawler = Crawler(site, client, tmp_path, credentials=named)
    for start, name, reason in (
        ("/", "nobody", "no credential 'nobody'"),
        ("/", "pdf", "header, basic, bearer or oauth_client"),
        (site.at("/", ANY_HOST), "mine", "by https only"),
    ):
        with pytest.raises(ConnectorAuthError, match=reason):
            await crawler.walk(start, credentials_id=name)
    assert site.asked == []


# A site


@pytest.mark.row("S003-12")
async def test_a_site_is_walked_nearest_first_on_its_own_host(site: Website, crawler: Crawler) -> None:
    site.html("/", "/a", "b.html", "//" + site.at("/x", OTHER_HOST)[7:], "mailto:a@b", "javascript:alert(1)", "#top")
    site.html("/a", "/", "/a/deep", "tel:1", "data:text/html,x", "http://[", "http://u:p@h/")
    site.html("/b.html", "/a?b=1", "/A")
    site.html("/a/deep")
    site.html("/a?b=1", text="a page of its own")
    site.html("/x")
    found = await crawler.walk()
    assert found.names == ["", "a", "b.html", "a/deep", "a?b=1"]
    assert [(one.source, one.gone) for one in found.missed] == [(site.at("/A"), True)]
    assert {one.host for one in site.asked} == {"127.0.0.1"}
    assert crawler.left() == []


@pytest.mark.parametrize(("depth", "names"), [(0, ["0"]), (1, ["0", "1"]), (2, ["0", "1", "2"])])
async def test_the_depth_is_bounded(
    site: Website, client: SafeClient, tmp_path: Path, depth: int, names: list[str]
) -> None:
    for number in range(5):
        site.html(f"/{number}", f"/{number + 1}")
    for found in (
        await Crawler(site, client, tmp_path, WebLimits(depth=depth)).walk("/0"),
        await Crawler(site, client, tmp_path).walk("/0", max_depth=depth),
    ):
        assert found.names == names
        (deeper,) = found.missed
        assert deeper.is_walk_limit
        assert f"1 linked addresses are more than {depth} links from the start" in deeper.error.message
        assert site.at(f"/{depth + 1}") in deeper.error.message


async def test_the_page_limit_of_a_source_is_reported_when_it_cuts(site: Website, crawler: Crawler) -> None:
    site.html("/", *(f"/{number}" for number in range(5)))
    for number in range(5):
        site.html(f"/{number}")
    found = await crawler.walk(max_pages=2)
    assert found.names == ["", "0"]
    (cut,) = found.missed
    assert cut.is_walk_limit
    assert "4 more addresses were not requested" in cut.error.message
    assert "the limit of 2 pages is reached (max_pages)" in cut.error.message
    assert (await crawler.walk(max_pages=6)).missed == []


async def test_documents_that_pages_link_to_are_fetched_and_other_things_are_not(
    site: Website, crawler: Crawler
) -> None:
    site.html("/", "/paper", "/notes.md", "/picture.png", "/program", "/video.mp4")
    site.put("/paper", Page(b"%PDF-1.7 ...", kind="application/pdf"))
    site.put("/notes.md", Page(b"# Notes", kind="text/plain"))
    site.put("/program", Page(b"\0" * 5000, kind="application/x-elf"))
    found = await crawler.walk()
    assert [(one.name.partition("/")[2], one.file_type) for one in found.fetched] == [
        ("", "html"),
        ("paper", "pdf"),
        ("notes.md", "md"),
        ("program", None),
    ]
    assert site.paths() == ["/", "/paper", "/notes.md", "/program"]


async def test_links_follow_the_base_and_the_canonical_address(site: Website, crawler: Crawler) -> None:
    head = '<base href="/below/"><link rel="canonical" href="/canon"><link rel="stylesheet" href="/style">'
    site.html("/", "a", head=head)
    site.html("/below/a")
    site.html("/canon")
    assert (await crawler.walk()).names == ["", "canon", "below/a"]


@pytest.mark.parametrize(
    ("head", "headers", "kept", "followed"),
    [
        ('<meta name="robots" content="noindex">', {}, False, True),
        ('<meta name="ROBOTS" content="all, NoFollow">', {}, True, False),
        ('<meta name="stepgate" content="none">', {}, False, False),
        ('<meta name="googlebot" content="none">', {}, True, True),
        ("", {"x-robots-tag": "noindex, nofollow"}, False, False),
        ("", {"x-robots-tag": "stepgate: noindex"}, False, True),
        ("", {"x-robots-tag": "otherbot: noindex, nofollow"}, True, True),
        ("", {"x-robots-tag": "unavailable_after: 25 Jun 2035 15:00:00 GMT"}, True, True),
    ],
)
async def test_the_wishes_of_a_page(
    site: Website, crawler: Crawler, head: str, headers: dict[str, str], kept: bool, followed: bool
) -> None:
    site.html("/", "/a", head=head, headers=headers)
    site.html("/a")
    found = await crawler.walk()
    assert found.names == ([""] if kept else []) + (["a"] if followed else [])
    assert [one.gone for one in found.missed] == ([] if kept else [True])
    if not kept:
        with pytest.raises(ConnectorError, match="noindex"):
            await crawler.walk(recursive=False)
    assert crawler.left() == []


async def test_links_with_nofollow_are_not_followed(site: Website, crawler: Crawler) -> None:
    site.put("/", Page(b'<a rel="external nofollow" href="/a">a</a> <a href="/b">b</a>'))
    site.html("/a")
    site.html("/b")
    assert (await crawler.walk()).names == ["", "b"]


async def test_a_page_that_fails_stops_nothing(site: Website, crawler: Crawler) -> None:
    site.html("/", "/gone", "/closed", "/broken", "/busy", "/last")
    site.put("/gone", Page(status=410))
    site.put("/closed", Page(status=403))
    site.put("/broken", Page(status=500))
    site.put("/busy", Page(status=429), Page(b"<p>free now"))
    site.html("/last")
    found = await crawler.walk()
    assert found.names == ["", "busy", "last"]
    assert [(one.name.partition("/")[2], one.error.code, one.gone) for one in found.missed] == [
        ("gone", "ERR_CONNECTOR_NOT_FOUND", True),
        ("closed", "ERR_CONNECTOR_AUTH", False),
        ("broken", "ERR_CONNECTOR_FAILED", False),
    ]


async def test_a_redirect_that_leaves_the_site_is_not_followed(site: Website, crawler: Crawler) -> None:
    site.html("/", "/out", "/in")
    site.put("/out", Page(status=302, headers={"location": site.at("/x", OTHER_HOST)}))
    site.put("/in", Page(status=302, headers={"location": "/target"}))
    site.html("/target")
    found = await crawler.walk()
    assert found.names == ["", "target"]
    assert [one.source for one in found.missed] == [site.at("/out")]
    assert "another site" in found.missed[0].error.message
    with pytest.raises(ConnectorRefusedError, match="another site") as refused:
        await crawler.walk("/out")
    assert SkippedDocument("/out", refused.value.code, "").remedy.startswith("ask the site's owner")
    assert {one.host for one in site.asked} == {"127.0.0.1"}


async def test_www_is_the_same_site(site: Website, crawler: Crawler) -> None:
    start = site.at("/", ANY_HOST)

    async def home(request: web.Request) -> web.StreamResponse:
        if request.host.startswith("www."):
            return web.Response(text=f'<a href="/a">a</a><a href="{start}">home</a>', content_type="text/html")
        return web.Response(status=301, headers={"location": site.at("/", f"www.{ANY_HOST}")})

    site.put("/", home)
    site.html("/a")
    found = await crawler.walk(start)
    assert [one.source for one in found.fetched] == [site.at("/", f"www.{ANY_HOST}"), site.at("/a", f"www.{ANY_HOST}")]
    assert found.missed == []


async def test_redirects_to_one_page_are_one_page(site: Website, crawler: Crawler) -> None:
    site.html("/", "/one", "/two", "/real")
    for path in ("/one", "/two"):
        site.put(path, Page(status=302, headers={"location": "/real"}))
    site.html("/real")
    found = await crawler.walk()
    assert found.names == ["", "real"]
    assert site.paths().count("/real") == 1


# Manners


ROBOTS = """User-agent: *
Disallow: /

User-agent: stepgate
Disallow: /private
Allow: /private/open
Disallow: /*.pdf$
Crawl-delay: 3
"""


async def test_robots_txt_is_honoured(site: Website, crawler: Crawler) -> None:
    site.put("/robots.txt", Page(ROBOTS.encode(), kind="text/plain"))
    site.html("/", "/private/a", "/private/open", "/a.pdf", "/a.pdf?x", "/b")
    for path in ("/private/a", "/private/open", "/b"):
        site.html(path)
    site.put("/a.pdf?x", Page(b"%PDF", kind="application/pdf"))
    found = await crawler.walk()
    assert found.names == ["", "private/open", "a.pdf?x", "b"]
    assert site.asked[0].path == "/robots.txt"
    assert "Stepgate" in site.asked[0].headers["user-agent"]
    assert [one.source for one in found.missed] == [site.at("/robots.txt")]
    assert "2 of the addresses" in found.missed[0].error.message
    assert found.missed[0].error.code == "ERR_CONNECTOR_REFUSED"
    assert sum(one.path == "/robots.txt" for one in site.asked) == 1
    with pytest.raises(ConnectorError, match=r"robots\.txt asks robots not to read"):
        await crawler.walk("/private/a", recursive=False)


async def test_a_redirect_into_what_robots_txt_forbids_is_not_followed(site: Website, crawler: Crawler) -> None:
    site.put("/robots.txt", Page(b"User-agent: *\nDisallow: /private\n"))
    site.html("/", "/a")
    site.put("/a", Page(status=302, headers={"location": "/private"}))
    site.html("/private")
    assert (await crawler.walk()).names == [""]
    assert "/private" not in site.paths()


@pytest.mark.parametrize(
    ("rules", "pause"),
    [(b"", 0.5), (b"User-agent: *\nCrawl-delay: 7\n", 7.0), (b"User-agent: *\nRequest-rate: 1/9\n", 9.0)],
)
async def test_the_pace_is_the_host_s(site: Website, crawler: Crawler, rules: bytes, pause: float) -> None:
    site.put("/robots.txt", Page(rules))
    site.html("/", "/a", "/b")
    site.html("/a")
    site.html("/b")
    await crawler.walk()
    assert crawler.clock.slept == [pytest.approx(pause)] * 3


@pytest.mark.parametrize("delay", ["3600", "1e300"])
async def test_a_host_that_wants_longer_pauses_is_not_crawled(site: Website, crawler: Crawler, delay: str) -> None:
    site.put("/robots.txt", Page(f"User-agent: *\nCrawl-delay: {delay}\n".encode()))
    site.html("/")
    with pytest.raises(ConnectorError, match="between requests"):
        await crawler.walk()
    assert site.paths() == []


@pytest.mark.parametrize(("status", "allowed"), [(404, True), (403, True), (500, False), (503, False)])
async def test_a_robots_txt_that_cannot_be_had(site: Website, crawler: Crawler, status: int, allowed: bool) -> None:
    """RFC 9309, 2.3.1.3 and 2.3.1.4."""
    site.put("/robots.txt", Page(b"User-agent: *\nDisallow: /", status=status))
    site.html("/")
    if allowed:
        assert (await crawler.walk()).names == [""]
    else:
        with pytest.raises(ConnectorTransientError, match=r"robots\.txt cannot be read at the moment"):
            await crawler.walk()


# Sitemaps


async def test_the_pages_of_sitemaps_are_read(site: Website, crawler: Crawler) -> None:
    space = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
    index = (
        f"<sitemapindex {space}><sitemap><loc>{site.at('/one.xml.gz')}</loc></sitemap>"
        f"<sitemap><loc> /two.txt </loc></sitemap><sitemap><loc>{site.at('/index.xml')}</loc></sitemap>"
        f"<sitemap><loc>{site.at('/far.xml', OTHER_HOST)}</loc></sitemap></sitemapindex>"
    )
    urls = (
        f'<?xml version="1.0"?><urlset {space}><url><loc>{site.at("/lonely?a=1&amp;b=2")}</loc><lastmod>2026</lastmod>'
        f"</url><url><loc>{site.at('/x', OTHER_HOST)}</loc></url><url><image><loc>/image</loc></image></url></urlset>"
    )
    site.put("/robots.txt", Page(f"Sitemap: {site.at('/index.xml')}\nSitemap: nonsense\n".encode()))
    site.put("/index.xml", Page(index.encode(), kind="application/xml"))
    site.put("/one.xml.gz", Page(gzip.compress(urls.encode()), kind="application/gzip"))
    site.put("/two.txt", Page(f"{site.at('/listed')}\n{site.at('/a')}\n".encode(), kind="text/plain"))
    site.html("/", "/a")
    for path in ("/a", "/lonely?a=1&b=2", "/listed"):
        site.html(path)
    found = await crawler.walk()
    assert found.names == ["", "a", "lonely?a=1&b=2", "listed"]
    assert {one.host for one in site.asked} == {"127.0.0.1"}


async def test_without_a_word_in_robots_txt_the_usual_place_is_tried(site: Website, crawler: Crawler) -> None:
    site.put("/sitemap.xml", Page(b"<urlset><url><loc>/lonely</loc></url></urlset>"))
    site.html("/")
    site.html("/lonely")
    assert (await crawler.walk()).names == ["", "lonely"]
    assert (await crawler.walk(recursive=False)).names == [""]


# The second time


async def test_what_has_not_changed_is_not_sent_again_and_still_leads_on(site: Website, crawler: Crawler) -> None:
    site.html("/", "/a", "/paper")
    site.html("/a", "/b")
    site.html("/b")
    site.put("/paper", Page(b"%PDF", kind="application/pdf", tagged=True))
    first = await crawler.walk()
    assert first.new == ["", "a", "paper", "b"]
    assert all("if-none-match" not in one.headers for one in site.asked)
    site.asked.clear()
    second = await crawler.walk("/", first.known)
    assert (second.names, second.new) == (first.names, [])
    assert second.known == first.known
    assert all("if-none-match" in one.headers for one in site.asked if one.path in ("/", "/a", "/b", "/paper"))

    site.html("/b", "/c", text="changed")
    site.html("/c")
    third = await crawler.walk("/", second.known)
    assert third.new == ["b", "c"]
    assert third.missed == []


async def test_a_site_without_validators_is_compared_by_content(site: Website, crawler: Crawler) -> None:
    site.put("/", Page(b'<a href="/a">a</a>'))
    site.put("/a", Page(b"<p>a"))
    first = await crawler.walk()
    second = await crawler.walk("/", first.known)
    assert (second.names, second.new) == (["", "a"], [])
    assert crawler.left() == []


async def test_last_modified_alone_is_enough(site: Website, crawler: Crawler) -> None:
    date = "Thu, 01 Jan 2026 00:00:00 GMT"

    async def dated(request: web.Request) -> web.StreamResponse:
        same = request.headers.get("if-modified-since") == date
        return web.Response(status=304 if same else 200, text="" if same else "a", headers={"last-modified": date})

    site.put("/a", dated)
    first = await crawler.walk("/a", recursive=False)
    assert first.new == ["a"]
    second = await crawler.walk("/a", first.known, recursive=False)
    assert (second.names, second.new) == (["a"], [])


async def test_a_known_page_nothing_leads_to_any_more_is_asked_for(site: Website, crawler: Crawler) -> None:
    """Whether it is gone only the site can tell: a walk that came not so far this time proves nothing."""
    site.html("/", "/a", "/b")
    site.html("/a")
    site.html("/b")
    known = (await crawler.walk()).known
    site.html("/")
    site.remove("/b")
    found = await crawler.walk("/", {**known, site.at("/x", OTHER_HOST): "{}", "http://elsewhere.example/": ""})
    assert found.names == ["", "a"]
    assert [(one.source, one.gone) for one in found.missed] == [(site.at("/b"), True)]


async def test_a_known_page_is_not_gone_because_a_limit_is_reached(
    site: Website, client: SafeClient, crawler: Crawler, tmp_path: Path
) -> None:
    site.html("/", *(f"/{number}" for number in range(5)))
    for number in range(5):
        site.html(f"/{number}")
    known = (await crawler.walk()).known
    site.html("/6")
    site.html("/", *(f"/{number}" for number in range(7)))
    found = await Crawler(site, client, tmp_path, WebLimits(pages=3)).walk("/", known)
    assert found.names == ["", "0", "1"]
    assert [one.source for one in found.missed[:3]] == [site.at(f"/{number}") for number in (2, 3, 4)]
    assert "2 more addresses were not requested" in found.missed[3].error.message
    assert not any(one.gone for one in found.missed)
    assert len(found.missed) == 4


@pytest.mark.parametrize("version", ["", "W/1", "null", "[]", '{"sha256": 1}', '{"links": [[1]]}', "\ud800"])
async def test_a_version_that_is_none_of_ours_does_no_harm(site: Website, crawler: Crawler, version: str) -> None:
    site.html("/", "/a")
    site.html("/a")
    found = await crawler.walk("/", {site.at("/"): version, site.at("/a"): version})
    assert found.new == ["", "a"]
