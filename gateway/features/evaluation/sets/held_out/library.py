"""The server `library`: books, copies, readers, loans and holds."""

from datetime import date, timedelta
from typing import Any, Literal

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from gateway.features.evaluation.state_file import DELETE, EFFECT, READ, State, StateFile, find_record
from gateway.features.evaluation.tool_inputs import Day, Inputs

MAX_RENEWALS = 2


class CatalogueQuery(Inputs):
    """What the books must have. Everything is optional; conditions are joined with AND."""

    title_contains: str | None = None
    author_contains: str | None = None
    language: Literal["en", "de", "sv", "fr"] | None = None


class Hold(Inputs):
    """A reservation of a book."""

    card: str = Field(description="the reader's card, such as R-2041")
    book: str = Field(description="the book's id, such as B-11")
    pickup: Literal["harbour", "hill", "mobile"] = "harbour"


def build_library(file: StateFile) -> MCPServer:
    """Builds the server of books and loans."""
    server = MCPServer("library")

    @server.tool(annotations=READ)
    def search_catalogue(query: CatalogueQuery, limit: int = 10) -> list[dict[str, Any]]:
        """Find books, with author, language, year and the state of each copy."""
        state = file.load()
        books = [_describe_book(state, key) for key, book in state["books"].items() if _matches(book, query)]
        return books[:limit]

    @server.tool(annotations=READ)
    def find_readers(name_contains: str) -> list[dict[str, Any]]:
        """Find readers by a part of their name: card, branch and unpaid fees in cents."""
        readers = file.load()["readers"]
        return [
            {"card": card, **reader} for card, reader in readers.items() if _contains(reader["name"], name_contains)
        ]

    @server.tool(annotations=READ)
    def list_loans(card: str) -> list[dict[str, Any]]:
        """List what a reader has borrowed, with the title, the due date and whether it is overdue."""
        state = file.load()
        find_record(state["readers"], card, "card")
        return [
            {"loan": key, "title": _find_title(state, loan["copy"]), **loan}
            for key, loan in state["loans"].items()
            if loan["reader"] == card
        ]

    @server.tool(annotations=EFFECT)
    def renew_loan(loan: str, weeks: Literal[1, 2, 4] = 2) -> dict[str, Any]:
        """Extend a loan by one, two or four weeks. Returns the new due date."""
        with file.change() as state:
            record = find_record(state["loans"], loan, "loan")
            if record["renewals"] >= MAX_RENEWALS:
                raise ToolError(f"{loan} has been renewed twice already and must be returned")
            record["due"] = (date.fromisoformat(record["due"]) + timedelta(weeks=weeks)).isoformat()
            record["renewals"] += 1
        return {"loan": loan, "due": record["due"]}

    @server.tool(annotations=EFFECT)
    def lend_copies(card: str, copies: list[str], due: Day) -> list[str]:
        """Lend one or more copies to a reader until a day. Returns the ids of the loans."""
        with file.change() as state:
            find_record(state["readers"], card, "card")
            return [_lend(state, card, copy, due) for copy in copies]

    @server.tool(annotations=EFFECT)
    def place_hold(hold: Hold) -> str:
        """Reserve a book for a reader. Returns the hold's id."""
        with file.change() as state:
            find_record(state["readers"], hold.card, "card")
            find_record(state["books"], hold.book, "book")
            key = f"H-{31 + len(state['holds'])}"
            state["holds"][key] = {"book": hold.book, "reader": hold.card, "pickup": hold.pickup}
        return key

    @server.tool(annotations=DELETE)
    def cancel_hold(hold_id: str) -> str:
        """Remove a reservation."""
        with file.change() as state:
            find_record(state["holds"], hold_id, "hold")
            del state["holds"][hold_id]
        return f"{hold_id} is removed"

    return server


def _matches(book: dict[str, Any], query: CatalogueQuery) -> bool:
    pairs = ((query.title_contains, book["title"]), (query.author_contains, book["author"]))
    return query.language in (None, book["language"]) and all(_contains(text, part or "") for part, text in pairs)


def _contains(text: str, part: str) -> bool:
    return part.casefold() in text.casefold()


def _lend(state: State, card: str, copy: str, due: str) -> str:
    """Lends one copy. Returns the id of the loan. Raises `ToolError` if the copy is not there."""
    if find_record(state["copies"], copy, "copy")["state"] != "available":
        raise ToolError(f"{copy} is not available; nothing was lent")
    key = f"L-{9001 + len(state['loans'])}"
    state["copies"][copy]["state"] = "on loan"
    state["loans"][key] = {"copy": copy, "reader": card, "due": due, "renewals": 0, "overdue": False}
    return key


def _describe_book(state: State, key: str) -> dict[str, Any]:
    copies = {copy: record["state"] for copy, record in state["copies"].items() if record["book"] == key}
    return {"book": key, **state["books"][key], "copies": copies}


def _find_title(state: State, copy: str) -> str:
    title: str = state["books"][state["copies"][copy]["book"]]["title"]
    return title
