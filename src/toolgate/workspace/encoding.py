"""Which encoding bytes are in that are neither UTF-8 nor marked.

A detector tells languages apart by their sentences, and source files have few of them: where it is not sure, the
bytes themselves decide. Letters of Western Europe stand alone, or by twos within a word of ASCII letters; characters
of two bytes do not.
"""

from __future__ import annotations

import codecs
import re
import unicodedata

_WESTERN = "cp1252"
_WIDE = ("cp932", "euc_jp", "gb18030", "big5", "cp949")
_HIGH = re.compile(rb"[\x80-\xff]")
_LETTER = re.compile(rb"(?<![\x80-\xff])[\x80-\xff](?![\x80-\xff])|(?<=[A-Za-z])[\x80-\xff]{2}(?=[A-Za-z])")
_KANA = re.compile(rb"[\x82\x83][\x40-\xfc]")
"""In cp932, whose second bytes may be ASCII letters."""
_BEYOND = re.compile(rb"[\x80-\x9f]")
"""Letters and signs in cp1252, and in ISO 8859-1 nothing that is ever written."""
_SURE = 0.1
"""Below this the detector's word is worth less than how the bytes stand."""


def guess(sample: bytes) -> str | None:
    """None where nothing fits."""
    import chardet  # most files are UTF-8 and need no guess

    told = chardet.detect(sample, encoding_era=chardet.EncodingEra.MODERN_WEB)
    found = told["encoding"]
    if found is None or told["confidence"] < _SURE:
        found = _by_bytes(sample) or found
    if found is None or not _fits(sample, found):
        return None
    if _fits(sample, _WESTERN) and sample.decode(found) == sample.decode(_WESTERN):
        # the narrower of the two: what is written into the file later may not need the wider one
        found = _WESTERN if _BEYOND.search(sample) else "iso8859_1"
    return codecs.lookup(found).name


def _by_bytes(sample: bytes) -> str | None:
    high = len(_HIGH.findall(sample))
    kana = len(_KANA.findall(sample)) >= high / 4
    if not kana and sum(map(len, _LETTER.findall(sample))) >= high / 2:
        return _WESTERN if _fits(sample, _WESTERN) else None
    return next((name for name in _WIDE if _fits(sample, name) and _is_wide(sample.decode(name))), None)


def _fits(sample: bytes, encoding: str) -> bool:
    try:
        sample.decode(encoding)
    except (UnicodeDecodeError, LookupError):
        return False
    return True


def _is_wide(text: str) -> bool:
    """Whether all that is not ASCII is of the width that the scripts of East Asia have."""
    return all(unicodedata.east_asian_width(char) in "WF" for char in text if not char.isascii())
