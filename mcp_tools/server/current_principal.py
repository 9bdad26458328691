"""The principal of the current MCP request. Apart from `caller.py`, so that its users do not load the MCP SDK."""

from contextvars import ContextVar, Token

from agent.core.principal import LOCAL, Principal

_current_principal: ContextVar[Principal | None] = ContextVar("principal", default=None)


def get_current_principal() -> Principal:
    """Returns the principal of the request that is being handled; tasks started by a handler inherit it."""
    return _current_principal.get() or LOCAL


def get_current_owner() -> str:
    """Returns the owner whose data the current request reads and writes."""
    return get_current_principal().owner


def set_current_principal(principal: Principal | None) -> Token[Principal | None]:
    """Sets the principal of the current request. Returns the token for `reset_current_principal`."""
    return _current_principal.set(principal)


def reset_current_principal(token: Token[Principal | None]) -> None:
    """Restores the principal from before `set_current_principal`."""
    _current_principal.reset(token)
