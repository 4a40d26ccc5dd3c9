"""Secrets that have no form of their own: what is given to a name like `password`, in any language and settings file.

Two ways lead to them. From the name, for what may be short: a password. From a long run of letters and digits, whose name
may be any that has `key` or a service in it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from toolgate.core.late_pattern import late_pattern
from toolgate.secrets.scan import names
from toolgate.secrets.scan.judged import (
    code,
    entropy,
    hash_like,
    password_like,
    random_looking,
    real,
    scrambled,
)
from toolgate.secrets.scan.rules import Effort, SecretHit, Source, back, following, shown

GENERIC = "assigned-secret"
ENTROPY = "high-entropy-string"
UNSURE = frozenset({GENERIC, ENTROPY})
"""Where another rule sees the same, that one counts."""
_QUOTES = (b'"', b"'", b"`")
_BASE64 = re.compile(rb"(?=[^A-Z]*[A-Z])(?=[^a-z]*[a-z])[A-Za-z0-9_+/=-]+")
_STEMS = (
    b"pass", b"pwd", b"secret", b"token", b"cred", b"api_key", b"apikey", b"api-key", b"private_key", b"private-key", b"access_key",
    b"auth_key", b"db_key", b"contrase",
)  # fmt: skip
_WORD = b"abcdefghijklmnopqrstuvwxyz0123456789_.-"
_TYPE = (
    rb"(?:\??\s{0,3}+:?\s{0,3}+(?:&(?:'static )?str|string|str|char|any|bytes|secretstr|text|const)\b\??)?+"
)
_GIVEN = late_pattern(
    rb"[a-z0-9_.-]{0,40}+(?:\[[0-9]{0,4}\])?+(?P<shut>[\"'`\])\\]{0,4}+)" + _TYPE + rb"[ \t]{0,40}+(?:"
    rb"(?P<is>:{1,3}=|=>|[=!]==?|\?\?=|\|\|=?|[?+.]?=|:)[ \t]{0,8}+(?:[|>][+-]?[ \t]{0,4}+\r?\n[ \t]{0,40}+)?+"
    rb"|(?P<call>[,(])\s{0,8}+(?=@?[rbuf]{0,2}[\"'`])|(?P<tag>>)\s{0,40}+"
    rb"|(?P<pair>,?\s{1,20}+[\"']?value[\"']?\s{0,3}+[=:]\s{0,3}+)"
    rb"|(?P<flag>(?<=[ \t]))(?=[^=:])|(?=[\"']))"
    rb"(?:@?[rbuf]{0,2}\\{0,2}[\"'`](?P<in>[^\"'`\\\r\n]{5,300}+)(?=[\"'`\\])|(?P<bare>[^\s\"'`,;&\\]{6,300}+))"
)
"""From within a name on: its end, what says that it is given a value, and the value, in small letters."""
_ASKED = late_pattern(rb"[!=]==?\s{0,2}([\w.]{0,30}(?:pass|pwd|secret|token|key)\w{0,30})")
_BEFORE_IT = late_pattern(rb"[\"'`]([^\"'`\r\n]{6,200})[\"'`]\s{0,2}\Z")
_VALUE = late_pattern(rb"[A-Za-z0-9_+/=.~%-]+")
_INNER = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/_-.~"
_LONGEST = 300
_NESTED = 1
"""So many more are tried of values that lie within one another, as in `password=password=…`; then it goes on behind them."""
_DIGIT = late_pattern(rb"[0-9]")
_LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_NAMING = _LETTERS + b"0123456789_.-"
_LONGEST_NAME = 64
_LONGEST_TYPE = 11
_LONGEST_FLAG = 43
_TYPED = late_pattern(rb"(?:\s|:)\s{0,3}&?(?:string|str|String|char|any|bytes|const|text)\Z")
_PAIR = late_pattern(
    rb"(?:name|key|id)[\"']?\s{0,3}[=:]\s{0,3}[\"']?([\w.-]{2,64})[\"']?[\s,]{1,30}[\"']?value\Z",
    re.IGNORECASE,
)
_FLAG = late_pattern(rb"--?([a-z][\w-]{2,40})\Z")


def worth(name: bytes, value: bytes, *, quoted: bool) -> bool:
    """Whether a value that this name is given is likely a secret."""
    sure = names.meaning(name)
    if sure == names.NONE or (not quoted and code(value)) or b" " in value:
        return False
    if sure == names.PASSWORD:
        if quoted:
            return password_like(value)
        return len(value) >= 8 and password_like(value) and (scrambled(value) or random_looking(value))
    if sure == names.STRONG:
        if random_looking(value):
            return quoted or scrambled(value) or len(value) >= 32
        return len(value) >= 10 and not value.isalnum() and scrambled(value) and password_like(value)
    return (
        len(value) >= RUN_OF_WEAK
        and random_looking(value)
        and entropy(value) >= 3.5
        and scrambled(value)
        and not hash_like(value)
    )


RUN_OF_WEAK = 16


_NAMED = (
    ("azure-storage-key", late_pattern(rb"account_?key"), late_pattern(rb"[A-Za-z0-9+/]{86}==")),
    ("azure-shared-access-key", late_pattern(rb"shared_?access_?key"), late_pattern(rb"[A-Za-z0-9+/]{43}=")),
    ("aws-secret-key", late_pattern(rb"aws|secret_?access_?key"), late_pattern(rb"[A-Za-z0-9+/]{40}")),
    ("ibm-cos-key", late_pattern(rb"secret_?(?:access_?)?key"), late_pattern(rb"[0-9a-f]{48}")),
)


def _rule(name: bytes, value: bytes) -> str:
    words = names.words_of(name)
    for rule, word, shape in _NAMED:
        if shape.fullmatch(value) and word.search(words):
            return rule
    service = names.service_of(name, value)
    return f"{service}-key" if service else GENERIC


def _hit(name: bytes, value: bytes, start: int) -> SecretHit:
    excerpt = f"{shown(name)} = …({len(value)} characters)"
    return SecretHit("secret", _rule(name, value), start, start + len(value), excerpt, (value,))


def by_name(source: Source, known: Collection[int] = ()) -> Iterator[SecretHit]:
    """Values that start where one is `known` need no second look."""
    folded = source.folded
    effort = Effort(source)
    for stem in _STEMS:
        at = folded.find(stem)
        reached = nested = 0
        while at >= 0:
            match = _GIVEN.match(folded, at + len(stem))
            onward = at + len(stem)
            if match is not None:
                if effort.spent():
                    yield effort.rest(at)
                    return
                hit = _given(source, at, match, known)
                if hit is not None:
                    yield effort.right(hit)
                    onward = hit.end
                elif match["bare"] is not None:
                    nested = nested + 1 if at < reached else 0
                    reached = max(reached, match.end())
                    onward = reached if nested == _NESTED else onward
            at = following(folded, stem, onward)


def _given(source: Source, at: int, match: re.Match[bytes], known: Collection[int]) -> SecretHit | None:
    quoted = match["bare"] is None
    start, end = match.span("in" if quoted else "bare")
    if start in known:
        return None
    if not quoted and (
        match["call"] or not (match["is"] or match["tag"] or match["pair"] or match["flag"] is not None)
    ):
        return None
    begin = back(source.folded, at, 40, _WORD)
    content = source.content
    name = content[begin : match.end("shut")].strip(b"\"'`])\\.-")
    if match["call"] == b"(" and not name.endswith((b".assign", b".equals")):
        name = name.rpartition(b".")[2]
    if match["call"] == b"," and not (
        match["shut"].endswith(_QUOTES) and content[begin - 1 : begin] in _QUOTES
    ):
        return None
    if (
        match["flag"] is not None
        and not quoted
        and not (content[begin : begin + 2] == b"--" or _netrc(content, begin))
    ):
        return None
    value = content[start:end] if quoted else _alone(content[start:end])
    if not value or not worth(name, value, quoted=quoted or bool(match["tag"])):
        return None
    return _hit(name, value, start)


def _alone(value: bytes) -> bytes:
    """Without a closing tag, and without closing brackets of the text around it."""
    value = value.split(b"</", 1)[0]
    return value if any(one in value for one in b"({<[") else value.rstrip(b")}>].")


def _netrc(content: bytes, begin: int) -> bool:
    line = content[max(0, begin - 200) : begin].rpartition(b"\n")[2]
    return b"login " in line or b"machine " in line


def compared(source: Source) -> Iterator[SecretHit]:
    """`if ("…" == password)`: the value first."""
    folded = source.folded
    effort = Effort(source)
    for operator in (b"==", b"!="):
        at = folded.find(operator)
        while at >= 0:
            if folded[max(0, at - 2) : at].rstrip()[-1:] in (b'"', b"'", b"`") and (
                asked := _ASKED.match(folded, at)
            ):
                if effort.spent():
                    yield effort.rest(at)
                    return
                value = _BEFORE_IT.search(source.content, max(0, at - 210), at)
                name = source.content[asked.start(1) : asked.end(1)]
                if value is not None and worth(name, value[1], quoted=True):
                    yield effort.right(_hit(name, value[1], value.start(1)))
            at = following(folded, operator, at + 2)


def by_run(
    source: Source, long_runs: list[tuple[int, int]], known: Collection[int] = ()
) -> Iterator[SecretHit]:
    """Long random values, by the name that stands before them."""
    text = source.content
    effort = Effort(source)
    reached = 0
    for start, end in long_runs:
        if start < reached or _DIGIT.search(text, start, end) is None:
            continue
        begin = back(text, start, min(100, start - reached), _INNER)
        if begin in known:
            continue
        if effort.spent():
            yield effort.rest(start)
            return
        match = _VALUE.match(text, begin, begin + _LONGEST)
        if match is None:
            continue
        reached = match.end()
        name = name_before(text, begin)
        value = match[0].rstrip(b".")
        quote = text[begin - 1 : begin] if begin else b""
        quoted = quote in _QUOTES
        if name and (_service(name, value) or worth(name, value, quoted=quoted)):
            yield effort.right(_hit(name, value, begin))
        elif quoted and text[match.end() : match.end() + 1] == quote and _key_like(name, value):
            excerpt = f"…({len(value)} characters)"
            yield effort.right(SecretHit("secret", ENTROPY, begin, begin + len(value), excerpt, (value,)))


def _key_like(name: bytes, value: bytes) -> bool:
    """Nothing but a key has so many different letters in no order, between quotes, and is called nothing harmless."""
    return (
        24 <= len(value) <= 128
        and _BASE64.fullmatch(value) is not None
        and not names.harmless(name)
        and random_looking(value)
        and scrambled(value)
        and entropy(value) > 4.5
        and not value.startswith((b"sha256-", b"sha384-", b"sha512-", b"sha1-"))
    )


def _service(name: bytes, value: bytes) -> bool:
    return bool(names.service_of(name, value)) and real(value) and names.meaning(name + b"_key") != names.NONE


def name_before(text: bytes, start: int) -> bytes:
    """The name that is given the value at this place, by `=`, `:`, a call, a tag or a flag."""
    near = text[max(0, start - 120) : start]
    before = near.rstrip(b" \t\r\n\"'`\\@")
    body = before.rstrip(b"=:,>(|?!+. \t")
    given = before[len(body) :]
    if not any(sign in given for sign in b"=:,>("):
        flag = _FLAG.search(before, max(0, len(before) - _LONGEST_FLAG))
        return flag[1] if flag is not None else b""
    if b"\n" in near[len(before) :] and given[-1:] not in (b">", b"|"):
        return b""
    body = body.rstrip(b" \t\"'`])\\")
    if body[-5:].lower() == b"value":
        pair = _PAIR.search(body)
        return pair[1] if pair is not None else b""
    typed = _TYPED.search(body, max(0, len(body) - _LONGEST_TYPE))
    return _last_name(body[: typed.start()] if typed is not None else body)


def _last_name(body: bytes) -> bytes:
    """With the word before it, if a space stands between them: `api key`."""
    begin = back(body, len(body), _LONGEST_NAME, _NAMING)
    if len(body) - begin < 2:
        return b""
    word = back(body, begin - 1, 20, _LETTERS) if body[begin - 1 : begin] == b" " and begin > 1 else begin
    return body[begin if word == begin - 1 else word :]
