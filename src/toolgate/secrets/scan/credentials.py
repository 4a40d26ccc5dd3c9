"""Credentials on their way somewhere: in addresses (the password of a user, the path of a webhook, a key among the
parameters), on command lines (`curl -u name:password`, `mysql -p…`) and in HTTP headers (`Authorization: Bearer …`).
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator

from toolgate.core.late_pattern import late_pattern
from toolgate.secrets.scan.judged import code, password_like, placeholder, random_looking, real
from toolgate.secrets.scan.rules import Effort, SecretHit, Source, following, shown

_COMMON = frozenset(
    {
        b"postgres",
        b"root",
        b"admin",
        b"user",
        b"guest",
        b"pass",
        b"mysql",
        b"redis",
        b"pw",
        b"p",
        b"rabbitmq",
        b"minio",
    }
)
_LOCAL = late_pattern(
    rb"(?:localhost|127\.|\[?::1|0\.0\.0\.0|[a-z0-9.-]{0,60}example\.|[a-z0-9.-]{0,60}\.(?:test|invalid|local)\b|"
    rb"[a-z0-9_-]{1,60}(?:[/:?\"'\s\\]|$))"
)
_URL = late_pattern(rb"://([^\s/:@\"'<>{}$]{0,64}+):([^\s/@\"'<>{}$*]{4,200}+)@(?=[A-Za-z0-9\[])")
_UUID = rb"[0-9a-z]{8}-[0-9a-z]{4}-[0-9a-z]{4}-[0-9a-z]{4}-[0-9a-z]{12}"
_WEBHOOKS = (
    ("slack-webhook", rb"hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9+/_]{24,255})"),
    ("discord-webhook", rb"(?:[a-z]{1,10}\.)?discord(?:app)?\.com/api/(?:v\d{1,2}/)?webhooks/\d{15,20}/([A-Za-z0-9_-]{60,90})"),
    ("teams-webhook", rb"[a-z0-9-]{1,60}\.webhook\.office\.com/webhookb2/(" + _UUID + rb"@" + _UUID + rb"/IncomingWebhook/[a-z0-9]{32}/" + _UUID + rb")"),
    ("teams-webhook", rb"outlook\.office(?:365)?\.com/webhook/(" + _UUID + rb"@[^\s\"'<>]{60,200})"),
    ("zapier-webhook", rb"hooks\.zapier\.com/hooks/(?:catch|standard)/(\d{4,12}/[A-Za-z0-9]{5,20})"),
    ("google-chat-webhook", rb"chat\.googleapis\.com/v1/spaces/[\w-]{6,20}/messages\?(key=[\w-]{20,60}&token=[\w%-]{20,80})"),
    ("ifttt-webhook", rb"maker\.ifttt\.com/trigger/[\w-]{1,60}/with/key/([\w-]{20,60})"),
    ("azure-logic-app-webhook", rb"[a-z0-9.-]{1,80}\.logic\.azure\.com[:/][^\s\"'<>]{20,300}[?&]sig=([\w%-]{30,80})"),
    ("wecom-webhook", rb"qyapi\.weixin\.qq\.com/cgi-bin/webhook/send\?key=(" + _UUID + rb")"),
    ("dingtalk-webhook", rb"oapi\.dingtalk\.com/robot/send\?access_token=([0-9a-f]{64})"),
    ("feishu-webhook", rb"open\.(?:feishu\.cn|larksuite\.com)/open-apis/bot/v2/hook/(" + _UUID + rb")"),
    ("mattermost-webhook", rb"[a-z0-9.-]{3,80}(?::\d{2,5})?/hooks/([a-z0-9]{26})(?![a-z0-9])"),
    ("rocketchat-webhook", rb"[a-z0-9.-]{3,80}(?::\d{2,5})?/hooks/([A-Za-z0-9]{17,24}/[A-Za-z0-9]{40,64})"),
    ("softlayer-key", rb"api\.softlayer\.com/(?:soap|rest|xmlrpc)/v3(?:\.1)?/([A-Za-z0-9]{64})"),
    ("infura-key", rb"[a-z0-9-]{1,40}\.infura\.io/(?:ws/)?v3/([0-9a-f]{32})"),
    ("alchemy-token", rb"[a-z0-9-]{1,40}\.g\.alchemy\.com/(?:nft/)?v[23]/([A-Za-z0-9_-]{32})"),
    ("make-webhook", rb"hook\.[a-z0-9]{2,4}\.make\.com/([a-z0-9]{30,36})"),
    ("pipedream-webhook", rb"(eo[a-z0-9]{10,16}\.m\.pipedream\.net)"),
    ("azure-storage-signature", rb"[a-z0-9]{3,24}\.(?:blob|file|queue|table|dfs)\.core\.windows\.net/[^\s\"'<>]{0,400}?[?&]sig=([\w%+/=-]{40,80})"),
)  # fmt: skip
_ANY = late_pattern(b"|".join(b"(?:" + pattern + b")" for _, pattern in _WEBHOOKS))


def addresses(source: Source) -> Iterator[SecretHit]:
    content = source.content
    at = content.find(b"://")
    while at >= 0:
        hit = _password(source, at) or _webhook(content, at + 3)
        if hit is not None:
            yield hit
        at = following(content, b"://", at + 3)
    at = content.find(b"hooks.slack.com/")
    while at >= 0:
        if not content[:at].endswith(b"://") if at < 8 else content[at - 3 : at] != b"://":
            hit = _webhook(content, at)
            if hit is not None:
                yield hit
        at = following(content, b"hooks.slack.com/", at + 3)


def _password(source: Source, at: int) -> SecretHit | None:
    """`scheme://user:password@host`, unless it is what everybody writes for a database on their own machine."""
    match = _URL.match(source.content, at)
    if match is None or not _worth_hiding(source, match):
        return None
    start, end = match.span(2)
    excerpt = f"{shown(match[1])}:…({end - start} characters)"
    return SecretHit("secret", "url-password", start, end, excerpt, (match[2],))


def _worth_hiding(source: Source, match: re.Match[bytes]) -> bool:
    value = match[2].lower()
    if value == match[1].lower() or value in _COMMON or placeholder(value):
        return False
    if _LOCAL.match(source.folded, match.end()) is None:
        return True
    return len(value) >= 10 and (random_looking(match[2]) or (len(value) >= 12 and password_like(match[2])))


def _webhook(content: bytes, at: int) -> SecretHit | None:
    match = _ANY.match(content, at)
    if match is None or match.lastindex is None:
        return None
    rule = _WEBHOOKS[match.lastindex - 1][0]
    start, end = match.span(match.lastindex)
    value = content[start:end]
    if not real(value.rpartition(b"/")[2] or value):
        return None
    shown_part = shown(content[at : min(start, at + 40)])
    return SecretHit("secret", rule, start, end, f"{shown_part}…({end - start} characters)", (value,))


_SCHEMES = late_pattern(
    rb"authorization[\"'\]]{0,2}+\s{0,3}+[:=,]{1,2}\s{0,3}+[\"'`f]{0,2}(?:(basic|bearer|(?:api-?)?(?:token|key)|bot|digest)\s{1,3}+)?([a-z0-9_=~@.+/:-]{8,2000}+)"
)
_BEARER = late_pattern(rb"bearer\s{1,2}([a-z0-9_=~.+/-]{16,2000}+)(?![a-z0-9])")
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
