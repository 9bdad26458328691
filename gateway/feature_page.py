"""The parts of the web page: the kernel's and those of its features, as the page lists and serves them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from operator import attrgetter

from gateway.feature import Page, PagePart, Target
from gateway.feature_loader import KERNEL, LoadedFeatures, claim

STUDIO = "studio"
"""The view that shows the sections of features."""
KERNEL_PAGE = Page(
    folder="gateway:web",
    views=(
        PagePart("chat", "Chat", "chat.js", "chat", place=10),
        PagePart("runs", "Runs", "runs.js", "agent", place=40),
        PagePart("team", "Team", "team.js", place=50),
        PagePart(STUDIO, "Studio", "studio.js", "agent", place=60),
    ),
)
APART = ("models",)
"""The views of the kernel to which no link of the navigation leads."""


@dataclass(frozen=True, slots=True)
class CollectedPage:
    """All parts of the page, in the order of their places. Modules are named as they are below `/web/EDITION/`."""

    folders: Mapping[str, Target]
    """The folders of files by what their names begin with there: "" or `FEATURE/`."""
    views: tuple[PagePart, ...]
    studio: tuple[PagePart, ...]
    run_offers: tuple[PagePart, ...]
    room_offers: tuple[PagePart, ...]
    attachments: PagePart | None
    citations: PagePart | None


def collect_page(features: LoadedFeatures) -> CollectedPage:
    """The page with the parts of these features. Raises `FeatureConflictError` if two claim one part.

    The view Studio is left out where no feature has a section of it."""
    pages = {KERNEL: KERNEL_PAGE, **{one.name: one.page for one in features if one.page is not None}}
    views = _collect_parts(pages, lambda page: page.views, "the view", dict.fromkeys(APART, KERNEL))
    studio = _collect_parts(pages, lambda page: page.studio, "the section of Studio", {})
    return CollectedPage(
        folders={_name_folder(feature): page.folder for feature, page in pages.items()},
        views=tuple(one for one in views if studio or one.name != STUDIO),
        studio=studio,
        run_offers=_collect_parts(pages, lambda page: page.run_offers, "the offer of runs", {}),
        room_offers=_collect_parts(pages, lambda page: page.room_offers, "the offer of rooms", {}),
        attachments=_find_one(pages, lambda page: page.attachments, "attachments"),
        citations=_find_one(pages, lambda page: page.citations, "citations"),
    )


def _collect_parts(
    pages: Mapping[str, Page], choose: Callable[[Page], tuple[PagePart, ...]], noun: str, claims: dict[str, str]
) -> tuple[PagePart, ...]:
    parts: list[PagePart] = []
    for feature, page in pages.items():
        for part in choose(page):
            claim(claims, part.name, feature, noun)
            parts.append(replace(part, module=_name_folder(feature) + part.module))
    return tuple(sorted(parts, key=attrgetter("place")))


def _find_one(pages: Mapping[str, Page], choose: Callable[[Page], str], name: str) -> PagePart | None:
    """The part that only one feature may have."""

    def list_own(page: Page) -> tuple[PagePart, ...]:
        return (PagePart(name, "", choose(page)),) if choose(page) else ()

    return next(iter(_collect_parts(pages, list_own, "the module of the page for", {})), None)


def _name_folder(feature: str) -> str:
    return "" if feature == KERNEL else f"{feature}/"
