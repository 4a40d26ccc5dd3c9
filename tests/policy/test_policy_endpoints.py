"""Rules about hosts: a deny holds for every spelling, port, scheme and wildcard; an allow for no more than it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from policy_world import config, one

import toolgate
from sampling import fewer
from toolgate.core.errors import CallError, ConfigError, NotAllowed
from toolgate.core.target import Reach, Target
from toolgate.policy.conditions import Condition
from toolgate.policy.model import ConditionSpec
from toolgate.sandbox.egress.grant import HostGrant

INTERNAL = "*.internal.example"
REACHED = (
    "db.internal.example",
    "db.internal.example:443",
    "db.internal.example:80",
    "db.internal.example:8443",
    "http://db.internal.example",
    "https://db.internal.example",
    "https://db.internal.example:8443",
    "*.internal.example",
    "*.internal.example:443",
    "https://*.internal.example",
    "*.deep.internal.example",
    "*.example",
    "*.EXAMPLE",
    "DB.Internal.Example",
    "db.internal.example.",
    "db.internal.example.:443",
    "db.internal.example..",
    " db.internal.example ",
    "https://db.internal.example/path?x=1#y",
    "HTTPS://DB.INTERNAL.EXAMPLE/",
    "https://user:" + "word@db.internal.example/",
    "https://a@b@db.internal.example/",
    "https://harmless.test\\@db.internal.example/",
    "https://db.internal.example\\@harmless.test/",
    "https://harmless.test#@db.internal.example/",
    "https:db.internal.example",
    "https:/db.internal.example",
    "https:///db.internal.example",
    "https:\\\\db.internal.example",
    "//db.internal.example/x",
    "\\\\db.internal.example\\share",
    "wss://db.internal.example",
    "ftp://db.internal.example/",
    "postgresql://me@other.test,db.internal.example:5432/x",
    "jdbc:postgresql://db.internal.example/x",
    "https://db%2einternal%2eexample/",
    "https://%64b.internal.example/",
    "https://db%252einternal.example/",
    "d\u200bb.internal.example",
    "db.inter\tnal.example",
    "https://db.inter\nnal.example/",
    "\uff44\uff42.\uff49nternal.example",
    "db\u3002internal\u3002example",
    "db\uff0einternal\uff61example",
    "db.internal.example:\uff14\uff14\uff13",
    "db.\u24d8nternal.example",
    "db.internal.example:0443",
    "db.internal.example:",
    "db.internal.example:http",
    "b\u00fccher.internal.example",
    "xn--bcher-kva.internal.example:443",
    "harmless.test, db.internal.example",
    "harmless.test db.internal.example:22",
    "host=db.internal.example",
    "--proxy=db.internal.example:3128",
    "Server=db.internal.example;Port=1",
    "Server=tcp:db.internal.example,1433;Database=x",
    "TCP:db.internal.example:80",
    "jdbc:oracle:thin:@//db.internal.example:1521/x",
    "jdbc:sqlserver://db.internal.example;encrypt=true",
    "<http://db.internal.example>",
    "'db.internal.example'",
    "d?.internal.example",
    "[d]b.internal.example",
    "{db,x}.internal.example",
    "db.internal.example%00.harmless.test",
    "db.internal.example%3a443",
    "https://db.internal.example%2f.harmless.test",
    "https://db.internal.example%252f@harmless.test/",
    "(DESCRIPTION=(ADDRESS=(PROTOCOL=TCP)(HOST=db.internal.example)(PORT=1521)))",
    "jdbc:mysql://address=(host=db.internal.example)(port=3306)/x",
    "db\uff61internal\uff0eexample",
    "git@db.internal.example:repo.git",
    "mongodb://a.test,db.internal.example:27017,c.test/x",
    "https://db.int\nernal.example/",
    "\ufeffdb.internal.example",
    "db.*.example",
    "*:443",
)
ADDRESS = "10.0.0.5"
SPELLED = (
    "10.0.0.5", "10.0.0.5:80", "http://10.0.0.5/", "10.5", "10.0.5", "012.0.0.5", "0xa.0.0.5", "0xA000005", "167772165",
    "01200000005", "010.0.0.5", "10.0.0.05", "10.0.0.5.", "\uff11\uff10.0.0.\uff15", "10\u30020\u30020\u30025", "[::ffff:10.0.0.5]",
    "[::ffff:a00:5]:443", "[0:0:0:0:0:ffff:0a00:0005]", "::ffff:10.0.0.5", "[64:ff9b::a00:5]", "[::10.0.0.5]", "[2002:a00:5::1]",
    "http://0xa.5/", "http://user@167772165:8080/x", "https://[::ffff:10.0.0.5%25eth0]/", "[::FFFF:10.0.0.5%eth0]", "\u2460\u24ea.0.0.5",
    "http://10.0.0.5\\@harmless.test/", "http://1%30.0.0.5/",
    "[::ffff:0:10.0.0.5]", "[::ffff:0:a00:5]:443", "[64:ff9b:1::a00:5]", "10.0.0.0/8", "10/8", "0.0.0.0/0", "0/0", "10.0.0.4/30",
    "10.0.*", "10.*:443", "*.5", "10.0.0.?", "1?.0.0.5", "a.test,10.0.0.0/24",
)  # fmt: skip


def holds(condition: Any, value: Any, strict: bool = True, name: str = "network") -> bool:
    return Condition(name, ConditionSpec.model_validate(condition), strict).holds({name: value})


@pytest.mark.parametrize("asked", REACHED)
@pytest.mark.parametrize(
    "condition",
    [
        {"glob": INTERNAL},
        {"glob": "*internal.example"},
        {"host": INTERNAL},
        {"in": ["x.test", INTERNAL]},
        INTERNAL,
    ],
    ids=["glob", "open glob", "host", "in", "equals"],
)
def test_a_deny_on_hosts_covers_every_way_to_write_one(asked: str, condition: Any) -> None:
    assert holds(condition, asked)
    assert holds(condition, ["harmless.test", asked])
    assert holds(condition, {"hosts": [asked], "methods": ["GET"]})
    assert holds(condition, asked, name="url")


@pytest.mark.parametrize("asked", SPELLED)
@pytest.mark.parametrize(
    "denied",
    [
        {"equals": ADDRESS}, {"glob": "10.0.0.*"}, {"glob": "10.0.0.0/8"}, {"host": "10.0.0.0/24"}, {"host": ADDRESS},
        {"in": ["[::ffff:10.0.0.5]"]}, {"equals": "::ffff:10.0.0.0/104"}, {"glob": "10.0.0.5:*"},
    ],
    ids=str,
)  # fmt: skip
def test_a_deny_on_an_address_covers_every_spelling_of_it(asked: str, denied: Any) -> None:
    assert holds(denied, asked)


@pytest.mark.parametrize("word", ["deny", "ask"])
def test_rules_about_urls_and_programs_are_judged_alike(word: str) -> None:
    rules = [
        {"persona": "p", "tools": "*", "decision": "allow"},
        {
            "name": "shut",
            "tools": "http.get",
            "when": {"args": {"url": {"glob": INTERNAL}}},
            "decision": word,
        },
        {
            "name": "net",
            "tools": "exec.*",
            "when": {"args": {"network": {"glob": INTERNAL}}},
            "decision": word,
        },
    ]
    for asked in REACHED:
        assert one("http.get", {"url": asked}, rules=rules).rule == "rule:shut", asked
        assert one("exec.python", {"network": [asked]}, rules=rules).rule == "rule:net", asked
    for free in ("internal.example.test", "https://harmless.test/?u=internal.example", "notinternal.example"):
        assert one("http.get", {"url": free}, rules=rules).rule == "rule:rule-1", free


@pytest.mark.parametrize(
    ("denied", "caught", "free"),
    [
        ("db.example", ["db.example:1", "*.example", "http://db.example"], ["xdb.example", "*.db.example", "db.example.test"]),
        ("db.example:443", ["db.example", "https://db.example", "db.example:443"], ["db.example:80", "http://db.example"]),
        ("https://db.example", ["db.example", "db.example:8443", "https://db.example:1"], ["http://db.example"]),
        ("*:22", ["a.test:22", "*.test:22", "ssh://a.test:022"], ["a.test", "a.test:2222", "https://a.test"]),
        ("intranet", ["intranet:80", "http://INTRANET./x", "http://intranet"], ["intranet.test", "http://xintranet"]),
        ("[::1]", ["[0:0::1]:80", "::1", "http://[::1%25lo]/"], ["[::2]", "http://[::1:1]/"]),
        ("https://db.example/admin/*", ["https://db.example/x/../admin/y", "https://db.example:443/%61dmin/y"],
         ["https://db.example/public", "https://other.test/admin/x"]),
        ("b\u00fccher.example", ["xn--bcher-kva.example:1", "B\u00dcCHER.example"], ["bucher.example"]),
        ("*.b\u00fccher.example", ["a.xn--bcher-kva.example", "*.xn--bcher-kva.example"], ["a.example.test"]),
        ("{db,git}.example", ["git.example:443", "*.example"], ["www.example:443"]),
        ("d?.example", ["db.example:443", "*.example"], ["dbx.example"]),
        ("fd00::/8", ["[fd12::1]:80", "http://[fd00:1::]/"], ["[fe80::1]", "db.example"]),
        ("localhost", ["localhost:3000", "http://localhost/", "LOCALHOST."], ["localhost.test"]),
    ],
)  # fmt: skip
def test_host_port_and_scheme_are_judged_separately(denied: str, caught: list[str], free: list[str]) -> None:
    assert [each for each in caught if not holds({"glob": denied}, each)] == []
    assert [each for each in free if holds({"glob": denied}, each)] == []


@pytest.mark.parametrize(
    "pattern", [r"^db\.internal\.example$", r"internal\.example$", r"\.internal\.", "^db[.]"]
)
def test_a_pattern_of_a_deny_is_also_compared_with_the_host_alone(pattern: str) -> None:
    for asked in (
        "db.internal.example:443",
        "https://DB.internal.example.",
        "*.internal.example:80",
        "//u@db.internal.example/",
    ):
        assert holds({"matches": pattern}, asked), asked
    assert not holds({"matches": pattern}, "https://harmless.test/")


def test_other_arguments_than_hosts_are_compared_as_texts() -> None:
    assert not holds("main", "Main", name="branch")
    assert not holds("1.0", "1.0.0.0", name="version")
    assert not holds({"glob": "release/*"}, "main", name="branch")
    assert holds({"glob": "*.md"}, "docs/a.md", strict=False, name="path")
    assert not holds("db.internal.example", "long prose " * 500, name="content")


def test_what_is_too_long_or_too_much_to_be_read_as_a_host_is_denied() -> None:
    padded = f"https://{'x' * 5000}@db.internal.example/"
    for condition in (INTERNAL, {"in": [INTERNAL]}, {"glob": INTERNAL}, {"host": INTERNAL}):
        assert holds(condition, padded)
        assert holds(condition, [f"a{number}.test:1" for number in range(9000)])
        assert not holds(condition, [f"a{number}.test:1" for number in range(500)])


@pytest.mark.parametrize(
    ("condition", "value"),
    [
        ({"glob": "https://*.example.com/*"}, "https://evil.test/.example.com/"),
        ({"glob": "https://*.example.com/*"}, "https://evil.test#.example.com/"),
        ({"glob": "api.example.com*"}, "api.example.com@evil.test/"),
        ({"glob": "https://api.example.com*"}, "https://api.example.com@evil.test/"),
        ({"glob": "https://api.example.com*"}, "https://api.example.com\\@evil.test/"),
        ({"glob": "*.example.com"}, "https://evil.test/?x=.example.com"),
        ({"glob": "*.example.com"}, "evil.test/.example.com"),
        ({"glob": "http*example.com"}, "https://evil.test/example.com"),
        ({"glob": "?.example.com"}, "*.example.com"),
        ({"glob": "[!a].example.com"}, "*.example.com"),
        ({"matches": "^.[.]example[.]com$"}, "*.example.com"),
        ({"not": "db.internal.example"}, "db.internal.example:443"),
        ({"not": ["x", INTERNAL]}, "https://DB.internal.example"),
        ({"host": "api.example.com"}, "api.example.com:8443"),
        ({"host": "https://api.example.com"}, "api.example.com"),
        ({"host": "*.example.com"}, "example.com"),
        ({"host": "a.example.com"}, "*.example.com"),
        ({"host": "api.example.com"}, "https://api.example.com@evil.test/"),
        ({"host": "api.example.com"}, "not a host"),
        ({"host": "10.0.0.0/8"}, "11.0.0.1"),
        ({"host": "api.example.com"}, ["api.example.com", "b.example.com"]),
        ({"host": "api.example.com"}, {"hosts": ["api.example.com"], "url": "http://evil.test"}),
        ({"host": "api.example.com"}, []),
        ({"host": "api.example.com"}, None),
    ],
)
def test_an_allow_never_becomes_wider_than_its_words(condition: Any, value: Any) -> None:
    assert not holds(condition, value, strict=False, name="url")


@pytest.mark.parametrize(
    ("condition", "value"),
    [
        ({"glob": "https://*.example.com/*"}, "https://a.example.com/x?y#z"),
        ({"glob": "https://api.example.com*"}, "https://api.example.com/x"),
        ({"glob": "*"}, "https://evil.test/"),
        ({"glob": "http*"}, "https://any.test/x"),
        ({"glob": "*.example.com"}, "*.a.example.com"),
        ({"glob": "memo://*"}, "memo://a/b"),
        ({"glob": "file:///*"}, "file:///project/a.md"),
        ({"not": "db.internal.example"}, "api.example.com:443"),
        ({"host": "api.example.com"}, "https://API.example.com./x"),
        ({"host": ["*.example.com", "10.0.0.0/8"]}, ["a.example.com", "*.b.example.com:443", "10.1.2.3"]),
        ({"host": "api.example.com"}, {"hosts": ["api.example.com"], "methods": ["GET"]}),
    ],
)
def test_an_allow_holds_for_what_it_says(condition: Any, value: Any) -> None:
    assert holds(condition, value, strict=False, name="url")


@pytest.mark.parametrize("wrong", ["", "*", "*.com", "a b", "x.test/path", "1.2.3.4/99", "0x7f.1", []])
def test_a_host_condition_that_names_no_place_is_refused(wrong: Any) -> None:
    rules = [{"tools": "*", "when": {"args": {"network": {"host": wrong}}}, "decision": "deny"}]
    with pytest.raises(ConfigError, match="host"):
        config(policy={"rules": rules})


POLICY = {
    "version": 1,
    "default_persona": "p",
    "personas": {"p": {"phase": "experiment"}},
    "policy": {
        "rules": [
            {"name": "names", "when": {"args": {"network": {"glob": INTERNAL}}}, "decision": "deny"},
            {"name": "numbers", "when": {"args": {"network": {"host": ["10.0.0.0/8"]}}}, "decision": "deny"},
        ]
    },
}


async def test_no_spelling_of_a_denied_host_gets_as_far_as_a_question(tmp_path: Path) -> None:
    """Through the whole gate: what the proxy's reading refuses is refused earlier, the rest is denied."""
    async with toolgate.open(tmp_path, POLICY, "memory") as gate:
        for asked in (*REACHED, *SPELLED):
            for network in ([asked], {"hosts": ["harmless.test", asked], "methods": ["GET"]}):
                result = await gate.call("exec.python", {"code": "1", "network": network}, wait=False)
                assert result.error is not None
                assert result.error.code.value in ("not_allowed", "invalid_args"), (asked, result.error)
        free = await gate.call("exec.python", {"code": "1", "network": ["harmless.test"]}, wait=False)
        assert free.error is not None
        assert free.error.code.value == "pending"


