"""Secrets on command lines and in HTTP headers: `curl -u name:password`, `mysql -p…`, `Authorization: Bearer …`."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator

from toolgate.core.late_pattern import late_pattern
from toolgate.secrets.scan.judged import code, password_like, placeholder, random_looking
from toolgate.secrets.scan.rules import Effort, SecretHit, Source, following, shown

_SCHEMES = late_pattern(
    rb"authorization[\"'\]]{0,2}+\s{0,3}+[:=,]{1,2}\s{0,3}+[\"'`f]{0,2}(?:(basic|bearer|(?:api-?)?(?:token|key)|bot|digest)\s{1,3}+)?([a-z0-9_=~@.+/:-]{8,2000}+)"
)
_BEARER = late_pattern(rb"bearer\s{1,2}([a-z0-9_=~.+/-]{16,2000}+)(?![a-z0-9])")
_KEY_HEADER = late_pattern(rb"(?:key|token):[ \t]{0,4}([\w=~@.+/-]{8,300}+)")
_USER = late_pattern(
    rb" (?:-u|--user)(?:=|[ \t]{0,5})(?:\"([^\"\r\n:]{0,80}:[^\"\r\n]{0,200})\"|'([^'\r\n:]{0,80}:[^'\r\n]{0,200})'|"
    rb"((?:\"[^\"\r\n]{1,80}\"|'[^'\r\n]{1,80}'|[\w$@.{}-]{0,80}):(?:\"[^\"\r\n]{1,200}\"|'[^'\r\n]{1,200}'|[^\s\"']{1,200})))"
)
_FLAG = late_pattern(rb" -[paw][ =]?[\"']?([^\s\"'-][^\s\"']{5,100})[\"']?(?=\s|$)")
_TAKES_PASSWORD = late_pattern(
    rb"\b(?:mysql\w*|mariadb\w*|sshpass|docker|podman|helm|redis-cli|ldap\w+|mongo\w*|smbclient|rabbitmqctl|7z|unzip|zip|plink|kadmin|oc)\b"
)
_NO_PASSWORD = late_pattern(rb"[\d.:]+|[\w.-]+:[\w.-]+")
_REACH = 400


def commands(source: Source) -> Iterator[SecretHit]:
    for find in (_headers, _users, _flags):
        yield from find(source, Effort(source))


def _headers(source: Source, effort: Effort) -> Iterator[SecretHit]:
    folded = source.folded
    for anchor, pattern in ((b"authorization", _SCHEMES), (b"bearer ", _BEARER)):
        at = folded.find(anchor)
        while at >= 0:
            match = pattern.match(folded, at)
            if match is not None:
                if effort.spent():
                    yield effort.rest(at)
                    return
                scheme = match[1] if match.lastindex == 2 and match[1] else b""
                start, end = match.span(match.lastindex or 0)
                value = source.content[start:end]
                if _credential(scheme, value):
                    yield SecretHit(
                        "secret",
                        "authorization-header",
                        start,
                        end,
                        f"{shown(match[0][: start - at])}…({end - start} characters)",
                        (value,),
                    )
            at = following(folded, anchor, at + len(anchor))


def _credential(scheme: bytes, value: bytes) -> bool:
    if scheme != b"basic":
        return random_looking(value) and not code(value)
    try:
        user, colon, password = base64.b64decode(value + b"=" * (-len(value) % 4)).partition(b":")
    except (binascii.Error, ValueError):
        return False
    return bool(colon) and user != password and len(password) > 3 and not placeholder(password)


def _users(source: Source, effort: Effort) -> Iterator[SecretHit]:
    """Only after `curl`, which may stand a few lines before."""
    text = source.content
    at = text.find(b"curl")
    while at >= 0:
        if effort.spent():
            yield effort.rest(at)
            return
        match = _USER.search(text, at, at + _REACH)
        if match is not None:
            start, end = match.span(match.lastindex or 0)
            user, _, password = text[start:end].partition(b":")
            secret = password.strip(b"\"'") or user.strip(b"\"'")
            if (
                len(secret) > 5
                and not placeholder(secret)
                and password_like(secret)
                and not secret.startswith(b"$")
            ):
                first = text.find(secret, start)
                yield SecretHit(
                    "secret",
                    "curl-password",
                    first,
                    first + len(secret),
                    f"-u …({len(secret)} characters)",
                    (secret,),
                )
        at = following(text, b"curl", at + 4 if match is None else max(match.end(), at + 4))


def _flags(source: Source, effort: Effort) -> Iterator[SecretHit]:
    """`mysql -p…`, `sshpass -p …`, `docker login -p …`, `redis-cli -a …`."""
    text = source.content
    for anchor in (b" -p", b" -a ", b" -w "):
        at = text.find(anchor)
        while at >= 0:
            match = _FLAG.match(text, at)
            if match is not None and effort.spent():
                yield effort.rest(at)
                return
            line = text[max(0, at - 160) : at].rpartition(b"\n")[2] if match is not None else b""
            if match is not None and _TAKES_PASSWORD.search(line) and _chosen(match[1]):
                start, end = match.span(1)
                excerpt = f"{shown(anchor)} …({end - start} characters)"
                yield SecretHit("secret", "command-line-password", start, end, excerpt, (match[1],))
            at = following(text, anchor, at + 3)


def _chosen(value: bytes) -> bool:
    """A password, where a port, an image or a path may stand too."""
    return password_like(value) and b"/" not in value and _NO_PASSWORD.fullmatch(value) is None
