"""Which names mean that a secret follows, and how surely."""

from __future__ import annotations

from functools import lru_cache

from toolgate.core.late_pattern import late_pattern

NONE, WEAK, STRONG, PASSWORD = range(4)
_HUMP = late_pattern(rb"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_APART = late_pattern(rb"[^A-Za-z0-9]+")
_PASSWORD = late_pattern(
    rb"passw(?:or)?d|passphrase|passwort|contrase|pwd|bindpw|(?:_|\A)(?:db|key|store|user|sql|root|admin|my|smtp|mail|ftp|ssh)?(?:pass|pw)(?:_|\Z)"
)
_STRONG = late_pattern(
    rb"secret|token|(?:api|access|auth|priv|private|account|service|client|encryption|signing|master|db|database|shared|hmac|iam|cloud)_?key|"
    rb"credential|(?:_|\A)creds?(?:_|\Z)"
)
_WEAK = late_pattern(
    rb"key(?:_|\Z)|(?:_|\A)(?:api|auth|access|authorization|bearer|jwt|session|salt)(?:_|\Z)|auth\Z"
)
_NEVER = late_pattern(
    rb"(?:_|\A)(?:public|pub|csrf|xsrf|primary|foreign|partition|sort|cache|publishable|fingerprint|next|page|continuation|"
    rb"idempotency|sha|sha1|sha256|sha512|md5|integrity|etag|digest|checksum|hash|commit_sha|commit_id|natural|schema|sequence|bucket|license)(?:_|\Z)|"
    rb"keyboard|keyword|hotkey|monkey|tokeniz|accessor|accessib|forgery|author(?!iz)|capital|rapid_?ly|issuerkeyhash|"
    rb"key_?(?:vault|store_?(?:file|path|type)|tab|frame|code|press|up|down|left|right|board|ring|stone|pair_?name|id)"
)
_PUBLIC = late_pattern(
    rb"pubkey|nonce|signature|(?:_|\A)(?:sig|mac|cursor|data|cert|certificate|image|icon|sha\d*|md5|uuid|src|href|body|content|payload)(?:_|\Z)"
)
_NOT_AT_THE_END = frozenset(
    b"""alg algorithm alias arg arn at attr audience bits class code column confirmation count date description dir disabled
    enabled endpoint env error exp expires expiry extension field file filename format header help hint host id ids index input issuer
    key_id kind label len length limit list location max message min mode msg name names option param params path pattern placeholder
    policy port prefix provider re ref regex region required scope scopes selector size source state status suffix table template text
    time title ttl type types uri url usage user username validator var variable version""".split()
)


@lru_cache(4096)
def words_of(name: bytes) -> bytes:
    """A name in small letters, with _ between its words, however it was written."""
    return _APART.sub(b"_", _HUMP.sub(b"_", name)).strip(b"_").lower()


def harmless(name: bytes) -> bool:
    """It says that what follows is public: a hash, a signature, an identifier."""
    words = words_of(name)
    return words.rsplit(b"_", 1)[-1] in _NOT_AT_THE_END or bool(_NEVER.search(words) or _PUBLIC.search(words))


@lru_cache(4096)
def meaning(name: bytes) -> int:
    """How surely what this names is a secret: not at all, perhaps, surely, or a password that somebody chose."""
    words = words_of(name)
    if not words or words.rsplit(b"_", 1)[-1] in _NOT_AT_THE_END or _NEVER.search(words):
        return NONE
    if _PASSWORD.search(words):
        return PASSWORD
    if _STRONG.search(words):
        return STRONG
    return WEAK if _WEAK.search(words) else NONE