_SCHEMES = st.sampled_from(["", "http://", "https://", "HTTP://", " https://"])
_LABELS = st.text("abAB-\u00fc\uff41*1", min_size=1, max_size=4)
_HOSTS = st.one_of(
    st.builds(lambda label, tail: f"{label}.{tail}", _LABELS, st.sampled_from(["internal.example", "Internal.EXAMPLE.", "example"])),
    st.sampled_from(["*.internal.example", "*.example.test", "internal.example", "10.0.0.5", "[::ffff:a00:5]", "11.0.0.1", "[::FFFF:10.9.0.1]"]),
)  # fmt: skip
_ENDS = st.sampled_from(["", ":80", ":443", ":8443", ".", ".:443", " "])
_TARGETS = st.builds(
    Target,
    st.sampled_from(["http", "https", ""]),
    st.sampled_from(
        ["db.internal.example", "a.internal.example", "x.a.internal.example", "10.0.0.5", "10.9.0.1"]
    ),
    st.sampled_from([80, 443, 8443]),
)


@settings(max_examples=fewer(400, 80), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.builds(lambda scheme, host, end: scheme + host + end, _SCHEMES, _HOSTS, _ENDS), _TARGETS)
def test_policy_denies_whatever_would_lead_the_proxy_to_a_denied_host(asked: str, target: Target) -> None:
    try:
        HostGrant.parse([asked]).check("CONNECT" if not target.scheme else "GET", target)
        written = str(Reach.parse(asked))
    except (NotAllowed, CallError):
        return
    denied = {"glob": INTERNAL} if target.host[-1].isalpha() else {"host": "10.0.0.0/8"}
    for spelling in (asked, written):
        assert holds(denied, spelling), spelling
        assert holds(target.host, spelling), spelling
