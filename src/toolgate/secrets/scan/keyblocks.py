"""Keys that are written as blocks: PEM, OpenPGP, SSH, PuTTY, JSON web keys, and the data of a Kubernetes Secret."""

from __future__ import annotations

from collections.abc import Iterator

from toolgate.core.late_pattern import late_pattern
from toolgate.secrets.scan.judged import placeholder
from toolgate.secrets.scan.rules import SecretHit, Source, following, shown

_HEADER = late_pattern(rb"BEGIN (?:[A-Z0-9]{1,12} ){0,4}PRIVATE KEY(?: BLOCK)? ?-{4,5}")
_BODY = late_pattern(rb"[A-Za-z0-9+/=]{40}")
_PIECE = late_pattern(rb"[A-Za-z0-9+/=]{16,}")
_KEY_BYTES = 16_000
_PUTTY_BODY = late_pattern(rb"Private-Lines: \d{1,4}\r?\n((?:[A-Za-z0-9+/=]{1,80}\r?\n?){1,100})")
_JWK_PRIVATE = late_pattern(rb"\"(?:d|k)\"\s{0,4}:\s{0,4}\"([A-Za-z0-9_-]{20,1500})\"")
_AROUND = 3000
_SECRET_KIND = late_pattern(rb"kind:[ \t]{0,4}[\"']?secret[\"']?[ \t]{0,4}(?:\r?\n|$)")
_DATA = late_pattern(rb"(?:^|\n)[ \t]{0,8}data:[ \t]{0,4}\r?\n((?:[ \t]{1,12}[^\n]{0,2000}\n?){1,40})")
_ENTRY = late_pattern(
    rb"[ \t]{1,12}[\"']?([\w.-]{1,64})[\"']?:[ \t]{0,4}(?:[|>][+-]?[ \t]{0,4}\r?\n[ \t]{1,16})?[\"']?([A-Za-z0-9+/]{10,2000}={0,2})[\"']?[ \t]{0,4}(?:\r?\n|$)"
)


def key_blocks(source: Source) -> Iterator[SecretHit]:
    yield from private_keys(source.content)
    yield from _putty(source.content)
    yield from _web_keys(source.content)


def private_keys(content: bytes) -> Iterator[SecretHit]:
    """A header with a body: the header alone is only talk about keys."""
    at = content.find(b"BEGIN ")
    while at >= 0:
        header = (
            _HEADER.match(content, at) if content[max(0, at - 5) : at].endswith((b"----", b"---- ")) else None
        )
        if header is not None and _BODY.search(content, header.end(), header.end() + 400):
            start, body = max(0, at - 5), header.end()
            end = content.find(b"---END", body, body + _KEY_BYTES)
            end = min(len(content), body + _KEY_BYTES) if end < 0 else end
            yield _block("private-key", content, (start, body), (body, end))
            at = end - 1  # a key is not looked for inside another
        at = following(content, b"BEGIN ", at + 1)


def _block(rule: str, content: bytes, head: tuple[int, int], body: tuple[int, int]) -> SecretHit:
    pieces = tuple(match[0] for match in _PIECE.finditer(content, *body))
    start, end = head
    return SecretHit("secret", rule, start, end, shown(content[start:end]), pieces, start, body[1])


def _putty(content: bytes) -> Iterator[SecretHit]:
    at = content.find(b"PuTTY-User-Key-File-")
    while at >= 0:
        body = _PUTTY_BODY.search(content, at, at + _KEY_BYTES)
        if body is not None:
            yield _block("putty-private-key", content, (at, at + 22), body.span(1))
        at = following(
            content, b"PuTTY-User-Key-File-", body.end() if body is not None else at + _KEY_BYTES // 2
        )


def _web_keys(content: bytes) -> Iterator[SecretHit]:
    """A JSON web key with its private part (`d`), or a shared one (`k`)."""
    at = content.find(b'"kty"')
    reached = 0
    while at >= 0:
        private = _JWK_PRIVATE.search(content, max(reached, at - _AROUND), at + _AROUND)
        if private is not None:
            reached = private.end()
            start, end = private.span(1)
            yield SecretHit(
                "secret", "json-web-key", start, end, f"…({end - start} characters)", (private[1],)
            )
        at = following(content, b'"kty"', at + _AROUND // 2 if private is None else max(reached, at + 5))


def kubernetes_secrets(source: Source) -> Iterator[SecretHit]:
    """The values of `data:` in the document that says `kind: Secret`."""
    at = source.folded.find(b"kind:")
    reached = 0
    while at >= 0:
        step = 5
        if _SECRET_KIND.match(source.folded, at):
            low = max(reached, source.folded.rfind(b"\n---", max(0, at - _AROUND), at), at - _AROUND)
            high = source.folded.find(b"\n---", at, at + _AROUND)
            high = at + _AROUND if high < 0 else high
            block = _DATA.search(source.content, low, high)
            for entry in _ENTRY.finditer(source.content, *block.span(1)) if block is not None else ():
                start, end = entry.span(2)
                if not placeholder(entry[2]):
                    excerpt = f"{shown(entry[1])}: …({end - start} characters)"
                    yield SecretHit("secret", "kubernetes-secret", start, end, excerpt, (entry[2],))
            reached = block.end() if block is not None else reached
            step = 5 if block is not None else _AROUND // 2
        at = following(source.folded, b"kind:", max(reached, at + step))
