"""Takes the vault's values out of whatever leaves the gate, in every form; and what a schema declares secret.

Where the vault is empty this costs one look at an attribute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from toolgate.core.conceal import Span, marker, reach
from toolgate.core.late_pattern import late_pattern
from toolgate.core.tool import Tool
from toolgate.secrets.finder import Finder
from toolgate.secrets.mask import SchemaMask, distinct, too_deep
from toolgate.secrets.vault import Vault

MARKER = late_pattern(rb"\[secret:[A-Z][A-Z0-9_]{0,63}\]|\[secret\]|\[masked\]|\[REDACTED\]")
"""What stands where a secret stood."""
_NAME = late_pattern(r"\[secret:([A-Z][A-Z0-9_]{0,63})\]")
TOO_DEEP = "[left out: nested too deeply to be searched for secrets]"
_BIG = 10_000_000
"""A smaller number has too few digits to be a secret."""
Told = Callable[[str, bytes], str]
"""From the name of a secret and what stood there to what stands in its place."""


def _marker(name: str, stood: bytes) -> str:
    return marker(name)


class VaultRedactor(SchemaMask):
    """Implements `core.ports.Redactor`."""

    def __init__(self, key: bytes = b"", vault: Vault | None = None) -> None:
        super().__init__(key)
        self.vault = vault

    @property
    def searches(self) -> bool:
        return self.vault is not None and self.vault.finder is not None

    @property
    def version(self) -> int:
        return self.vault.version if self.vault is not None else 0

    def refresh(self) -> None:
        if self.vault is not None:
            self.vault.refresh()

    def redact(self, value: Any, hidden: tuple[str, ...] = ()) -> Any:
        if self.vault is not None and (finder := self.vault.finder) is not None:
            value = cleaned(finder, value)  # first: a call's own secret may be part of one of these
        return super().redact(value, hidden) if hidden else value

    def mask(self, tool: Tool, args: Mapping[str, Any]) -> Mapping[str, Any]:
        masked = super().mask(tool, args)
        finder = self.vault.finder if self.vault is not None else None
        return masked if finder is None else cleaned(finder, masked)

    def show(
        self, tool: Tool, args: Mapping[str, Any], paths: frozenset[str] = frozenset()
    ) -> Mapping[str, Any]:
        shown = super().show(tool, args)
        clean = self.shown(shown)
        if clean == TOO_DEEP:
            raise too_deep()
        return clean if clean is shown else _with_paths(shown, clean, paths)

    def shown(self, value: Any) -> Any:
        finder = self.vault.finder if self.vault is not None else None
        return value if finder is None else cleaned(finder, value, self._form)

    def _form(self, name: str, stood: bytes) -> str:
        """A part of a value, or the value encoded, is not the value: nobody shall take one for the other."""
        secret = self.vault.get(name) if self.vault is not None else None
        if secret is not None and secret.value.strip().encode("utf-8", "surrogatepass") == stood.strip():
            return marker(name)
        return f"{marker(name)}⟨in another form, fingerprint {self.fingerprint(stood.hex())}⟩"

    def named(self, text: str) -> dict[str, str]:
        """The secrets of the vault whose markers stand in a text, each with the fingerprint of its value."""
        if self.vault is None or "[secret:" not in text:
            return {}
        secrets = ((name, self.vault.get(name)) for name in sorted(set(_NAME.findall(text))))
        return {name: self.fingerprint(secret.value) for name, secret in secrets if secret is not None}

    def seal(self, tool: Tool, args: Mapping[str, Any]) -> tuple[Mapping[str, Any], tuple[str, ...]]:
        sealed, hidden = found = super().seal(tool, args)
        finder = self.vault.finder if self.vault is not None else None
        if finder is None or (clean := cleaned(finder, sealed)) is sealed:
            return found
        # what is left says that a secret stood there, the hash which call it was
        return {**clean, "": "hmac:" + self._keyed(sealed)}, hidden

    def stream(self) -> Stream:
        """For bytes that come in pieces."""
        return Stream(self)


def _with_paths(shown: Any, clean: Any, paths: frozenset[str]) -> Any:
    """With the paths of the call as they are: whoever decides must know which file it is."""
    if isinstance(shown, str):
        return shown if shown in paths else clean
    if isinstance(shown, Mapping):
        return {
            key: _with_paths(item, found, paths)
            for item, (key, found) in zip(shown.values(), clean.items(), strict=True)
        }
    if isinstance(shown, list | tuple):
        return [_with_paths(item, found, paths) for item, found in zip(shown, clean, strict=True)]
    return clean


def cleaned(finder: Finder, value: Any, told: Told = _marker) -> Any:
    """The value without what was found; the very same one where nothing was."""
    if isinstance(value, str):  # by far the most usual
        found = _marked(finder, [value.encode("utf-8", "surrogatepass")], told)
        return value if found is None else found[0].decode("utf-8", "surrogatepass")
    try:
        texts: list[bytes] = []
        keys: list[bytes] = []
        _gather(value, texts, keys)
        if not texts and not keys:
            return value
        found = _marked(finder, texts, told)
        if found is None and (not keys or not finder.spans(b"\x1f".join(keys))):
            return value
        return _rebuilt(finder, value, iter(texts if found is None else found), told)
    except RecursionError:
        return TOO_DEEP


def _gather(value: Any, texts: list[bytes], keys: list[bytes]) -> None:
    """Every text in it, in order, the keys apart: a value that is broken over several texts is found too."""
    if isinstance(value, str):
        texts.append(value.encode("utf-8", "surrogatepass"))
    elif isinstance(value, bytes):
        texts.append(value)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if isinstance(key, str | bytes):
                _gather(key, keys, keys)
            _gather(item, texts, keys)
    elif isinstance(value, list | tuple):
        for item in value:
            _gather(item, texts, keys)
    elif isinstance(value, int | float) and abs(value) >= _BIG:
        texts.append(str(value).encode())


def _marked(finder: Finder, texts: list[bytes], told: Told) -> list[bytes] | None:
    """The texts with markers in them; None where nothing was found."""
    spans = finder.spans(b"\n".join(texts))
    if not spans:
        return None
    made, start, waiting = [], 0, iter(spans)
    span = next(waiting, None)
    for text in texts:
        end = start + len(text)
        inside: list[Span] = []
        while span is not None and span.start < end:
            inside.append(Span(max(span.start - start, 0), min(span.end - start, len(text)), span.name))
            if span.end > end:
                break  # it goes on in the next text
            span = next(waiting, None)
        made.append(_replaced(text, inside, told))
        start = end + 1
    return made


def _replaced(text: bytes, spans: list[Span], told: Told = _marker) -> bytes:
    made, at = [], 0
    for span in spans:
        if span.end > span.start:
            made += [text[at : span.start], told(span.name, text[span.start : span.end]).encode()]
            at = span.end
    return b"".join((*made, text[at:])) if made else text


def _rebuilt(finder: Finder, value: Any, texts: Iterator[bytes], told: Told) -> Any:
    if isinstance(value, str):
        return next(texts).decode("utf-8", "surrogatepass")
    if isinstance(value, bytes):
        return next(texts)
    if isinstance(value, Mapping):
        return distinct(
            (_key(finder, key, told), _rebuilt(finder, item, texts, told)) for key, item in value.items()
        )
    if isinstance(value, list | tuple):
        return [_rebuilt(finder, item, texts, told) for item in value]
    if isinstance(value, int | float) and abs(value) >= _BIG:
        text = next(texts)
        return value if text == str(value).encode() else text.decode()
    return value


def _key(finder: Finder, key: Any, told: Told) -> Any:
    return cleaned(finder, key, told) if isinstance(key, str | bytes) else key


class Stream:
    """Bytes in pieces, with values taken out that begin in one and end in another.

    Holds back as much as the longest value can take in its longest form, and some; `close` gives the rest.
    """

    def __init__(self, redactor: VaultRedactor) -> None:
        self._redactor = redactor
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        self._redactor.refresh()
        vault = self._redactor.vault
        finder = vault.finder if vault is not None else None
        self._held += data
        if finder is None:
            return self._give(len(self._held), [])
        keep = reach(finder)
        if len(self._held) < 2 * keep:  # so that many small pieces do not mean many searches
            return b""
        spans = finder.spans(self._held)
        cut = len(self._held) - keep
        for span in spans:
            if span.start < cut < span.end:
                cut = span.end
        return self._give(cut, [span for span in spans if span.end <= cut])

    def close(self) -> bytes:
        vault = self._redactor.vault
        finder = vault.finder if vault is not None else None
        return self._give(len(self._held), finder.spans(self._held) if finder is not None else [])

    def _give(self, cut: int, spans: list[Span]) -> bytes:
        given, self._held = _replaced(self._held[:cut], spans), self._held[cut:]
        return given
