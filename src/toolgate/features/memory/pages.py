"""Console pages of the memory: search with reasons, one memory with where it comes from, and the audit.

Reading is direct; every change is a call through the gate as the human, with an Undo beside it.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Request
from starlette.responses import Response

from toolgate.core.errors import CallError, Code, Conflict, NotFound
from toolgate.core.names import HUMAN
from toolgate.core.result import Meta, Problem, Result
from toolgate.features.memory import answers, audit, recalls
from toolgate.features.memory.items import CATEGORIES
from toolgate.features.memory.memory import Memory
from toolgate.features.memory.periods import SUMMARY_TYPES
from toolgate.features.memory.reader import RecallQuery
from toolgate.features.memory.store import ItemFilter
from toolgate.features.memory.tools import details
from toolgate.kits.web.auth import Human, form
from toolgate.kits.web.pages import Pages

PAGE = 50
MOST_AT_ONCE = 1000
MOST_AUDITS = 16
"""Pages of the audit that can be applied; of an older one a human is asked to look again."""
ShownAudits = dict[str, dict[str, dict[str, int]]]
"""By the name of a page, for each kind the memories that it would forget, with the version of each."""
_UNKNOWN_LIST = Problem(
    Code.CONFLICT, "this list is no longer known here; nothing was forgotten", "look at the new one"
)
_FIELDS = (
    "period_key", "untrusted", "subject", "tags", "why", "relevance", "verdict_why", "method", "pursuing_priority",
    "valid_from", "valid_to", "expires_at", "chat_id",
)  # fmt: skip
_NOTHING_TYPED = {"content": "", "subject": "", "tags": ""}
_PARTS = ("degraded", "warnings", "memories", "left_out")


def add(router: APIRouter, console: Pages) -> None:
    gate = console.gate
    shown: ShownAudits = {}
    """The audits that pages show, the newest last: what is applied is what was shown, and not what is found by then."""

    def memory() -> Memory:
        found: Memory = gate.feature("memory")
        return found

    @router.get("/memory")
    async def browse(request: Request, who: Human) -> Response:
        return await _browse(console, request, who, memory())

    @router.post("/memory")
    async def remember(request: Request, who: Human) -> Response:
        given = await form(request)
        args = {"content": given.get("content", ""), "category": given.get("category") or "fact"}
        args |= {"subject": given.get("subject", "")}
        done = await _call(console, "memory.store", args, given.get("reason", ""))
        if not done.ok:
            return await _browse(console, request, who, memory(), done.error, given)
        return console.to(f"/memory/items/{done.data['memories'][0]['id']}")

    @router.get("/memory/items/{ident}")
    async def item(request: Request, who: Human, ident: str) -> Response:
        return await _item(console, request, who, memory(), ident)

    @router.post("/memory/items/{ident}/{action}")
    async def change(request: Request, who: Human, ident: str, action: str) -> Response:
        given = await form(request)
        done = await _change(console, memory(), ident, action, given)
        if done.ok:
            return console.to(f"/memory/items/{ident}")
        return await _item(console, request, who, memory(), ident, done.error, given)

    @router.get("/memory/audit")
    async def look(request: Request, who: Human) -> Response:
        return await _audit(console, request, who, memory(), shown)

    @router.post("/memory/audit")
    async def apply(request: Request, who: Human) -> Response:
        given = await form(request)
        kind, user, report = given.get("kind", ""), given.get("user", ""), shown.get(given.get("shown", ""))
        trouble: Problem | None = _UNKNOWN_LIST
        events: list[int] = []
        if report is not None:
            events, trouble = await _apply(console, kind, report.get(kind, {}))
        if trouble is not None:
            return await _audit(console, request, who, memory(), shown, trouble, events)
        return console.to("/memory/audit", user=user, events=",".join(map(str, events)))


async def _call(console: Pages, tool: str, args: dict[str, Any], reason: str = "") -> Result:
    why = reason.strip()[:1000] or "in the console"
    return await console.gate.call(tool, args, persona=HUMAN, reason=why, wait=False)


async def _change(console: Pages, memory: Memory, ident: str, action: str, given: dict[str, str]) -> Result:
    reason = given.get("reason", "")
    if action == "edit":
        return await _call(console, "memory.update", _edited(ident, given), reason)
    if action == "forget":
        return await _call(console, "memory.forget", {"memory_id": ident}, reason)
    if action == "purge":
        return await _call(console, "memory.purge", {"memory_ids": [ident]}, reason)
    if action == "undo":
        call = (await memory.one(ident)).call
        if given.get("call") != call:  # pressed twice, or somebody was faster: another call would be undone
            told = f"{ident} was changed since this page was shown; nothing was undone"
            return Result.refused("undo", Conflict(told, "look at what it is now, then undo that"), Meta())
        return await console.gate.undo(call, reason=reason.strip()[:1000], wait=False)
    raise NotFound(f"nothing is called {action[:40]!r} here", "edit, forget, undo or purge")


def _edited(ident: str, given: dict[str, str]) -> dict[str, Any]:
    args: dict[str, Any] = {"memory_id": ident, "content": given.get("content", "").replace("\r\n", "\n")}
    args |= {"subject": given.get("subject", ""), "tags": given.get("tags", "").split()}
    version = given.get("version", "")
    return args | ({"expected_version": int(version)} if version.isdecimal() else {})


def _users(console: Pages) -> list[str]:
    """The default persona's first, then everybody whom a persona serves."""
    gate = console.gate
    found: Memory = gate.feature("memory")
    first = found.scope_of(HUMAN).removeprefix("user:")
    named = {gate.user_of(persona) for persona in gate.policy.personas}
    return [first, *sorted(named - {first})]


