"""Which hosts the gateway answers to, and which web pages may call it. Pure; made once from the settings."""

from dataclasses import dataclass

from agent.core.authorities import Authority, format_origin, parse_host_setting, parse_origin
from agent.core.settings import Settings

_LOOPBACK_NAMES = ("localhost", "localhost.localdomain", "ip6-localhost", "ip6-loopback")
"""Names of this machine in the hosts files of Debian and Red Hat."""
_DOCKER_HOST = "host.docker.internal"
"""The name of a machine inside its containers."""


@dataclass(frozen=True, slots=True)
class HostRules:
    """The hosts that every caller may use: IP addresses, which no name server of an attacker can point here, and these
    names, some of them at one port only.
    """

    names: frozenset[str]
    names_at_port: frozenset[tuple[str, int | None]]

    @classmethod
    def from_settings(cls, settings: Settings) -> "HostRules":
        """The rules of a gateway."""
        texts = (*_LOOPBACK_NAMES, _DOCKER_HOST, settings.host, *settings.allowed_hosts)
        hosts = [host for text in texts if (host := parse_host_setting(text)) is not None]
        public = parse_origin(format_origin(settings.public_url or "") or "")
        return cls(
            frozenset(host.host for host in hosts if host.port is None)
            | ({public.authority.host} if public is not None else frozenset()),
            frozenset((host.host, host.port) for host in hosts if host.port is not None),
        )

    def allows(self, host: Authority) -> bool:
        """Whether callers without a key may use this host."""
        return (
            host.is_address
            or host.host in self.names
            or host.host.endswith(".localhost")  # always this machine: nobody can register such a name (RFC 6761, 6.3)
            or (host.host, host.port) in self.names_at_port
        )


@dataclass(frozen=True, slots=True)
class OriginRules:
    """The origins of pages that may call the gateway besides its own page."""

    origins: frozenset[str]

    @classmethod
    def from_settings(cls, settings: Settings) -> "OriginRules":
        """The rules of a gateway."""
        public = format_origin(settings.public_url or "")
        return cls(frozenset((*settings.cors_origins, *([public] if public else ()))))

    def allows(self, origin: str, host: Authority | None) -> bool:
        """Whether a page of this origin may make a request to this host; pages of the host itself may."""
        if origin in self.origins:
            return True
        page = parse_origin(origin)
        return page is not None and host is not None and page.is_at(host)
