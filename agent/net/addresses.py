"""Distinguishes public addresses from internal ones: this machine, its network, its cloud's metadata service."""

import ipaddress

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_NAT64 = (ipaddress.IPv6Network("64:ff9b::/96"), ipaddress.IPv6Network("64:ff9b:1::/48"))  # RFC 6052, RFC 8215
_6TO4 = ipaddress.IPv6Network("2002::/16")  # RFC 3056
_TEREDO = ipaddress.IPv6Network("2001::/32")  # RFC 4380
_COMPATIBLE = ipaddress.IPv6Network("::/96")  # RFC 4291, 2.5.5.1
_ISATAP = (0x00005EFE, 0x02005EFE)  # RFC 5214: the two words before the embedded address
_NEVER = (
    ipaddress.IPv4Network("100.64.0.0/10"),  # RFC 6598, carrier-grade NAT
    ipaddress.IPv4Network("192.0.0.0/24"),  # RFC 6890, protocol assignments
    ipaddress.IPv4Network("192.88.99.0/24"),  # RFC 7526, the old 6to4 relays
    ipaddress.IPv4Network("198.18.0.0/15"),  # RFC 2544, benchmarks
    ipaddress.IPv4Network("168.63.129.16/32"),  # a cloud's metadata behind a public-looking address
    ipaddress.IPv6Network("fec0::/10"),  # RFC 3879, site-local
    ipaddress.IPv6Network("3fff::/20"),  # RFC 9637, documentation
    ipaddress.IPv6Network("5f00::/16"),  # RFC 9602, segment routing
    ipaddress.IPv6Network("2001:db8::/32"),  # RFC 3849, documentation
)


def is_public(address: Address) -> bool:
    """Whether `address`, and every IPv4 address embedded in it, is globally reachable unicast."""
    if isinstance(address, ipaddress.IPv6Address):
        embedded = _get_embedded_address(address)
        if embedded is not None:
            # Tunnels end at a relay we know nothing about: only the plain mapped form of a public address passes.
            return address.ipv4_mapped is not None and is_public(embedded)
    if any(address.version == network.version and address in network for network in _NEVER):
        return False
    return address.is_global and not (
        address.is_multicast or address.is_reserved or address.is_unspecified or address.is_loopback
    )


def _get_embedded_address(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    number = int(address)
    low = ipaddress.IPv4Address(number & 0xFFFFFFFF)
    if any(address in network for network in _NAT64) or address in _COMPATIBLE:
        return low
    if address in _6TO4:
        return ipaddress.IPv4Address((number >> 80) & 0xFFFFFFFF)
    if address in _TEREDO:
        return ipaddress.IPv4Address((number & 0xFFFFFFFF) ^ 0xFFFFFFFF)
    if (number >> 32) & 0xFFFFFFFF in _ISATAP:
        return low
    return None
