"""The jobs as they are kept: submitted, read, cancelled and scheduled from any process. It runs nothing.

DBOS's own client does the writing, so there is one truth about a job. Everything here blocks: call it in a thread.
"""

from __future__ import annotations

import hmac
import re
import sqlite3
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from toolgate.core.canonical import canonical
from toolgate.core.errors import Conflict, InvalidArgs, NotFound, TooLarge
from toolgate.features.jobs.job import Job, Schedule, Spec, State
from toolgate.features.jobs.place import SCHEMA, JobsPlace, need_engine, take_over_log

if TYPE_CHECKING:
    import sqlalchemy
    from dbos import DBOSClient, WorkflowStatus

APP = "toolgate"
QUEUE = "jobs"
JOB, TICK = "toolgate.job", "toolgate.tick"
VERSION = "toolgate-jobs-1"
"""Of the workflows in workflow.py, not of toolgate: a job that began under one toolgate is finished by the next."""
POLL_S = 0.25
MOST_AT_ONCE = 256
"""Jobs taken from the queue; most of them may be waiting for a human."""
FORGOTTEN_AT_ONCE = 100
MILLI = 1000
_SCHEDULED = re.compile(r"-[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.+]+$")
"""What DBOS puts behind the name of a schedule."""
Seal = Callable[[str], str]
_OPEN = ("ENQUEUED", "DELAYED", "PENDING")
_DONE = ("SUCCESS", "ERROR", "CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED")


class JobStore:
    def __init__(self, place: JobsPlace, seal: Seal, max_bytes: int) -> None:
        self.place, self.max_bytes = place, max_bytes
        self._seal = seal
        self._opening = threading.Lock()
        self._engine: sqlalchemy.Engine | None = None
        self._client: DBOSClient | None = None
        self._ready = False
        """The tables are of this version and know our queue."""

    def close(self) -> None:
        with self._opening:
            if self._client is not None:
                self._client.destroy()
            if self._engine is not None:
                self._engine.dispose()
            self._client = self._engine = None
            self._ready = False

    def engine(self) -> sqlalchemy.Engine:
        assert self._engine is not None
        return self._engine

    def make(self) -> DBOSClient:
        """The client; the tables are made if they are not there."""
        need_engine()
        take_over_log()
        with self._opening:
            if not self._ready:
                self.place.create()
                self._open()
                self._register()
        assert self._client is not None
        return self._client

    def look(self) -> DBOSClient | None:
        """The client, or nothing where there never was a job. Looking makes nothing."""
        with self._opening:
            if self._client is not None:
                return self._client
            if not self.place.dsn and not self.place.exists():
                return None
            need_engine()
            take_over_log()
            self._engine = self._engine or self.place.connect()
            if not self.place.exists(self._engine):
                return None
            self._open()
            return self._client

    def _open(self) -> None:
        if self._client is not None:
            return
        from dbos import DBOSClient, DBOSPortableJSONSerializer

        self._engine = self._engine or self.place.connect()
        self._client = DBOSClient(
            system_database_engine=self._engine, dbos_system_schema=SCHEMA if self.place.dsn else None,
            serializer=DBOSPortableJSONSerializer(), application_name=APP, retry_connection_errors=False,
        )  # fmt: skip

    def _register(self) -> None:
        assert self._client is not None
        self._client.register_queue(
            QUEUE, worker_concurrency=MOST_AT_ONCE, polling_interval_sec=POLL_S, on_conflict="always_update"
        )
        self._ready = True

    # --- jobs ---------------------------------------------------------------------------------------------

    def submit(self, ident: str, spec: Spec) -> None:
        client, sealed = self.make(), self._sealed(ident, spec)
        self._need_room(sealed)
        client.enqueue(
            {
                "workflow_name": JOB, "queue_name": QUEUE, "workflow_id": ident, "app_version": VERSION,
                "authenticated_user": spec.persona, "workflow_id_reuse_policy": "reject",
            },
            sealed,
        )  # fmt: skip

    def _sealed(self, name: str, spec: Spec) -> dict[str, Any]:
        stored = spec.stored()
        return stored | {"seal": self._seal(f"{name} {canonical(stored)}")}

    def is_ours(self, ident: str, stored: Mapping[str, Any]) -> bool:
        """Whether a gate of this project put it there: whoever can only write the database cannot have anything run."""
        plain = {name: value for name, value in stored.items() if name != "seal"}
        name = _SCHEDULED.sub("", ident).removeprefix("sched-") if ident.startswith("sched-") else ident
        return hmac.compare_digest(str(stored.get("seal")), self._seal(f"{name} {canonical(plain)}"))

    def jobs(self, *, limit: int, persona: str = "", open_only: bool = False) -> list[Job]:
        """Newest first. Those of schedules have no user on record, so a persona's are picked here."""
        client = self.look()
        found: list[Job] = []
        offset = 0
        while client is not None and len(found) < limit:
            page = client.list_workflows(
                name=[JOB, TICK], status=list(_OPEN) if open_only else None, limit=200, offset=offset,
                sort_desc=True, load_output=False,
            )  # fmt: skip
            found += [job for job in map(as_job, page) if persona in ("", job.spec.persona)]
            offset += len(page)
            if len(page) < 200:
                break
        return found[:limit]

    def job(self, ident: str) -> Job:
        client = self.look()
        found = client.list_workflows(workflow_ids=[ident], name=[JOB, TICK]) if client is not None else []
        if not found:
            raise NotFound(f"there is no job {ident[:80]}", "`toolgate jobs` lists them")
        return as_job(found[0])

    def cancel(self, ident: str) -> None:
        job = self.job(ident)
        if job.ended:
            raise Conflict(f"{ident} is {job.state} already", "there is nothing to cancel")
        client = self.look()
        assert client is not None
        client.cancel_workflow(ident)

    def tell(self, ident: str, news: Mapping[str, Any]) -> None:
        self.make().update_workflow_attributes(ident, dict(news), merge=True)

    def sweep(self, days: int) -> int:
        """Forget jobs that ended so long ago."""
        client = self.look()
        before = (datetime.now(UTC) - timedelta(days=days)).isoformat()
        old = client.list_workflows(
            status=list(_DONE), completed_before=before, limit=1000, load_input=False, load_output=False
        ) if client is not None else []  # fmt: skip
        if client is not None and old:
            client.delete_workflows([one.workflow_id for one in old])
        self.make_room()
        return len(old)

    # --- the budget ---------------------------------------------------------------------------------------

    def used(self) -> int:
        """Bytes of jobs.db that hold something: what is deleted leaves room in the file for what comes. A PostgreSQL
        is not measured, as its owner gives it its room."""
        if self.place.dsn or not self.place.exists():
            return 0
        with closing(sqlite3.connect(f"file:{quote(str(self.place.file))}?mode=ro", uri=True)) as db:
            pages, free, size = (
                db.execute(f"PRAGMA {name}").fetchone()[0]
                for name in ("page_count", "freelist_count", "page_size")
            )
        return int((pages - free) * size)

    def make_room(self, wanted: int = 0) -> bool:
        """Forget the oldest jobs that have ended until so many bytes more fit; False where that is not enough."""
        client = self.look()
        while client is not None and self.used() + wanted > self.max_bytes:
            old = client.list_workflows(
                status=list(_DONE), limit=FORGOTTEN_AT_ONCE, load_input=False, load_output=False
            )
            if not old:
                return False
            client.delete_workflows([one.workflow_id for one in old])
        return True

    def _need_room(self, sealed: Mapping[str, Any]) -> None:
        wanted = len(canonical(sealed))
        if not self.make_room(wanted):
            raise TooLarge(
                f"jobs that have not ended take {self.used():,} bytes, this one {wanted:,}, the limit is {self.max_bytes:,}",
                "wait for some or cancel some (`toolgate jobs`), or raise `jobs: {max_bytes: …}` in toolgate.yaml",
                data={"limit": "jobs.max_bytes", "used": self.used()},
            )

    # --- schedules ----------------------------------------------------------------------------------------

    def schedule(self, name: str, cron: str, spec: Spec) -> None:
        from croniter import croniter

        if not croniter.is_valid(cron, second_at_beginning=True):
            raise InvalidArgs(
                f"{cron!r} is not a cron expression", "write five fields, such as '*/5 * * * *'"
            )
        client = self.make()
        if client.get_schedule(name) is not None:
            raise Conflict(
                f"there is a schedule {name!r} already", f"`toolgate jobs unschedule {name}` removes it"
            )
        sealed = self._sealed(name, spec)
        self._need_room(sealed)
        client.create_schedule(
            schedule_name=name, workflow_name=TICK, schedule=cron, context=sealed, queue_name=QUEUE
        )

    def schedules(self) -> list[Schedule]:
        client = self.look()
        found = client.list_schedules() if client is not None else []
        return [
            Schedule(
                one["schedule_name"],
                one["schedule"],
                Spec.read(one["context"]),
                one.get("last_fired_at") or "",
            )
            for one in sorted(found, key=lambda one: str(one["schedule_name"]))
        ]

    def unschedule(self, name: str) -> None:
        client = self.look()
        if client is None or client.get_schedule(name) is None:
            raise NotFound(f"there is no schedule {name[:80]!r}", "`toolgate jobs schedules` lists them")
        client.delete_schedule(name)


