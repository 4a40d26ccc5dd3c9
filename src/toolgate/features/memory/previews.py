"""Previews of the memory's writes: every text that a call would touch. An approval holds for what was shown, so whatever
changes, or comes in addition, before the call runs is asked about anew."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from toolgate.core.context import Context
from toolgate.core.names import HUMAN
from toolgate.features.memory.items import MemoryItem
from toolgate.features.memory.memory import Memory


async def scope_for(memory: Memory, ctx: Context, ids: Iterable[str], scope: str = "") -> str:
    """Where memories that are named by id are looked for: in the named scope, else where they are in what belongs to the
    persona's user; a human may touch everybody's."""
    if scope or ctx.persona == HUMAN:
        return memory.scope_of(ctx.persona, scope) if scope else ""
    own = memory.scope_of(ctx.persona)
    found = {one.scope for one in await (await memory.records()).get(list(dict.fromkeys(ids)))}
    mine = {one for one in found if one == own or one.startswith(f"{own}/")}
    return mine.pop() if len(mine) == 1 else own


async def of_store(memory: Memory, ctx: Context, content: str, given: Mapping[str, Any]) -> str:
    own = memory.scope_of(ctx.persona, given.get("scope") or "")
    told = [f"Remember for the user {own.partition(':')[2]}:", "", _set_in(content), ""]
    told += [f"{name}: {_value(value)}" for name, value in given.items() if value not in (None, "", [], ())]
    store, links = await memory.records(), dict[str, list[str]]()
    for name in ("supersedes", "contradicts"):
        links[name] = list(given.get(name) or ())
    what = given.get("same_subject", "keep")
    if what != "keep":
        others = await memory.on_subject(
            given.get("subject", ""), given.get("store") or "user_memory", own, memory.now
        )
        links["supersedes" if what == "supersede" else "contradicts"] += others
    for name, words in (("supersedes", "takes the place of"), ("contradicts", "disagrees with")):
        found = await store.get(list(dict.fromkeys(links[name])), own)
        told += ["", *(f"{words} {line}" for line in _lines(found))] if found else []
    return "\n".join(told)


async def of_update(memory: Memory, ctx: Context, ident: str, given: Mapping[str, Any]) -> str:
    old = await memory.one(ident, await scope_for(memory, ctx, [ident], given.get("scope") or ""))
    what = f"Change {ident} (version {old.version}), which now reads:"
    if ctx.persona != HUMAN and given.get("content") is not None and await memory.is_humans(old):
        what = f"Put another text beside {ident}, which a human said and which stays; it reads:"
    changes = [f"{name}: {_value(value)}" for name, value in given.items() if value is not None]
    return "\n".join([what, "", _set_in(old.content), "", "to:", "", *changes])


async def of_forget(memory: Memory, ctx: Context, ids: Sequence[str], scope: str = "") -> str:
    """All of them: what is too long for a screen is cut there, visibly."""
    where = await scope_for(memory, ctx, ids, scope)
    found = await (await memory.records()).get(list(dict.fromkeys(ids)), where)
    return "\n".join(["Forget (undoable until purged):", "", *_lines(found)])


def _lines(items: Iterable[MemoryItem]) -> list[str]:
    """Further lines of a text are indented: they cannot pass for another memory."""
    return [f"{one.id}: {_set_in(one.content)[4:]}" for one in items]


def _set_in(text: str) -> str:
    """Every line of it, so that none can pass for the words around it."""
    return "\n".join(f"    {line}" for line in text.split("\n"))


def _value(value: Any) -> str:
    """A text of several lines below its name; nothing as what it is, since it takes something away."""
    if isinstance(value, str) and "\n" in value:
        return "\n" + _set_in(value)
    return value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)
