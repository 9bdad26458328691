"""The one way out to addresses that users and models choose."""

from agent.core.net.addresses import Address, is_public
from agent.core.net.client import CONNECT_TIMEOUT_S, MAX_REDIRECTS, Answer, NoHostError, Page, SafeClient

__all__ = ["CONNECT_TIMEOUT_S", "MAX_REDIRECTS", "Address", "Answer", "NoHostError", "Page", "SafeClient", "is_public"]
