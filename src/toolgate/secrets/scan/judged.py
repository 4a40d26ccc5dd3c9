"""Whether a value may be a secret: random enough, and not what people write in place of one."""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from operator import ne

from toolgate.core.late_pattern import late_pattern

MIN_ENTROPY = 2.75
_MIN_DIFFERENT = 7
_STAND_INS = late_pattern(
    rb"example|sample|secret|setting|stuvwx|s3cr3t|p(?:laceholder|assw(?:or)?d)|change[_-]?(?:me|it|this)|config|d(?:ummy|efault)|"
    rb"f(?:ake|oobar)|your|insert|redacted|masked|xxxx|t(?:odo|est|oken)|n(?:one|ull)|undefined|localhost|en(?:viron|crypted|coded)|"
    rb"getenv|a(?:bcdefgh|sdf)|h(?:ijklmn|ello|unter2)|12345678|01234567|qwerty|\.\.\."
)
"""Words that people write instead of a secret. Each begins with a letter, so that `re` finds quickly where none does."""
_SIGNS = b"$<>{}[]()%#\\+*_"
_TEMPLATE = late_pattern(
    rb"[x*]{4}|\A<[^<>]*>\Z|\$\{?[a-z_][a-z0-9_.:-]*\}?\Z|\$\{\{|\$\(|\{\{ ?[\w.$|\" -]+ ?\}\}|\$\{[\w.:-]+\}|\A\{[\w.:]*\}\Z|(?<!\{)\{[a-z_][\w.]*(?:\([^()]*\))?\}|%\([a-z]|"
    rb"\A%[a-z0-9_.]+%?\Z|\A\[[^\]]*\]\Z|\A__?[a-z_]+__?\Z|#\{|<[a-z_][\w /.-]*>|"
    rb"\[[a0]-[z9]|\(\?|\.[+*]|\\[dws]|%[sdr]\b"
)
"""What has a sign that is in no word: only looked for where there is one."""
_ALGORITHM = late_pattern(
    rb"(?:utf-?(?:8|16|32)\w*|latin-?1|base(?:16|32|64)\w*|pbkdf2\w*|sha-?\d{1,3}\w*|md5\w*|[a-z]s\d{3}|aes-?\d*\S*|iso-?8859\S*|"
    rb"urllib\d?|bcrypt|argon2\w*|scrypt|http/?\d?|oauth-?\d\w*|ed25519|x25519|secp\w+|rsa-?\d*)\Z"
)
_TOKEN_STAND_INS = late_pattern(rb"example|x{6}|\*{4}|0{10}|abcdefghij|1234567890123")
_SAME = late_pattern(rb"(.)\1{12}")
_JUDGED = 150
"""How much of a long value is judged: what it begins with says enough."""
_CODE = late_pattern(
    rb"[\w.:>-]*[\w>][\[(]|[&*!@(\[<]|[a-z_]\w*(?:(?:\.|->|::)[a-z_]\w*)+\Z|\w+://|\.{0,2}/", re.IGNORECASE
)
_CODE_END = late_pattern(rb"[\]);][:,]?\Z")


def _made_of(part: bytes) -> re.Pattern[bytes]:
    """Nothing but such parts, with signs between them. A part is not tried twice."""
    return late_pattern(rb"(?:[-_./:+=\\ ]++|(?>(?:" + part + rb")(?=[-_./:+=\\ ]|\Z)))*+\Z")


