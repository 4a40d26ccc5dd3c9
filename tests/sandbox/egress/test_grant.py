"""Hosts and grants: one spelling each, and an error for everything odd."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgate.core.errors import InvalidArgs, NotAllowed
from toolgate.core.hosts import host_of
from toolgate.core.target import target_of, tunnel_of
from toolgate.sandbox.egress.grant import HostGrant


def allows(grant: HostGrant, url: str, method: str = "GET") -> bool:
    try:
        grant.check(method, target_of(url))
    except NotAllowed:
        return False
    return True


@pytest.mark.parametrize(
    ("entry", "reached", "refused"),
    [
        ("api.example.com", "http://api.example.com/", "http://example.com/"),
        ("api.example.com", "https://API.Example.COM./x", "https://api.example.com:8443/"),
        ("api.example.com", "https://api.example.com:443/", "http://xapi.example.com/"),
        ("api.example.com:8443", "https://api.example.com:8443/", "https://api.example.com/"),
        ("https://api.example.com", "https://api.example.com/", "http://api.example.com/"),
        ("https://api.example.com", "https://api.example.com/", "http://api.example.com:443/"),
        ("http://api.example.com:81", "http://api.example.com:81/", "https://api.example.com:81/"),
        ("*.example.com", "http://a.b.example.com/", "http://example.com/"),
        ("*.example.com", "http://a.example.com/", "http://aexample.com/"),
        ("*.example.com", "http://a.example.com/", "http://a.example.com.evil.net/"),
        ("*.example.com:99", "http://a.example.com:99/", "http://a.example.com/"),
        ("bücher.example", "http://xn--bcher-kva.example/", "http://bucher.example/"),
        ("93.184.216.34", "http://93.184.216.34/", "http://93.184.216.35/"),
        ("[2606:2800::1]:80", "http://[2606:2800:0:0::1]/", "http://[2606:2800::2]/"),
    ],
)
def test_an_entry_reaches_what_it_names_and_nothing_beside_it(entry: str, reached: str, refused: str) -> None:
    grant = HostGrant.parse([entry])
    assert allows(grant, reached)
    assert not allows(grant, refused)
    assert HostGrant.parse([str(each) for each in grant.hosts]) == grant


@pytest.mark.parametrize(
    "entry",
    [
        "", " ", "*", "*.", "*.com", "*.*.com", "a.*.com", "a*.example.com", "**.example.com", "*.10.0.0.1", ".example.com",
        "a..b", "example.com:", "example.com:0", "example.com:65536", "example.com:http", "example.com:٨٠", "a:1:2",
        "ftp://example.com", "javascript://example.com", "://example.com", "example.com/path", "example.com?x", "a#b",
        "user@example.com", "user:pw@example.com", "exa mple.com", "example.com\n", "exam\x00ple.com", "ex%61mple.com",
        "-a.com", "a-.com", "a" * 64 + ".com", ".".join(["a" * 60] * 5), "xn--a.com", "xn--\u00fc.com", "\u202eexample.com",
        "127.1", "0177.0.0.1", "0x7f.0.0.1", "0x7f000001", "2130706433", "127.0.0.1.", "1.2.3.4.5", "256.1.1.1", "1.2.3.04",
        "example.0", "example.0x", "１２７.1", "::1", "[::1", "::1]", "[::1]x", "[fe80::1%eth0]", "[fe80::1%25eth0]", "[127.0.0.1]",
        "[]", "[::1]:", "a\\b.com", "a,b.com", "a;b", "$HOME",
    ],
)  # fmt: skip
def test_an_odd_entry_is_an_error_that_says_what_to_do(entry: str) -> None:
    if entry in ("127.0.0.1.", "example.com\n"):  # one dot or a line end at the edge is only untidy
        assert HostGrant.parse([entry])
        return
    with pytest.raises(InvalidArgs) as raised:
        HostGrant.parse([entry])
    assert raised.value.fix


@pytest.mark.parametrize("methods", [["CONNECT"], ["TRACE"], ["GE T"], [""], ["GET\r\nX: y"]])
def test_an_odd_method_is_an_error(methods: list[str]) -> None:
    with pytest.raises(InvalidArgs):
        HostGrant.parse(["example.com"], methods)


def test_methods_limit_and_close_tunnels() -> None:
    grant = HostGrant.parse(["example.com"], ["get", "HEAD"])
    assert allows(grant, "http://example.com/")
    assert not allows(grant, "http://example.com/", "POST")
    with pytest.raises(NotAllowed, match="hide the method"):
        grant.check("CONNECT", tunnel_of("example.com:443"))
    HostGrant.parse(["example.com"]).check("CONNECT", tunnel_of("example.com:443"))
    with pytest.raises(NotAllowed):
        HostGrant.parse(["http://example.com"]).check("CONNECT", tunnel_of("example.com:80"))
    assert not allows(HostGrant.parse(["example.com"], []), "http://example.com/")
    assert not allows(HostGrant.parse([]), "http://example.com/")


def test_a_grant_has_an_end() -> None:
    with pytest.raises(InvalidArgs, match="100 are the most"):
        HostGrant.parse(f"h{number}.example.com" for number in range(101))


@given(st.integers(0, 2**32 - 1), st.sampled_from("dohxs"))
def test_an_address_has_one_spelling_and_no_other_is_taken(number: int, spelling: str) -> None:
    usual = ipaddress.IPv4Address(number)
    parts = list(usual.packed)
    odd = {
        "d": str(number),
        "o": ".".join(f"0{part:o}" for part in parts),
        "h": ".".join(f"{part:#x}" for part in parts),
        "x": f"{number:#x}",
        "s": f"{parts[0]}.{number & 0xFFFFFF}",
    }[spelling]
    assert host_of(str(usual)) == str(usual)
    assert host_of(f"[::ffff:{usual}]") == str(usual)
    with pytest.raises(InvalidArgs):
        host_of(odd)


@given(st.integers(0, 2**128 - 1))
def test_every_spelling_of_an_ipv6_address_is_the_same_host(number: int) -> None:
    address = ipaddress.IPv6Address(number)
    same = {host_of(f"[{text}]") for text in (str(address), address.exploded, str(address).upper())}
    assert same == {str(address.ipv4_mapped or address)}


@given(st.text(max_size=40))
def test_whatever_is_taken_as_a_host_is_already_in_its_one_spelling(text: str) -> None:
    try:
        host = host_of(text)
    except InvalidArgs:
        return
    assert host.isascii()
    assert host_of(f"[{host}]" if ":" in host else host) == host
    assert not set(host) & set("/\\@?#%[] \t\r\n\0")


@given(st.text(alphabet="ahtp:s/\\@.#?%[]0x1 \t\r\nüé。", max_size=30))
def test_whatever_is_taken_as_a_url_goes_to_a_host_and_a_path_without_surprises(rest: str) -> None:
    try:
        target = target_of(f"http://{rest}")
    except InvalidArgs:
        return
    assert host_of(f"[{target.host}]" if ":" in target.host else target.host) == target.host
    assert target.path.startswith("/")
    assert target.path.isascii()
    assert not set(target.path) & set(" \t\r\n\\#")
