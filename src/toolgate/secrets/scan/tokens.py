"""Secrets that can be told by their form: the prefixes that issuers give their tokens so that they can be found.

Our own table and no library's: see docs/scan.md for what was tried and why. Patterns are written in pieces where one of them
would otherwise match itself.
"""

from __future__ import annotations

from toolgate.secrets.scan.rules import Token, token

_PLACEHOLDER = frozenset(b"xX0*.-_ ")


_TWILIO = " ".join("SK" + digit for digit in "0123456789abcdef")
"""So that only what can be one is looked at twice."""


def real(value: bytes) -> bool:
    """Not a row of x: that is how people write "your token here"."""
    return not _PLACEHOLDER.issuperset(value[len(value) // 2 :])


def _plain(name: str, anchors: str, pattern: str) -> Token:
    return token(name, anchors, pattern, check=real)


TOKENS: tuple[Token, ...] = (
    _plain("aws-access-key", "AKIA ASIA ABIA ACCA", r"(?<![A-Za-z0-9])A(?:KI|SI|BI|CC)A[A-Z0-9]{16}(?![A-Za-z0-9])"),
    token(
        "aws-secret-key",
        "aws_secret aws-secret awssecret secret_access_key secretaccesskey secret-access-key aws_session_token",
        r"(?:aws[_-]?secret|secret[_-]?access[_-]?key|aws_session_token)[a-z0-9_.-]{0,30}+[\"']?\s{0,4}+(?:=>|:=|=|:)\s{0,4}+"
        r"[\"']?([a-z0-9/+]{40})(?![a-z0-9/+=])",
        folded=True, check=real,
    ),
    _plain("github-token", "ghp_ gho_ ghu_ ghs_ ghr_", r"gh[pousr]_[A-Za-z0-9]{36,255}"),
    _plain("github-token", "github_pat_", r"github_pat_[A-Za-z0-9_]{40,255}"),
    _plain("gitlab-token", "glpat- gldt- glrt- glptt- glcbt- glsoat- gloas- glft-", r"gl[a-z]{2,4}-[A-Za-z0-9_.-]{20,255}"),
    _plain("slack-token", "xoxa- xoxb- xoxe- xoxp- xoxr- xoxs- xoxc- xoxd-", r"xox[abceprsd]-[A-Za-z0-9%-]{10,255}"),
    _plain("slack-token", "xapp-", r"xapp-\d-[A-Za-z0-9]{6,20}-\d{6,20}-[a-f0-9]{32,128}"),
    _plain("slack-webhook", "hooks.slack.com/", r"hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9/]{24,255})"),
    _plain("stripe-key", "sk_live_ rk_live_ sk_test_ rk_test_", r"[rs]k_(?:live|test)_[A-Za-z0-9]{16,255}"),
    _plain("stripe-webhook-secret", "whsec_", r"whsec_[A-Za-z0-9+/=]{24,255}"),
    _plain("google-api-key", "AIza", r"(?<![A-Za-z0-9_-])AIza[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])"),
    _plain("google-oauth-secret", "GOCSPX-", r"GOCSPX-[A-Za-z0-9_-]{28}"),
    _plain("google-oauth-token", "ya29.", r"(?<![A-Za-z0-9])ya29\.[A-Za-z0-9_-]{30,1000}"),
    _plain("anthropic-key", "sk-ant-", r"sk-ant-[A-Za-z0-9_-]{20,255}"),
    _plain("openai-key", "sk-proj- sk-svcacct- sk-admin-", r"sk-(?:proj|svcacct|admin)-[A-Za-z0-9_-]{20,255}"),
    _plain("openai-key", "sk-", r"(?<![A-Za-z0-9_-])sk-[A-Za-z0-9]{40,64}(?![A-Za-z0-9_-])"),
    _plain("openrouter-key", "sk-or-", r"sk-or-(?:v\d-)?[a-f0-9]{32,128}"),
    _plain("huggingface-token", "hf_", r"(?<![A-Za-z0-9_])hf_[A-Za-z0-9]{34,40}(?![A-Za-z0-9])"),
    _plain("groq-key", "gsk_", r"(?<![A-Za-z0-9_])gsk_[A-Za-z0-9]{48,60}(?![A-Za-z0-9])"),
    _plain("replicate-token", "r8_", r"(?<![A-Za-z0-9_])r8_[A-Za-z0-9]{37,40}(?![A-Za-z0-9])"),
    _plain("npm-token", "npm_", r"(?<![A-Za-z0-9_])npm_[A-Za-z0-9]{36}(?![A-Za-z0-9])"),
    _plain("pypi-token", "pypi-AgEI", r"pypi-AgEI[A-Za-z0-9_-]{50,1000}"),
    _plain("docker-token", "dckr_pat_ dckr_oat_", r"dckr_[po]at_[A-Za-z0-9_-]{20,255}"),
    _plain("sendgrid-key", "SG.", r"(?<![A-Za-z0-9_])SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}"),
    _plain("twilio-key", _TWILIO, r"(?<![A-Za-z0-9])SK[0-9a-f]{32}(?![A-Za-z0-9])"),
    _plain("shopify-token", "shpat_ shpca_ shppa_ shpss_", r"shp(?:at|ca|pa|ss)_[A-Fa-f0-9]{32}"),
    _plain("digitalocean-token", "dop_v1_ doo_v1_ dor_v1_", r"do[opr]_v1_[a-f0-9]{64}"),
    _plain("databricks-token", "dapi", r"(?<![A-Za-z0-9])dapi[a-f0-9]{32}(?:-\d)?(?![A-Za-z0-9])"),
    _plain("telegram-token", ":AA", r"(?<=\d{8}):AA[A-Za-z0-9_-]{33}(?![A-Za-z0-9_-])"),
    _plain("discord-webhook", "/api/webhooks/", r"/api/webhooks/\d{15,20}/([A-Za-z0-9_-]{60,90})"),
    _plain("azure-storage-key", "AccountKey=", r"AccountKey=([A-Za-z0-9+/]{86}==)"),
    _plain("hashicorp-vault-token", "hvs. hvb. hvr.", r"(?<![A-Za-z0-9])hv[sbr]\.[A-Za-z0-9_-]{24,255}"),
    _plain("terraform-token", ".atlasv1.", r"(?<=[A-Za-z0-9]{14})\.atlasv1\.[A-Za-z0-9_=-]{60,80}"),
    _plain("grafana-token", "glsa_ glc_", r"gl(?:sa_[A-Za-z0-9]{32}_[A-Fa-f0-9]{8}|c_[A-Za-z0-9+/]{40,400})"),
    _plain("linear-key", "lin_api_", r"lin_api_[A-Za-z0-9]{40}"),
    _plain("notion-token", "ntn_", r"(?<![A-Za-z0-9_])ntn_[A-Za-z0-9]{40,60}"),
    _plain("figma-token", "figd_", r"figd_[A-Za-z0-9_-]{40,60}"),
    _plain("postman-key", "PMAK-", r"PMAK-[A-Fa-f0-9]{24}-[A-Fa-f0-9]{34}"),
    _plain("new-relic-key", "NRAK-", r"NRAK-[A-Z0-9]{27}"),
    _plain("sentry-token", "sntrys_ sntryu_", r"sntry[su]_[A-Za-z0-9+/=_-]{40,400}"),
    _plain("doppler-token", "dp.pt. dp.st. dp.sa.", r"dp\.(?:pt|st|sa)\.[A-Za-z0-9._-]{40,60}"),
    _plain("planetscale-token", "pscale_tkn_ pscale_pw_", r"pscale_(?:tkn|pw)_[A-Za-z0-9=._-]{32,64}"),
    _plain("atlassian-token", "ATATT3", r"ATATT3[A-Za-z0-9_=-]{60,255}"),
    _plain("square-token", "sq0csp- sq0atp-", r"sq0(?:csp|atp)-[A-Za-z0-9_-]{22,43}"),
    _plain("age-secret-key", "AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[A-Z0-9]{58}"),
    _plain("jwt", "eyJ", r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{14,}\.eyJ[A-Za-z0-9_-]{14,}\.[A-Za-z0-9_-]{16,}"),
)  # fmt: skip
