"""How much of what issuers give out is found, by its name, and how little of what is harmless.

The samples are drawn by a seeded generator (`made.py`), so that a run can be repeated.
"""

from __future__ import annotations

import base64
import random
from pathlib import Path

import pytest

from toolgate.core.paths import MountPath
from toolgate.secrets.scan import ContentScanner

from . import made
from .corpus import GITHUB, PRIVATE_KEY, chars

PATH = MountPath.parse("a.txt")
HARMLESS = [
    *(Path(__file__).parent / "harmless.txt").read_text().splitlines(),
    "aws_access_key_id = AK" + "IAIOSFODNN7" + "EXAMPLE", "aws_secret_access_" + "key = wJalrXUtnFEMI/" + "K7MDENG/bPxRfiCY" + "EXAMPLEKEY",
    "AK" + "IA" + "X" * 16, "GITHUB_TOKEN: gh" + "p_" + "x" * 36, 'slack_token = "xo' + 'xb-your-bot-token-here"',
    "sk" + "_test_function_returns_none_when_empty", 'if header == "-----BEGIN ' + 'PRIVATE KEY-----":',
]  # fmt: skip
"""What looks like a token is put together here, so that no file holds one."""


def rules(text: str) -> set[str]:
    return {one.rule for one in ContentScanner().read(PATH, text.encode()) if one.kind == "secret"}


def share(samples: list[tuple[str, str]]) -> tuple[float, list[tuple[str, str]]]:
    """The part of the lines in which the rule that is due was found, and the others."""
    missed = [(rule, text) for rule, text in samples if rule not in rules(text)]
    return 1 - len(missed) / len(samples), missed


def test_more_than_two_hundred_kinds_are_known_by_name() -> None:
    assert len({rule for rule, _ in made.by_form()} | {rule for rule, *_ in made.by_service()}) >= 200


def test_a_token_of_every_kind_is_found_where_people_write_it() -> None:
    samples = [(rule, form.format(v=value)) for rule, value in made.by_form() for form in made.FORMS]
    part, missed = share(samples)
    assert part > 0.97, f"seed {made.SEED}: {part:.1%} of {len(samples)}: {missed[:5]}"


def test_a_key_of_every_service_is_found_by_the_name_it_is_given_to() -> None:
    forms = ('{n}_key = "{v}"', "{n}_api_key: {v}", "export {N}_KEY={v}", '"{n}Key": "{v}"')
    samples = [
        (rule, form.format(n=name, N=name.upper(), v=value))
        for rule, name, value in made.by_service()
        for form in forms
    ]
    part, missed = share(samples)
    assert part > 0.9, f"seed {made.SEED}: {part:.1%} of {len(samples)}: {missed[:5]}"


def test_a_random_value_is_found_after_a_name_that_means_a_secret_in_every_language() -> None:
    drawn = random.Random(made.SEED)
    values = [made.value_of(shape, drawn) for shape in ("w{24}", "h{40}", "w{32}", "l{30}", "b{43}=")]
    lines = [
        form.format(n=name, N=name.upper(), v=value)
        for form in made.ASSIGNED
        for name in ("orders", "my_app")
        for value in values
    ]
    missed = [line for line in lines if not rules(line)]
    assert len(missed) / len(lines) < 0.05, f"seed {made.SEED}: {missed[:8]}"


def test_a_password_is_found_in_settings_commands_and_addresses() -> None:
    lines = [form.format(v=value) for form in made.PASSWORDS for value in made.chosen()]
    missed = [line for line in lines if not rules(line)]
    assert len(missed) / len(lines) < 0.1, f"seed {made.SEED}: {missed[:8]}"


def test_few_harmless_lines_are_findings() -> None:
    alarms = [(line, rules(line)) for line in HARMLESS if rules(line)]
    assert len(alarms) / len(HARMLESS) <= 0.05, alarms


@pytest.mark.parametrize(
    "text",
    [
        f'a = "{GITHUB[:20]}" + "{GITHUB[20:]}"', f'a = ("{GITHUB[:20]}"\n     "{GITHUB[20:]}")',
        f"$a = '{GITHUB[:18]}' . '{GITHUB[18:30]}' . '{GITHUB[30:]}';", f"a: {base64.b64encode(f'token={GITHUB}'.encode()).decode()}",
    ],
    ids=["sum", "lines", "dots", "base64"],
)  # fmt: skip
def test_a_token_in_pieces_or_in_base64_is_found(text: str) -> None:
    assert rules(text) == {"github-token"}


def test_key_blocks_of_every_kind_are_found() -> None:
    body = "\n".join(chars(64, seed=seed) for seed in range(3))
    blocks = {
        "private-key": ["-----BEGIN " + f"{kind}PRIVATE KEY{end}-----\n{body}\n" for kind, end in (("", ""), ("EC ", ""), ("OPENSSH ", ""), ("PGP ", " BLOCK"))]
        + [base64.b64encode(PRIVATE_KEY.encode()).decode(), "---- BEGIN SSH2 ENCRYPTED " + f"PRIVATE KEY ----\n{body}\n"],
        "putty-private-key": ["PuTTY-User-" + f"Key-File-3: ssh-rsa\nEncryption: none\nPrivate-Lines: 3\n{body}\n"],
        "json-web-key": ['{"kty": "EC", "crv": "P-256", "x": "a", "d": "' + chars(43) + '"}'],
        "kubernetes-secret": [f"apiVersion: v1\nkind: Secret\nmetadata:\n  name: db\ndata:\n  pw: {chars(24)}\n"],
        "age-secret-key": ["AGE-SECRET-" + "KEY-1" + chars(58, "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L")],
    }  # fmt: skip
    for rule, texts in blocks.items():
        for text in texts:
            assert rule in rules(text), (rule, text[:40])
