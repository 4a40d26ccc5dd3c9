"""What is written to do harm: programs in machine code, web shells, shells that call home; and characters that make a
text read otherwise than it is: reordering (Trojan Source), tags, nothing where something is.

Only what hardly anybody writes for another reason: by default policy refuses it. Patterns are matched on small letters. Texts
that would be a finding in this very file are written in pieces. Joiners and marks that languages and emoji need are left alone.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from itertools import islice

from toolgate.core.late_pattern import late_pattern
from toolgate.secrets.scan.rules import MANY, Around, Rule, SecretHit, Source, Token, shown, token

_MACH_O = (b"\xfe\xed\xfa\xce", b"\xfe\xed\xfa\xcf", b"\xce\xfa\xed\xfe", b"\xcf\xfa\xed\xfe")
_FAT_OR_CLASS = b"\xca\xfe\xba\xbe"
_MOST_FAT = 45
"""What follows the shared magic: few architectures in a Mach-O file, a version from 45 on in a class file."""
_PLAIN_MAGIC = (
    (b"\x7fELF", "elf-executable"),
    (b"\x00asm", "webassembly"),
    (b"dex\n0", "android-executable"),
    (b"L\x00\x00\x00\x01\x14\x02\x00", "windows-shortcut"),
    *((magic, "mach-o-executable") for magic in _MACH_O),
)


def magic(content: bytes) -> Iterator[SecretHit]:
    """By its first bytes, whatever the file is called."""
    name = _magic(content)
    if name:
        yield SecretHit("payload", name, 0, 4, f"begins with {content[:4].hex(' ')}")


def _magic(content: bytes) -> str:
    for start, name in _PLAIN_MAGIC:
        if content.startswith(start):
            return name
    if content.startswith(_FAT_OR_CLASS) and len(content) >= 8:
        return "mach-o-executable" if int.from_bytes(content[4:8], "big") < _MOST_FAT else "java-class"
    if content.startswith(b"MZ") and b"\0" in content[:64]:
        return "windows-executable"
    if (
        content[2:4] == b"\r\n"
        and 3000 <= int.from_bytes(content[:2], "little") <= 3999
        and content[5:8] == b"\0\0\0"
    ):
        return "python-bytecode"
    return ""


def _bad(name: str, anchors: str, pattern: str) -> Token:
    return token(name, anchors, pattern, folded=True)


def _near(name: str, anchors: str, *needs: str, reach: int = 300, one_line: bool = False) -> Around:
    compiled = tuple(late_pattern(need.encode()) for need in needs)
    return Around(name, tuple(anchors.encode().split(b" ")), compiled, reach, one_line)


_GIVEN = r"\$(?:_(?:get|post|request|cookie|files)|http_raw_post_data)"
_CALLS = r"(?:eval|assert|system|passthru|shell_exec|exec|popen|proc_open|pcntl_exec|include|require)"
_SHELL = r"(?:/(?:usr/)?bin/)?(?:ba|da|z|k|c|tc)?sh\b"
_EICAR = ("x5o!p%@ap", "[4\\pzx54(p^)7cc)7}")

PAYLOADS: tuple[Rule, ...] = (
    _bad(
        "php-web-shell", "eval( assert( system( passthru( shell_exec( exec( popen( proc_open( include( require(",
        rf"{_CALLS}\(\s{{0,8}}(?:@?[a-z_0-9]{{3,20}}\s{{0,4}}\(\s{{0,8}}){{0,4}}@?{_GIVEN}\b",
    ),
    _bad("php-web-shell", "`$_get `$_post `$_request `$_cookie", rf"`{_GIVEN}\s{{0,4}}\["),
    _bad("php-web-shell", "$_get[ $_post[ $_request[", rf"{_GIVEN}\[[^\]\n]{{1,40}}\]\s{{0,4}}\(\s{{0,4}}@?{_GIVEN}\b"),
    _bad(
        "php-packed-code", "eval( assert(",
        r"(?:eval|assert)\(\s{0,8}(?:@?(?:gzinflate|gzuncompress|gzdecode|str_rot13|strrev|rawurldecode)\s{0,4}\(\s{0,8}){1,4}"
        r"@?(?:base64_decode|str_rot13|gzinflate|hex2bin)\s{0,4}\(",
    ),
    _bad("jsp-web-shell", ".exec(request", r"\.exec\(request\.getparameter\("),
    _bad("asp-web-shell", "eval(request execute(request", r"(?:eval|execute)\(request(?:\.(?:item|form|querystring))?[(\[]\s{0,4}[\"']"),
    _bad(
        "node-web-shell", "child_process",
        r"child_process[\"'`]\)\.(?:exec|execsync|spawn)\(\s{0,4}(?:req|request|ctx)\.(?:query|body|params)\b",
    ),
    _near("reverse-shell", "/dev/tcp/ /dev/udp/", r"[<>]&", r"sh\s{1,4}-i\b|>&\s{0,4}/dev/(?:tcp|udp)/", one_line=True),
    _bad(
        "reverse-shell", "nc ncat netcat",
        rf"(?<![a-z0-9_.-])(?:nc|ncat|netcat)(?:\.exe|\.traditional)?\s[^\n|;&]{{0,80}}-[a-z]{{0,4}}[ec]\s{{1,4}}[\"']?(?:{_SHELL}|cmd\b|powershell)",
    ),
    _near("reverse-shell", "mkfifo", r"\|\s{0,4}(?:/bin/)?(?:ba)?sh\b", r"\|\s{0,4}(?:nc|ncat|netcat|telnet|openssl)\b", reach=400),
    _near("reverse-shell", ".fileno()", r"dup2\(", r"\bsocket\b", r"/bin/(?:ba|da|z)?sh\b|pty\.spawn|\bcmd\.exe", reach=600),
    _near("reverse-shell", "pty.spawn(", r"\.connect\(\s{0,4}\(", r"dup2", r"\bsocket\b", reach=600),
    _near("reverse-shell", "open(stdin,", r">&", r"\bsocket\b", r"exec\s{0,4}[({]\s{0,4}[\"']", reach=400),
    _near("reverse-shell", "tcpsocket.", r"\b(?:exec|spawn|popen|system)\b", r"/bin/(?:ba|da|z)?sh\b|cmd\.exe", reach=200),
    _near("reverse-shell", "fsockopen(", rf"(?:exec|proc_open|shell_exec|system|passthru|popen)\(\s{{0,4}}[\"']{_SHELL}", reach=400),
    _near("reverse-shell", "net.sockets.tcpclient", r"\b(?:iex|invoke-expression)[\s(&]", r"getstream\(\)", reach=800),
    _near("reverse-shell", ".pipe(", r"\bnet\.(?:socket|connect|createconnection)\b", rf"spawn\([\"'](?:{_SHELL}|cmd)", r"\.stdin\b", reach=600),
    _near("download-and-run", ".downloadstring(", r"\b(?:iex|invoke-expression)[\s(&]", reach=200),
    _bad("encoded-executable", "tvqqaamaaaaeaaaa f0vmrgibaq f0vmrgebaq", r"tvqqaamaaaae[a-z0-9+/]{20}|f0vmrg[ei]baq[a-z0-9+/]{20}"),
    _bad("fork-bomb", ":(){", r":\(\)\{\s{0,4}:\|:&\s{0,4}\};:"),
    _bad("eicar-test-file", "x5o!p%@ap", re.escape("".join(_EICAR)) + r"\$eicar-standard-antivirus"),
)  # fmt: skip


def payloads(source: Source) -> Iterator[SecretHit]:
    for rule in PAYLOADS:
        yield from islice(rule.hits(source), MANY)


def _run(pattern: str) -> re.Pattern[bytes]:
    """One or more of a set of characters, as byte sequences. Written so that `re` knows what a match begins with."""

    def spelled() -> bytes:
        one = _utf8(pattern)
        return one + one + b"*"

    return late_pattern(spelled)


def _utf8(pattern: str) -> bytes:
    found: dict[bytes, list[int]] = {}
    for char in _members(pattern):
        raw = char.encode()
        found.setdefault(raw[:-1], []).append(raw[-1])
    sides = (re.escape(head) + b"[" + re.escape(bytes(sorted(tails))) + b"]" for head, tails in found.items())
    return b"(?:" + b"|".join(sides) + b")"


def _members(pattern: str) -> Iterator[str]:
    for low, high in re.findall(r"(.)(?:-(.))?", pattern.strip("[]")):
        yield from map(chr, range(ord(low), ord(high or low) + 1))


_FLAGS = late_pattern(
    b"|".join(
        "".join(("\U0001f3f4", *(chr(0xE0000 + ord(letter)) for letter in place), "\U000e007f")).encode()
        for place in ("gbeng", "gbsct", "gbwls")
    )
)
"""The three flags that are written with tags."""
_BIDI = _run("[\u202a-\u202e\u2066-\u2069]")
_TAGS = _run("[\U000e0000-\U000e007f]")
_ZERO = _run("[\u200b-\u200d\u2060-\u2064\ufeff\u180e]")
_SELECTORS = _run("[\ufe00-\ufe0f\U000e0100-\U000e01ef]")
_LETTERS = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_")
_LONG = 4
_PIECE = 1 << 16
_REACH = 64
"""A run that is longer than a piece is found in each of them."""


def hidden(source: Source) -> Iterator[SecretHit]:
    content = source.content
    if content.isascii():
        return
    flags = (
        {match.start() + 4 for match in _FLAGS.finditer(content)} if b"\xf0\x9f\x8f\xb4" in content else ()
    )
    for pattern in (_BIDI, _TAGS, _ZERO, _SELECTORS):
        yield from islice(_hits(pattern, content, flags), MANY)


def _hits(pattern: re.Pattern[bytes], content: bytes, flags: Collection[int]) -> Iterator[SecretHit]:
    for match in _pieces(pattern, content):
        rule = _rule(pattern, match)
        if rule and not (pattern is _TAGS and match.start() in flags):
            start, end = match.span()
            yield SecretHit("hidden", rule, start, end, shown(content[start : min(end, start + 24)]))


def _rule(pattern: re.Pattern[bytes], match: re.Match[bytes]) -> str:
    """Joiners count inside a word of plain letters, or where several stand in a row; selectors in a row only."""
    if pattern is _BIDI:
        return "bidi-control"
    if pattern is _TAGS:
        return "tag-characters"
    count = len(match[0].decode("utf-8", "replace"))
    if pattern is _SELECTORS:
        return "variation-selector-run" if count > 1 else ""
    content, start, end = match.string, match.start(), match.end()
    if start > 0 and end < len(content) and content[start - 1] in _LETTERS and content[end] in _LETTERS:
        return "zero-width-in-word"
    return "zero-width-run" if count >= _LONG else ""


def _pieces(pattern: re.Pattern[bytes], content: bytes) -> Iterator[re.Match[bytes]]:
    """Piece by piece, so that one search does not keep every other thread waiting."""
    done = 0
    for begin in range(0, len(content), _PIECE):
        for match in pattern.finditer(content, max(done, begin - _REACH), begin + _PIECE):
            done = match.end()
            yield match
