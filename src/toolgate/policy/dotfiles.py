"""Which hidden files may be seen: those whose names begin with a dot stay shut unless their mount lists them.

A glob without a slash is about a name at any depth, and opens what is below it; one with a slash is about the path
from the mount. The directories that lead to a listed path can be entered, and show only what is listed.
"""

from __future__ import annotations

from functools import cached_property, lru_cache

from toolgate.core.paths import MountPath
from toolgate.core.records import dataclass
from toolgate.policy.globs import Glob, PathGlob, expand, fold, path_glob, text_glob

USUAL: tuple[str, ...] = (
    ".{git,docker,npm,eslint,prettier,helm,cursor}ignore",
    ".gitattributes",
    ".gitmodules",
    ".gitkeep",
    ".mailmap",
    ".editorconfig",
    ".github/**",
    ".gitlab-ci.yml",
    ".travis.yml",
    ".circleci/**",
    ".ci/**",
    ".pre-commit-config.yaml",
    ".{python,node,ruby,go,terraform}-version",
    ".tool-versions",
    ".nvmrc",
    ".{flake8,pylintrc,coveragerc,isort.cfg,ruff.toml,style.yapf}",
    ".{eslintrc,prettierrc,babelrc,stylelintrc,swcrc,mocharc}*",
    ".{clang-format,clang-tidy,rustfmt.toml,rubocop.yml,rspec,golangci.yml,golangci.yaml}",
    ".{markdownlint,yamllint}*",
    ".readthedocs.{yml,yaml}",
    ".browserslistrc",
    ".vscode/{settings,extensions,tasks,launch}.json",
    ".devcontainer/**",
    ".well-known/**",
)
"""What a mount that says nothing of `dotfiles` opens: files of tools that hold no secrets."""


@dataclass(frozen=True)
class Dotfiles:
    """Compiled when the first hidden name is met: most calls meet none."""

    mount: str
    texts: tuple[str, ...]

    @classmethod
    @lru_cache(maxsize=64)
    def of(cls, mount: str, texts: tuple[str, ...]) -> Dotfiles:
        return cls(mount, texts)

    @cached_property
    def names(self) -> tuple[Glob, ...]:
        return tuple(text_glob(text) for text in self.texts if not _slashed(text))

    @cached_property
    def paths(self) -> tuple[PathGlob, ...]:
        return tuple(path_glob(text, self.mount) for text in self.texts if _slashed(text))

    @cached_property
    def ways(self) -> tuple[PathGlob, ...]:
        """The directories that lead to `paths`."""
        whole = (one for text in self.texts if _slashed(text) for one in expand(text))
        return tuple(
            path_glob(way, self.mount) for way in sorted({way for one in whole for way in _above(one)})
        )

    def shuts(self, path: MountPath) -> str:
        """The first hidden name that nothing lists, or nothing."""
        parts = path.relative.split("/")
        if path.relative == "." or not any(hidden(part) for part in parts):
            return ""
        if any(glob.matches(path) for glob in self.paths):
            return ""
        for index, part in enumerate(parts):
            if not hidden(part) or any(glob.matches(part) for glob in self.names):
                continue
            upto = MountPath(f"{path.mount}:{'/'.join(parts[: index + 1])}")
            rest = index == len(parts) - 1
            if any(glob.matches(upto) for glob in self.paths) or (rest and self._leads(upto)):
                continue
            if not rest and self._leads(path):
                continue
            return part
        return ""

    def _leads(self, path: MountPath) -> bool:
        return any(glob.matches(path) for glob in self.ways)


def _slashed(text: str) -> bool:
    return "/" in text or text == "**"


def hidden(name: str) -> bool:
    """Also where a dot is only what the file system makes of it: `．env` and the like."""
    return name.startswith(".") or (not name.isascii() and fold(name).startswith("."))


def _above(text: str) -> list[str]:
    """`a/b/c` → `a`, `a/b`; what comes after `**` can be at any depth, so it is listed itself."""
    parts = text.split("/")
    found = []
    for count in range(1, len(parts)):
        if parts[count - 1] == "**":
            break
        found.append("/".join(parts[:count]))
    return found
