"""The page that a person sees who opens the gateway by a name that it does not answer to."""

from html import escape

from starlette.responses import HTMLResponse
from starlette.types import Scope

from agent.core.errors import AgentError
from gateway.render.errors import get_http_status

_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Stepgate: refused</title>
<h1>Stepgate has refused this request</h1>
<p>{message}</p>
</html>
"""
_HEADERS = {
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'",
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
}


def wants_html(scope: Scope) -> bool:
    """Whether a browser asks: its Accept header names HTML. `*/*` alone means a program."""
    accepted = next((value for name, value in scope["headers"] if name == b"accept"), b"")
    return b"text/html" in accepted.lower()


def build_refusal_page(error: AgentError, scope: Scope) -> HTMLResponse | None:
    """A refusal as a page with its sentence, or None for a client that is not a browser's window."""
    if not wants_html(scope):
        return None
    message = f"{error.message[:1].upper()}{error.message[1:].rstrip('.')}."
    return HTMLResponse(_PAGE.format(message=escape(message)), get_http_status(error.code), _HEADERS)
