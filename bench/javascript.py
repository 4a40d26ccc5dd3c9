"""`exec.javascript` against bare Deno: the same program, once behind all walls and once without any."""

from __future__ import annotations

import asyncio
import os

from bench.measure import Line, Step, alternate, median, millis
from bench.run import Run
from toolgate.sandbox import javascript
from toolgate.sandbox.host import Host
from toolgate.sandbox.job import Job

BAR = 1.5
CODE = "console.log(await Promise.resolve(6 * 7));"


async def javascript_program(run: Run) -> list[Line]:
    run.tell("JavaScript in the sandbox against bare Deno")
    work = run.folder("javascript")
    count = run.count(100, 10)
    warm, cold = Host(), Host(warm=0)
    try:
        lines = []
        for what, host, bar in (
            ("JavaScript program, whole job, walls ready", warm, BAR),
            ("JavaScript program, whole job, walls raised for it", cold, None),
        ):
            ours, peer = _sandboxed(host), _bare(str(work))
            await alternate(ours, peer, 3)
            mine, theirs = await alternate(ours, peer, count)
            lines.append(_line(what, host.mode, median(mine), median(theirs), bar, count))
        return lines
    finally:
        await warm.close()
        await cold.close()


def _sandboxed(host: Host) -> Step:
    async def step() -> None:
        outcome = await host.run(Job("javascript", CODE))
        assert outcome.stdout == b"42\n", outcome

    return step


def _bare(work: str) -> Step:
    """As somebody would run it by hand who takes nothing but Deno's own defaults: no permissions."""
    deno = str(javascript.find())
    flags = [
        "run",
        "--no-prompt",
        "--no-remote",
        "--no-npm",
        "--no-config",
        "--no-lock",
        "--cached-only",
        "--ext=js",
        "-",
    ]
    environment = {"PATH": os.defpath, "HOME": work, **javascript.ENVIRONMENT}

    async def step() -> None:
        process = await asyncio.create_subprocess_exec(
            deno,
            *flags,
            cwd=work,
            env=environment,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        out, _ = await process.communicate(CODE.encode())
        assert out == b"42\n"

    return step


def _line(what: str, mode: str, ours: float, peer: float, bar: float | None, count: int) -> Line:
    return Line(
        what=what,
        ours=f"p50 {millis(ours)}",
        peer=f"p50 {millis(peer)}",
        ratio=ours / peer,
        bar=f"≤ {bar:g} ×" if bar else "–",
        holds=ours / peer <= bar if bar else None,
        how=f"a program that prints a number, mode `{mode}`, prelude and collection of its files included, against "
        f"`deno run -` with the same flags and no walls; {count} of each in turns",
    )
