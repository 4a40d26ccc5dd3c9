"""Values of a checked configuration, with the attributes of its models and without the models.

Building the models takes longer than anything else when a gate opens. So what a file says is kept as JSON once it was
checked (`packed`), and read back as Values, whose attributes and `model_fields_set` are those of the model.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from toolgate.core.named_tuples import NamedTuple

DEFAULT_USER = "me"
"""Whose memory and garden a persona tends that names nobody: a project of one person needs no names."""
_SCALARS = (str, int, float, bool, type(None))


class Flaw(NamedTuple):
    """Something wrong with the configuration, and where: the keys that lead there."""

    at: tuple[str | int, ...]
    message: str
    fix: str


class Values:
    """One section. Nobody changes it, as nobody changes a model."""

    model_fields_set: frozenset[str]
    __slots__ = ("__dict__", "model_fields_set")

    def __init__(self, values: Mapping[str, Any], said: Collection[str]) -> None:
        self.__dict__.update(values)
        self.model_fields_set = frozenset(said)

    def model_copy(self, *, update: Mapping[str, Any]) -> Values:
        return Values({**self.__dict__, **update}, self.model_fields_set | update.keys())


def packed(value: Any) -> Any:
    """A checked value, or a model of such, as JSON."""
    if isinstance(value, _SCALARS):
        return value
    if isinstance(value, list):
        return [packed(one) for one in value]
    if isinstance(value, tuple):
        return {"tuple": [packed(one) for one in value]}
    if isinstance(value, dict):
        return {"dict": {key: packed(one) for key, one in value.items()}}
    values = {name: packed(one) for name, one in vars(value).items()}
    return {"values": values, "said": sorted(value.model_fields_set)}


def unpacked(told: Any) -> Any:
    """What `packed` was given. Raises KeyError for anything else."""
    if isinstance(told, _SCALARS):
        return told
    if isinstance(told, list):
        return [unpacked(one) for one in told]
    if "tuple" in told:
        return tuple(unpacked(one) for one in told["tuple"])
    if "dict" in told:
        return {key: unpacked(one) for key, one in told["dict"].items()}
    return Values({name: unpacked(one) for name, one in told["values"].items()}, told["said"])


def plain(value: Any, without: Collection[str] = (), said: bool = False) -> Any:
    """A section as JSON for people and for digests: without these fields, and if `said` without those nobody wrote."""
    if isinstance(value, _SCALARS):
        return value
    if isinstance(value, list | tuple):
        return [plain(one, without, said) for one in value]
    if isinstance(value, dict):
        return {key: plain(one, without, said) for key, one in value.items()}
    names = value.model_fields_set if said else vars(value)
    return {name: plain(getattr(value, name), without, said) for name in names if name not in without}
