"""Which addresses are public: a row for every kind that is not."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.net.addresses import is_public

PUBLIC = ["8.8.8.8", "93.184.216.34", "2606:4700:4700::1111", "2a00:1450:4001:829::200e", "::ffff:8.8.8.8"]
NOT_PUBLIC = {
    "loopback": ["127.0.0.1", "127.255.255.254", "::1"],
    "private": ["10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "fc00::1", "fd00:ec2::254"],
    "link-local": ["169.254.0.1", "fe80::1", "fe80::1%eth0"],
    "cloud metadata": ["169.254.169.254", "168.63.129.16", "100.100.100.200", "192.0.0.192"],
    "this host": ["0.0.0.0", "0.1.2.3", "::"],
    "carrier-grade NAT": ["100.64.0.1", "100.127.255.255"],
    "documentation": ["192.0.2.1", "198.51.100.1", "203.0.113.1", "2001:db8::1", "3fff::1"],
    "benchmarks": ["198.18.0.1", "198.19.255.255"],
    "multicast": ["224.0.0.1", "239.255.255.255", "ff02::1", "ff0e::1"],
    "reserved": ["240.0.0.1", "255.255.255.255"],
    "6to4 relay": ["192.88.99.1"],
    "site-local": ["fec0::1"],
    "segment routing": ["5f00::1"],
    "mapped": ["::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::ffff:100.64.0.1"],
    "compatible": ["::127.0.0.1", "::10.0.0.1", "::8.8.8.8"],
    "NAT64": ["64:ff9b::127.0.0.1", "64:ff9b::169.254.169.254", "64:ff9b::8.8.8.8", "64:ff9b:1::10.0.0.1"],
    "6to4": ["2002:7f00:1::", "2002:a9fe:a9fe::", "2002:808:808::1"],
    "Teredo": ["2001:0:4136:e378:8000:63bf:80ff:fffe", "2001:0:808:808::f7f7:f7f7"],
    "ISATAP": ["2606:4700::5efe:127.0.0.1", "2606:4700::200:5efe:10.0.0.1", "2606:4700::5efe:8.8.8.8"],
}


@pytest.mark.parametrize("text", PUBLIC)
def test_public(text: str) -> None:
    assert is_public(ipaddress.ip_address(text))


@pytest.mark.parametrize(("kind", "text"), [(kind, text) for kind, texts in NOT_PUBLIC.items() for text in texts])
def test_not_public(kind: str, text: str) -> None:
    assert not is_public(ipaddress.ip_address(text)), kind


@given(st.ip_addresses(v=4))
def test_an_address_is_as_public_mapped_as_plain(address: ipaddress.IPv4Address) -> None:
    assert is_public(ipaddress.IPv6Address(f"::ffff:{address}")) == is_public(address)


@given(st.ip_addresses(v=4), st.sampled_from(["64:ff9b::{}", "64:ff9b:1::{}", "::{}", "2606:4700::5efe:{}"]))
def test_no_address_comes_through_a_tunnel(address: ipaddress.IPv4Address, tunnel: str) -> None:
    assert not is_public(ipaddress.IPv6Address(tunnel.format(address)))