def _user(console: Pages, request: Request) -> str:
    said = request.query_params.get("user", "")
    return said if said in _users(console) else _users(console)[0]


async def _browse(
    console: Pages, request: Request, who: Human, memory: Memory, trouble: Problem | None = None,
    given: dict[str, str] | None = None,
) -> Response:  # fmt: skip
    asked = request.query_params
    user, kind, query = _user(console, request), asked.get("type", ""), asked.get("q", "").strip()[:1000]
    state = asked.get("state", "") if asked.get("state", "") in ("forgotten", "all") else ""
    kinds = (kind,) if kind in (*CATEGORIES, *SUMMARY_TYPES) else ()
    scope, data, older = f"user:{user}", dict[str, Any](), ""
    try:
        if query and state != "forgotten":
            wanted = RecallQuery(
                query=query, types=kinds, period=asked.get("period", ""), limit=PAGE, hidden=state == "all"
            )
            data = answers.found(await memory.recall(wanted, scope))
        else:
            chosen = ItemFilter(
                scope=scope, types=kinds, limit=PAGE, after=_after(asked.get("after", "")),
                states=("forgotten",) if state == "forgotten" else ("kept",),
            )  # fmt: skip
            page = await memory.listing(chosen, period=asked.get("period", ""), hidden=bool(state))
            data = answers.listed(page)
            older = f"{page[-1].item.at}.{page[-1].item.id}" if len(page) == PAGE else ""
    except CallError as error:
        trouble = trouble or Problem(error.code, error.message, error.fix)
    data = dict.fromkeys(_PARTS, "") | data
    data["memories"] = [dict.fromkeys(_FIELDS, "") | one for one in data["memories"]]
    filters = {"user": user, "q": query, "type": kind, "state": state, "period": asked.get("period", "")}
    return await console.page(
        request, who, "memory/memory.html", data=data, filters=filters, users=_users(console), kinds=CATEGORIES,
        summaries=SUMMARY_TYPES, trouble=trouble, given=_NOTHING_TYPED | (given or {}), status=409 if trouble else 200,
        older=f"?{'&'.join(f'{name}={quote(value)}' for name, value in filters.items() if value)}&after={older}" if older else "",
    )  # fmt: skip


def _after(text: str) -> tuple[int, str] | None:
    at, _, ident = text.partition(".")
    return (int(at), ident) if at.isdecimal() and ident and len(at) < 20 else None


async def _item(
    console: Pages, request: Request, who: Human, memory: Memory, ident: str, trouble: Problem | None = None,
    given: dict[str, str] | None = None,
) -> Response:  # fmt: skip
    (found,) = (await details(memory, ident, ""))["memories"]
    store = await memory.records()
    used = (await recalls.counts(store.tables, [ident])).get(ident, 0)
    item = await memory.one(ident)
    links = (await store.links([ident]))[ident]
    derived = await store.derived([ident]) if item.state in ("forgotten", "undone") else []
    together = await store.count(ItemFilter(call=item.call, states=()))
    return await console.page(
        request, who, "memory/item.html", under="/memory", one=dict.fromkeys(_FIELDS, "") | found, item=item, used=used, links=links, together=together,
        derived=derived,
        trouble=trouble, given=_NOTHING_TYPED | (given or {}), status=409 if trouble else 200,
    )  # fmt: skip


async def _apply(console: Pages, kind: str, versions: dict[str, int]) -> tuple[list[int], Problem | None]:
    """The events, and what stood in the way. Whatever was changed since it was shown is not forgotten."""
    ids, events = list(versions), list[int]()
    for start in range(0, len(ids), MOST_AT_ONCE):
        some = ids[start : start + MOST_AT_ONCE]
        args = {"memory_ids": some, "expected_versions": [versions[one] for one in some]}
        done = await _call(console, "memory.forget", args, f"audit: {kind}")
        if not done.ok:
            return events, done.error
        events.append(done.meta.event_id or 0)
    return events, None


async def _audit(
    console: Pages, request: Request, who: Human, memory: Memory, shown: ShownAudits,
    trouble: Problem | None = None, done: Sequence[int] = (),
) -> Response:  # fmt: skip
    user = _user(console, request)
    found = await audit.audit(memory, f"user:{user}")
    name = secrets.token_urlsafe(12)
    shown[name] = {kind: found.to_forget((kind,)) for kind in audit.KINDS}
    for old in list(shown)[:-MOST_AUDITS]:
        del shown[old]
    groups = [(kind, [one for one in found.proposals if one.kind == kind]) for kind in audit.KINDS]
    events = [*done, *(one for one in request.query_params.get("events", "").split(",") if one.isdecimal())]
    return await console.page(
        request, who, "memory/audit.html", under="/memory", user=user, users=_users(console), examined=found.examined,
        groups=[(kind, some) for kind, some in groups if some], counts=found.counts(), events=events, trouble=trouble,
        shown=name, status=409 if trouble else 200,
    )  # fmt: skip
