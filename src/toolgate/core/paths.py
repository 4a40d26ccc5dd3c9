"""Paths as tools receive them: a mount and a relative path, never a string that could lead elsewhere.

This is the lexical half. It refuses every spelling that is not plainly inside; the workspace opens what is left
through directory handles, so that symlinks and races cannot lead out either. pydantic is imported when it asks for a
schema: whoever only compares paths does without it.
"""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

from toolgate.core.errors import OutsideMount
from toolgate.core.late_pattern import late_pattern

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic_core import core_schema

MOUNT = late_pattern(r"[a-z][a-z0-9_-]{0,31}")
_CONTROL = late_pattern(r"[\x00-\x1f\x7f]")
_DRIVE = late_pattern(r"^[A-Za-z]:")
MAX_LENGTH = 4096
MAX_NAME = 255
_SHORT = MAX_NAME // 4
"""Characters: no name in so short a path can have too many bytes."""


Places = Mapping[str, str]
"""Absolute directories and the mounts that they are: models like to give whole paths."""


class MountPath(str):
    """`mount:relative/path`, normalised; `.` is the mount itself. A plain path means the project."""

    __slots__ = ()
    told: ClassVar[str] = "Relative to the project (`src/a.py`) or to a mount (`scratch:a.txt`)."
    """What a schema says of an argument that is a path, unless its tool says more."""

    @property
    def mount(self) -> str:
        return self.partition(":")[0]

    @property
    def relative(self) -> str:
        return self.partition(":")[2]

    @property
    def shown(self) -> str:
        bare = self.relative
        if self.mount != "project" or ":" in bare.partition("/")[0]:  # or it would be read as another mount
            return str(self)
        return bare

    @property
    def parents(self) -> tuple[MountPath, ...]:
        """The directories that lead to it, outermost first, without the mount itself."""
        parts = self.relative.split("/")
        return tuple(MountPath(f"{self.mount}:{'/'.join(parts[:count])}") for count in range(1, len(parts)))

    @classmethod
    def parse(cls, text: str) -> Self:
        mount, rest = _split(text)
        parts = [part for part in rest.split("/") if part not in ("", ".")]
        if len(rest) > _SHORT or ".." in parts or ":" in rest:
            for part in parts:
                _check_part(part, text)
        return cls(f"{mount}:{'/'.join(parts) or '.'}")

    @classmethod
    def given(cls, text: str, places: Places | None) -> Self:
        """An argument; with the places of the mounts, it may be absolute."""
        return cls.parse(_placed(text, places) if places and text.startswith("/") else text)

    @classmethod
    def _taken(cls, text: str, info: core_schema.ValidationInfo) -> Self:
        return cls.given(text, info.context)

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        from pydantic_core import core_schema

        return core_schema.with_info_after_validator_function(
            cls._taken,
            core_schema.str_schema(),
            serialization=core_schema.plain_serializer_function_ser_schema(str),
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {**handler(schema), "maxLength": MAX_LENGTH, "description": cls.told}


class ScratchPath(MountPath):
    """A path in the scratch mount; a plain one means scratch here, not the project."""

    __slots__ = ()
    told = "Relative to the scratch mount."

    @classmethod
    def parse(cls, text: str) -> Self:
        path = MountPath.parse(text if ":" in text else f"scratch:{text}")
        if path.mount != "scratch":
            raise OutsideMount(f"{text!r} is not in the scratch mount", "write `path` or `scratch:path`")
        return cls(path)


class _OneOrMany:
    """Takes a single text for a list of one."""

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        from pydantic_core import core_schema

        return core_schema.no_info_before_validator_function(_listed, handler(source))


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


MountPaths = Annotated[list[MountPath], _OneOrMany()]
"""A list of paths; a single one may be given for it."""


def _placed(text: str, places: Places) -> str:
    """By its words alone, and as it is where it is in no mount: what is outside is refused in the same words,
    whether or not it is there."""
    if ":" in text or ".." in text.split("/"):
        return text
    within = [place for place in places if f"{text}/".startswith(f"{place}/")]
    if not within:
        return text
    place = max(within, key=len)
    return f"{places[place]}:{text[len(place) :].lstrip('/')}"


def _split(text: str) -> tuple[str, str]:
    if len(text) > MAX_LENGTH:
        raise OutsideMount(
            f"the path has {len(text):,} characters, the limit is {MAX_LENGTH:,}", "shorten it"
        )
    if _CONTROL.search(text):
        raise OutsideMount(f"the path {text[:200]!r} has a control character", "remove it")
    if text.startswith(("/", "~", "\\")) or "\\" in text:
        raise OutsideMount(
            f"{text!r} is not relative to a mount", "write it relative to the project, with forward slashes"
        )
    mount, colon, rest = text.partition(":")
    if not colon:
        return "project", text
    if _DRIVE.match(text) or not MOUNT.fullmatch(mount) or rest.startswith(("/", "~")):
        raise OutsideMount(
            f"{text!r} does not name a mount", "write `path` or `mount:path`, without a leading slash"
        )
    return mount, rest


def _check_part(part: str, text: str) -> None:
    if part == "..":
        raise OutsideMount(f"{text!r} leads upwards", "write the path without `..`")
    if len(part.encode("utf-8", "replace")) > MAX_NAME:
        raise OutsideMount(f"a name in {text[:80]!r} is longer than {MAX_NAME} bytes", "shorten it")
    if ":" in part:
        raise OutsideMount(f"{text!r} has a colon inside the path", "only the mount is followed by a colon")


def folded(name: str) -> str:
    """A name as rules compare it: normalised and case-folded, so that no spelling slips past them."""
    return unicodedata.normalize("NFKC", name).casefold().rstrip(". ")


def _is_model(value: Any) -> bool:
    pydantic = sys.modules.get("pydantic.main")  # where nobody has loaded it, nothing is one
    return pydantic is not None and isinstance(value, pydantic.BaseModel)


def paths_in(value: Any) -> Iterator[MountPath]:
    """Paths at any depth: one that policy does not see is one that it does not judge."""
    if isinstance(value, MountPath):
        yield value
    elif isinstance(value, str):
        return
    elif _is_model(value):
        for name in type(value).model_fields:
            yield from paths_in(getattr(value, name))
    elif hasattr(type(value), "__dataclass_fields__"):
        for name in type(value).__dataclass_fields__:
            yield from paths_in(getattr(value, name, None))
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from paths_in(key)
            yield from paths_in(item)
    elif isinstance(value, list | tuple | set | frozenset):
        for item in value:
            if type(item) is not str:  # most lists hold nothing else
                yield from paths_in(item)
