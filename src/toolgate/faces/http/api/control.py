"""Routes of the human alone: pause, ask policy why, verify the ledger, settle what is unknown."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from toolgate.kits.web.answers import Json, Measured
from toolgate.kits.web.site import Here

router = APIRouter(tags=["humans decide"], route_class=Measured)
Name = Annotated[str, Field(max_length=64)]


class Pause(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    persona: Name = ""
    """Empty: everybody."""
    reason: Annotated[str, Field(max_length=4000)] = ""


class Resume(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    persona: Name = ""


class Explain(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={"examples": [{"tool": "fs.write", "args": {"path": "a"}, "persona": "builder"}]},
    )

    tool: Annotated[str, Field(max_length=256)]
    args: dict[str, Any] = Field(default_factory=dict)
    persona: Name = ""


class Outcome(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    outcome: Literal["happened", "not"]
    reason: Annotated[str, Field(max_length=4000)] = ""


@router.get("/pauses", summary="Who is paused")
async def pauses(here: Here) -> Json:
    paused = await here.gate.paused()
    return Json({"pauses": [{"persona": name, "reason": why} for name, why in paused.items()]})


@router.post("/pause", summary="Stop a persona, or everybody, at once")
async def pause(here: Here, asked: Pause) -> Json:
    await here.gate.pause(asked.persona, reason=asked.reason)
    return Json({"persona": asked.persona, "paused": True})


@router.post("/resume", summary="Lift a pause")
async def resume(here: Here, asked: Resume) -> Json:
    await here.gate.resume(asked.persona)
    return Json({"persona": asked.persona, "paused": False})


@router.post("/policy/explain", summary="Every line of policy that a call would meet, and which decides")
async def explain(here: Here, asked: Explain) -> Json:
    told = await here.gate.explain(asked.tool, asked.args, asked.persona or None)
    lines = [
        {"persona": each.persona, "step": each.step, "text": each.text, "why": each.why,
         "verdict": each.verdict.value if each.verdict else None, "decided": each.decided}
        for each in told.lines
    ]  # fmt: skip
    decision = {
        "verdict": told.decision.verdict.value, "reason": told.decision.reason, "rule": told.decision.rule,
    }  # fmt: skip
    return Json(
        {"tool": told.facts.tool.name, "persona": told.facts.persona, "decision": decision, "lines": lines}
    )


@router.post("/ledger/verify", summary="Check every event, seal and projection")
async def verify(here: Here) -> Json:
    return Json((await here.gate.verify()).as_dict())


@router.post("/ledger/resolve/{ident}", summary="Say how an unknown call ended")
async def resolve(here: Here, ident: str, asked: Outcome) -> Json:
    event = await here.gate.resolve(ident, asked.outcome, reason=asked.reason)
    return Json({"id": ident, "outcome": asked.outcome, "event_id": event})
