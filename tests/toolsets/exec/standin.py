"""A sandbox without walls: a bare Python process in a directory of its own, with a copy of the project. For tests only."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from toolgate.sandbox.copied import copy_into
from toolgate.sandbox.job import Altered, Job, Left, Outcome
from toolgate.sandbox.overlay import Layer

_PRELUDE = "import json as _j, sys as _s\ndef output(v): print('\\x01' + _j.dumps(v))\n"


@dataclass
class Standin:
    mode: str = "landlock"
    jobs: list[Job] = field(default_factory=list)

    async def run(self, job: Job, *, egress: Any = None, broker: Any = None) -> Outcome:
        self.jobs.append(job)
        with tempfile.TemporaryDirectory() as place:
            work, project = Path(place, "work"), Path(place, "project")
            work.mkdir()
            project.mkdir()
            for each in job.files:
                (work / each.path).parent.mkdir(parents=True, exist_ok=True)
                (work / each.path).write_bytes(each.content)
            given = {each.path for each in job.files}
            copy = copy_into(job.view, project) if job.view else None
            code = _PRELUDE + job.code.replace("/project", str(project))
            argv = list(job.argv) or (
                [sys.executable, "-c", code] if job.language == "python" else ["sh", "-c", job.code]
            )
            process = await asyncio.create_subprocess_exec(
                *argv, cwd=work, stdin=-1, stdout=-1, stderr=-1, env={"PATH": os.environ["PATH"]}
            )
            try:
                out, err = await asyncio.wait_for(process.communicate(job.stdin), job.limits.wall_s)
            except TimeoutError:
                return Outcome(b"", b"", None, limit="time")
            finally:
                if process.returncode is None:
                    process.kill()
                    await process.wait()
            lines = out.split(b"\n")
            values = [__import__("json").loads(line[1:]) for line in lines if line.startswith(b"\x01")]
            rest = b"\n".join(line for line in lines if not line.startswith(b"\x01"))
            left = tuple(
                Left(str(file.relative_to(work)), file.read_bytes())
                for file in sorted(work.rglob("*"))
                if file.is_file() and str(file.relative_to(work)) not in given
            )
            layer, delta = Layer(64 << 20, 4096), ()
            if copy is not None and job.view is not None and job.view.writable:
                delta = _compared(copy, project, layer)
            return Outcome(
                rest,
                err,
                process.returncode,
                outputs=tuple(values),
                left=left,
                delta=delta,
                dropped=tuple(layer.dropped),
            )


def _compared(copy: Any, project: Path, layer: Layer) -> tuple[Altered, ...]:
    handle = os.open(project, os.O_RDONLY | os.O_DIRECTORY)
    try:
        return copy.compare(handle, layer)  # type: ignore[no-any-return]
    finally:
        os.close(handle)
