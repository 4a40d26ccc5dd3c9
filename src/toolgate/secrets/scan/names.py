"""Names that say that a secret follows: how surely, and of which service, whose keys have no form of their own."""

from __future__ import annotations

import re
from functools import cache, lru_cache

from toolgate.core.late_pattern import late_pattern
from toolgate.secrets.scan.kinds import pattern_of

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


# What a service's key looks like, for where its name says whose it is. A row is a word that the name has, and what the value
# is like, with the alphabets of `kinds.ALPHABETS`. Our own table of public facts.
_ROWS = r"""
ably W{6}\.W{6}:W{43}|W{22}
abuseipdb h{80}
adafruit W{32}
adobe h{32}
agora h{32}
airtable w{17}
algolia l{32}
alibaba w{30}
aliyun w{30}
amplitude h{32}
asana d{16}|l{32}|d{1}/d{16}:h{32}
assemblyai h{32}
atlassian w{20}h{4}
auth0 W{32,64}
azure_?openai h{32}|w{84}
beamer b_[A-Za-z0-9=_-]{44}
binance w{64}
bitbucket w{32}|[A-Za-z0-9=_-]{64}
bitfinex w{43}
bittrex l{32}
bugsnag h{32}
circleci h{40}
cloudant h{64}|[a-z]{24}
cloudflare W{40}|h{37}
cloudinary W{27}
codecov l{32}|UUID
cohere w{40}
coinbase W{16,64}
confluence w{20}h{4}
confluent b{64}|w{16}
contentful [A-Za-z0-9=_-]{43,64}
coveralls w{32,36}
datadog h{32}|h{40}|w{40}
deepgram h{40}
deepl UUID(?::fx)?
discord h{64}|d{17,19}|[A-Za-z0-9=_-]{32}
docusign UUID|h{32}
droneci l{32}
dropbox l{15}|w{11}A{10}[A-Za-z0-9=_-]{43}
elevenlabs h{32}
etherscan u{34}
etsy l{24}
facebook h{32}
fastly [A-Za-z0-9=_-]{32}
finicity h{32}|w{20}
finnhub l{20}
flickr h{32}|l{16}|l{32}
freshbooks l{64}
giphy w{32}
gitter W{40}
gocardless (?:live|sandbox)_[A-Za-z0-9=_-]{40}
heroku UUID
hetzner w{64}
honeybadger w{20,40}
hubspot UUID
ibm W{44}
imgur h{40}
infura h{32}
intercom [A-Za-z0-9=_-]{60}
ipstack h{32}
jfrog w{73}|w{64}
artifactory w{73}|w{64}
jira w{20}h{4}
kraken [A-Za-z0-9/=_+-]{56,90}
kucoin h{24}|UUID
launch_?darkly [A-Za-z0-9=_-]{40}
linear h{32}
linked_?in w{14}|w{16}
linode h{64}
lob (?:live|test)_(?:h{35}|pub_h{31})
logdna h{32}
loggly UUID
looker w{20}|w{24}
mailchimp h{32}(?:-usd{1,2})?
mailgun h{32}-h{8}-h{8}|(?:pub)?key-h{32}
mattermost l{26}
meraki h{40}
message_?bird w{25}|UUID
mistral w{32}
mixpanel h{32}
netlify [A-Za-z0-9=_-]{40,46}
new_?relic w{64}|w{40}
newsapi h{32}
ngrok w{40,50}|w{27}_w{21}
ny_?times [A-Za-z0-9=_-]{32}
okta 00[A-Za-z0-9_=-]{40}
openweather h{32}
opsgenie UUID
pagerduty [A-Za-z0-9+_-]{20}|h{32}
plaid h{24}|h{30}|l{24}|l{30}
postmark UUID
private_?ai l{32}
pusher h{20}
rapidapi [A-Za-z0-9_-]{50}
rollbar h{32}
scaleway UUID
segment w{32}
sendbird UUID|h{40}
sentry h{64}
shodan w{32}
sidekiq h{8}:h{8}
contribsys h{8}:h{8}
snyk UUID
softlayer l{64}
sonar (?:sq[upa]_)?[A-Za-z0-9=_-]{40}
sourcegraph H{40}
splunk UUID
spotify h{32}
squarespace UUID
steam u{32}
strava h{40}
sumo su[A-Za-z0-9]{12}|w{64}
telegram d{5,16}:[Aa]W{34}
travis w{22}
trello h{32}|w{32}
twilio h{32}
twitch l{30}
twitter w{25}|w{45}|w{50}|d{15,25}-w{20,40}
vercel w{24}
virustotal h{64}
vultr u{36}
wandb h{40}
yandex YC[A-Za-z0-9_-]{38}
zendesk w{40}
"""
SHAPES = dict(row.split(" ", 1) for row in _ROWS.strip().split("\n"))
_WORDS = late_pattern(f"(?:\\A|_)({'|'.join(SHAPES)})".encode())
_BY_TEXT = {word.replace("_?", ""): word for word in SHAPES}


@cache
def _shape(word: str) -> re.Pattern[bytes]:
    return re.compile(pattern_of(SHAPES[word]).encode(), 0 if word == "okta" else re.IGNORECASE)


def service_of(name: bytes, value: bytes) -> str:
    """The service whose name is in this one and whose keys are like this value, or nothing."""
    for found in _WORDS.finditer(words_of(name)):
        word = _BY_TEXT[found[1].replace(b"_", b"").decode()]
        if _shape(word).fullmatch(value):
            return word.replace("_?", "-")
    return ""