def as_job(status: WorkflowStatus) -> Job:
    news = status.attributes or {}
    ended: Mapping[str, Any] = status.output if isinstance(status.output, Mapping) else {}
    error = ended.get("error") or _broken(status)
    return Job(
        id=status.workflow_id, spec=_spec(status), state=_state(status, news, ended),
        progress=news.get("progress"), message=news.get("message", ""),
        question=news.get("question", "") if status.status == "PENDING" else "",
        attempt=news.get("attempt", 0), call=ended.get("call") or news.get("call", ""),
        outcome=news.get("outcome", "") if status.status == "CANCELLED" else "",
        result=ended.get("result"), error=error, schedule=status.schedule_name or "",
        created_at=(status.created_at or 0) * MILLI, started_at=(status.dequeued_at or 0) * MILLI,
        ended_at=(status.completed_at or 0) * MILLI,
    )  # fmt: skip


def _spec(status: WorkflowStatus) -> Spec:
    given: Sequence[Any] = status.input["args"] if status.input else ()
    return Spec.read(given[-1] if given else {"kind": "?", "args": {}, "persona": ""})


def _state(status: WorkflowStatus, news: Mapping[str, Any], ended: Mapping[str, Any]) -> State:
    match status.status:
        case "PENDING":
            state: State = news.get("state", "queued")
            return state
        case "ENQUEUED" | "DELAYED":
            return "waiting" if news.get("state") == "waiting" else "queued"
        case "SUCCESS":
            end: State = news.get("end") or ended.get("state", "done")
            return end
        case "CANCELLED":
            return "cancelled"
        case _:
            return "failed"


def _broken(status: WorkflowStatus) -> dict[str, str] | None:
    """What toolgate itself did wrong, and jobs that ended their runner too often."""
    if status.status == "MAX_RECOVERY_ATTEMPTS_EXCEEDED":
        message = "the process that ran it died again and again, so it is not tried any more"
        return {"code": "failed", "message": message, "fix": "look at the log; then `toolgate jobs retry`"}
    if status.status == "ERROR":
        return {"code": "failed", "message": str(status.error), "fix": "the trace is in the log; report it"}
    return None
