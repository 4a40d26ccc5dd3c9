"""What a job's walls look like: everything that is fixed before its program is known. Equal shapes can be swapped."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from toolgate.sandbox import interpreter
from toolgate.sandbox.job import Job, Language, View
from toolgate.sandbox.program import Program


@dataclass(frozen=True, slots=True)
class Shape:
    kind: Language
    disk: int
    inodes: int
    read: tuple[str, ...]
    execute: tuple[str, ...]
    packages: tuple[str, ...]
    view: View | None
    processes: bool
    network: bool
    off: frozenset[str] = field(default=frozenset())

    @classmethod
    def of(cls, job: Job, program: Program | None, network: bool, off: frozenset[str]) -> Shape:
        given = (program.ro_paths, program.exec_paths) if program else (interpreter.readable(), ())
        return cls(
            kind=job.language,
            disk=job.limits.disk_bytes,
            inodes=job.limits.inodes,
            read=interpreter.existing(given[0]),
            execute=interpreter.existing(given[1]),
            packages=tuple(str(path.resolve()) for path in job.packages),
            view=job.view,
            processes=job.limits.processes > 1,
            network=network,
            off=off,
        )

    def order(self, uid: int, place: str) -> dict[str, Any]:
        view = self.view and {
            "root": str(self.view.root), "hidden": list(self.view.hidden), "writable": self.view.writable,
            "disk": self.disk, "inodes": self.inodes,
        }  # fmt: skip
        return {
            "kind": self.kind, "uid": uid, "place": place, "disk": self.disk, "inodes": self.inodes,
            "read": list(self.read), "execute": list(self.execute), "packages": list(self.packages),
            "hide": list(interpreter.hidden()) if self.kind == "python" else [], "view": view,
            "processes": self.processes, "network": self.network, "off": sorted(self.off),
        }  # fmt: skip
