"""What is said about a program before it runs: the obvious is seen, the ordinary is not complained about."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgate.secrets.advice import MAX_ADVICE, advise

SEEN = [
    ("python", "print(get_secret('A'))", "`print`"),
    ("python", "key = get_secret('A')\nprint('key is', key)", "line 2: `print`"),
    ("python", "key = get_secret('A')\nline = f'Bearer {key}'\noutput({'k': line})", "line 3: `output`"),
    ("python", "import base64\nk = base64.b64encode(get_secret('A').encode())\nprint(k)", "line 3"),
    ("python", "k = get_secret('A')\nraise ValueError(k)", "raises an error"),
    ("python", "open('/proc/self/environ').read()", "/proc"),
    ("python", "import os\nos.read(3, 100)", "descriptor 3"),
    ("python", "import os\nos.fdopen(3)", "descriptor 3"),
    ("javascript", "console.log(await getSecret('A'))", "`log`"),
    ("javascript", "const k = await getSecret('A');\nconsole.error(k);", "line 2: `error`"),
    ("javascript", "const k = await getSecret('A'); output({k});", "`output`"),
    ("javascript", "const k = await getSecret('A');\nconsole.log(`key ${k}`);", "line 2"),
    ("javascript", "Deno.readTextFileSync('/proc/self/environ')", "/proc"),
    ("javascript", "fs.readSync(3, buffer)", "descriptor 3"),
]
FINE = [
    ("python", "key = get_secret('A')\nanswer = fetch_with_auth('https://a.org', key)\nprint(answer)"),
    ("python", "print('get_secret is a function')\nopen('/work/a.txt').read()"),
    ("python", "this is no Python"),
    (
        "javascript",
        "const k = await getSecret('A');\nconst r = await fetchWithAuth(u, k);\nconsole.log(r.status)",
    ),
    ("javascript", "// console.log(getSecret('A'))\nconsole.log('getSecret')"),
    ("shell", "echo $TOKEN"),
]


@pytest.mark.parametrize(("language", "code", "said"), SEEN)
def test_what_shows_a_secret_or_reaches_too_far_is_said(language: str, code: str, said: str) -> None:
    assert any(said in sentence for sentence in advise(language, code)), advise(language, code)


@pytest.mark.parametrize(("language", "code"), FINE)
def test_a_program_that_only_uses_a_secret_hears_nothing(language: str, code: str) -> None:
    assert advise(language, code) == []


@given(st.sampled_from(["python", "javascript"]), st.text())
def test_no_program_breaks_it(language: str, code: str) -> None:
    assert len(advise(language, code)) <= MAX_ADVICE


@pytest.mark.parametrize(
    "piece", ["(", "'", "`", "\\`", "/*", "log(getSecret ", "${", "a+", "[", "x=get_secret(\n"]
)
@pytest.mark.parametrize("language", ["python", "javascript"])
def test_a_hostile_program_takes_no_time(language: str, piece: str) -> None:
    begun = time.process_time()
    advise(language, (piece * 200_000)[:200_000])
    assert time.process_time() - begun < 5
