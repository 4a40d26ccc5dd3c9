"""The config that git reads: ours. Of the repository's own, only the settings of form that say how its files are kept.

They are looked for with a line parser, not with git: no include is followed, no value is more than a word of a list.
"""

from __future__ import annotations

from toolgate.workspace.git.locate import Place

_FORM = {
    "autocrlf": ("true", "false", "input"),
    "eol": ("lf", "crlf", "native"),
    "filemode": ("true", "false"),
    "symlinks": ("true", "false"),
    "ignorecase": ("true", "false"),
    "precomposeunicode": ("true", "false"),
}
_SPELLED = {
    "yes": "true",
    "on": "true",
    "1": "true",
    "no": "false",
    "off": "false",
    "0": "false",
    "": "false",
}
"""As git takes them, too; a name alone is true."""
_LIMIT = 1 << 20
_LONGEST = 1024
"""What of a line is looked at: one with a word of form is short."""
_OWN = """\
[core]
	repositoryformatversion = %d
	bare = false
	quotePath = true
	commitGraph = true
	multiPackIndex = false
	hooksPath = /dev/null
	attributesFile = /dev/null
	excludesFile = /dev/null
	fsmonitor = false
	pager = cat
[commitGraph]
	readChangedPaths = true
[protocol]
	allow = never
[gc]
	auto = 0
[maintenance]
	auto = false
[submodule]
	recurse = false
[log]
	showSignature = false
[i18n]
	logOutputEncoding = UTF-8
[diff]
	renameLimit = 1000
"""


def config(place: Place, hash_name: str) -> bytes:
    text = _OWN % (1 if hash_name == "sha256" else 0)
    if hash_name == "sha256":
        text += "[extensions]\n\tobjectFormat = sha256\n"
    form = form_of((place.read("config", _LIMIT) or b"").decode("utf-8", "replace"))
    if form:
        text += "[core]\n" + "".join(f"\t{name} = {value}\n" for name, value in form.items())
    return text.encode()


def form_of(text: str) -> dict[str, str]:
    """The known words of `[core]`; anything else is as if it were not written."""
    found: dict[str, str] = {}
    section = ""
    for line in text.splitlines():
        line = line.strip()[:_LONGEST]
        if line.startswith("["):
            head, _, line = line[1:].partition("]")
            section = head.strip().lower()
        name, equals, value = _before_comment(line).replace('"', "").partition("=")
        alone = "true" if len(line) < _LONGEST else "cut"
        name, value = name.strip().lower(), value.strip().lower() if equals else alone
        value = _SPELLED.get(value, value)
        if section == "core" and value in _FORM.get(name, ()):
            found[name] = value
    return found


def _before_comment(value: str) -> str:
    return value.partition("#")[0].partition(";")[0]
