"""HTTP to addresses that users and models choose, guarded against SSRF."""

from agent.net.addresses import Address, is_public
from agent.net.client import CONNECT_TIMEOUT_S, MAX_REDIRECTS, Answer, HostNotFoundError, Page, SafeClient

__all__ = [
    "CONNECT_TIMEOUT_S",
    "MAX_REDIRECTS",
    "Address",
    "Answer",
    "HostNotFoundError",
    "Page",
    "SafeClient",
    "is_public",
]