_WORDY = _made_of(rb"(?:[A-Z]?[a-z]+|[A-Z]+)(?:[0-9]{0,4}|[0-9]{1,2}[a-z]{3,})|[0-9]+[A-Za-z]{0,2}")
_NAMED = _made_of(rb"[A-Z]?[a-z]+|[A-Z]+|[0-9]{1,3}")
_HUMPS = late_pattern(rb"(?:[A-Z]|(?<![A-Za-z0-9]))(?=[a-z]{0,3}[aeiou])[a-z]{2,}")
_HEX = late_pattern(
    rb"[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64}|[0-9a-f]{96}|[0-9a-f]{128}|[0-9A-F]{32}|[0-9A-F]{40}|[0-9A-F]{64}"
)
UUID = late_pattern(rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
_LETTER = bytes(65 <= byte < 91 or 97 <= byte < 123 for byte in range(256))
_KIND = bytes(
    1 if 48 <= byte < 58 else 2 if 65 <= byte < 91 else 3 if 97 <= byte < 123 else 4 for byte in range(256)
)


_BITS = (0.0, *(count * math.log2(count) for count in range(1, 512)))


def entropy(value: bytes) -> float:
    """Bits in each character, by how often each occurs."""
    size = len(value)
    if size >= len(_BITS):
        value, size = value[: len(_BITS) - 1], len(_BITS) - 1
    return (_BITS[size] - sum(map(_BITS.__getitem__, map(value.count, set(value))))) / size


def real(body: bytes) -> bool:
    """The rest of a token: not a row of x nor a sequence, which is how people write "your token here"."""
    plain = body[:_JUDGED].rstrip(b"=")
    if len(set(plain)) < min(7, len(plain) // 2):
        return False
    kinds = set(plain.translate(_KIND))
    return not kinds <= {3, 4} and not kinds <= {2, 4} and not _stand_in(plain.lower()) and not _named(plain)


def _stand_in(value: bytes) -> bool:
    return _TOKEN_STAND_INS.search(value) is not None or _SAME.search(value) is not None


def _named(value: bytes) -> bool:
    """Made of nothing but words: where a prefix speaks for a token, only that speaks against it."""
    return _NAMED.match(value) is not None or _in_humps(value, 0.85)


def _in_humps(value: bytes, share: float) -> bool:
    """`mostlyWordsWithACapital`: that share of the letters."""
    humps = sum(map(len, _HUMPS.findall(value)))
    return humps > 0 and not value.islower() and humps >= share * sum(value.translate(_LETTER))


def wordy(value: bytes) -> bool:
    """Made of words and numbers, as names of things are."""
    return _WORDY.match(value) is not None or _in_humps(value, 0.65)


def scrambled(value: bytes) -> bool:
    """Small letters, capitals, digits and signs change places often, as in no name."""
    kinds = value.translate(_KIND)
    changes: int = sum(map(ne, kinds, kinds[1:]))
    return changes * 4 > len(value)


def hash_like(value: bytes) -> bool:
    return _HEX.fullmatch(value) is not None or UUID.fullmatch(value) is not None


def placeholder(value: bytes) -> bool:
    if len(set(value)) < 4:
        return True
    folded = value[:_JUDGED].lower()
    if _STAND_INS.search(folded) or _ALGORITHM.match(folded):
        return True
    return len(folded.translate(None, _SIGNS)) < len(folded) and _TEMPLATE.search(folded) is not None


def code(value: bytes) -> bool:
    """A call, a name with dots, a path: what stands for a value, and is none."""
    return _CODE.match(value) is not None or _CODE_END.search(value, max(0, len(value) - 2)) is not None


def random_looking(value: bytes) -> bool:
    """Letters and digits without a pattern, and none of the words that people write instead of a secret."""
    if len(set(value)) < _MIN_DIFFERENT:
        return False  # it cannot have that entropy
    kinds = set(value.translate(_KIND))
    mixed = 1 in kinds and (2 in kinds or 3 in kinds)
    return mixed and not placeholder(value) and entropy(value) >= MIN_ENTROPY and not wordy(value)


def password_like(value: bytes) -> bool:
    """What people choose themselves: two kinds of characters, of which letters are one, and no known stand-in."""
    kinds = set(value.translate(_KIND))
    if not kinds & {2, 3} or len(kinds) < 2 or len(set(value)) < 5 or placeholder(value):
        return False
    if 1 in kinds and len(value) < 10:
        return True
    return not wordy(value) and (kinds != {2, 3} or scrambled(value))


def has_jwt_header(value: bytes) -> bool:
    """Or else all three parts, of which two are JSON."""
    if value.count(b".eyJ") and value.count(b".") >= 2:
        return True
    head = value.split(b".", 1)[0].rstrip(b"=")
    try:
        header = base64.urlsafe_b64decode(head + b"=" * (-len(head) % 4))
    except (binascii.Error, ValueError):
        return False
    try:
        return isinstance(json.loads(header), dict)
    except ValueError:
        return False
