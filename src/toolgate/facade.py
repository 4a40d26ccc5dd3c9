"""The Gate as programs hold it: call tools, answer questions, read and prove the record."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from toolgate.consent.desk import whoami
from toolgate.consent.works import Scope
from toolgate.core.context import NO_TRAIL, Trail
from toolgate.core.decision import Decision
from toolgate.core.errors import CallError, InvalidArgs, NotFound, Unavailable, UnknownTool
from toolgate.core.event import Noted, Rejected
from toolgate.core.names import HUMAN
from toolgate.core.ports import Facts, Question
from toolgate.core.records import replace
from toolgate.core.result import Result
from toolgate.core.tool import Tool
from toolgate.feature import FeatureContext, load
from toolgate.gate.flow import Flow, Services
from toolgate.gate.gate import Pipeline, stream
from toolgate.gate.reconcile import ResolveWork, still_runs
from toolgate.gate.resolve import resolve
from toolgate.gate.validate import validate
from toolgate.ledger.ledger import Work, no_question
from toolgate.ledger.state import Grant
from toolgate.policy.policy import Policy
from toolgate.policy.values import DEFAULT_USER
from toolgate.project import trust
from toolgate.project.checked import check_persona
from toolgate.project.gate_reads import GateReads
from toolgate.secrets.vault import Vault
from toolgate.storage.port import Row
from toolgate.workspace.files import WorkspaceFiles

if TYPE_CHECKING:
    from toolgate.core.caller import Caller
    from toolgate.core.functions import ToolSpecs
    from toolgate.core.rendering import Reader
    from toolgate.features.files.artifacts import Listed
    from toolgate.features.jobs.jobs import Jobs
    from toolgate.features.servers.servers import Servers
    from toolgate.ledger.archive import Segment
    from toolgate.ledger.checkpoint import Checkpoint
    from toolgate.ledger.traces import Traces
    from toolgate.ledger.verify import Progress, Report
    from toolgate.policy.explain import Explanation, FactsFor
    from toolgate.project.config import Config


class PolicySource(Protocol):
    config: Config

    def current(self) -> Policy: ...

    def tried(self, config: Config) -> Policy: ...


class Gate(GateReads):
    """Made by `toolgate.open`."""

    def __init__(
        self, root: Path, policy: PolicySource, services: Services, pipeline: Pipeline,
        vault: Vault | None = None,
    ) -> None:  # fmt: skip
        self.root = root
        self.services = services
        self.pipeline = pipeline
        self.features: dict[str, FeatureContext] = {}
        """What each feature was handed, by the feature's name."""
        self._opened: dict[str, Any] = {}
        self.vault = vault
        """The project's secrets; None where it is not trusted or kept in memory."""
        self._policy = policy

    @property
    def policy(self) -> Policy:
        return self._policy.current()

    @property
    def config(self) -> Config:
        return self._policy.config

    @property
    def files(self) -> WorkspaceFiles | None:
        """The project's files; None where it is not trusted."""
        found = self.services.files
        return found if isinstance(found, WorkspaceFiles) else None

    def user_of(self, persona: str) -> str:
        """Whose memory and garden the persona tends."""
        known = self.policy.personas.get(persona)
        return known.user if known is not None else DEFAULT_USER

    def load_tools(self) -> None:
        """All of them at once, for a gate that serves many: a family is loaded where its first caller stands."""
        for _ in self.services.registry:
            pass

    def feature(self, name: str) -> Any:
        """What a feature offers to programs, such as `jobs`. Made when somebody asks, because most gates never do."""
        if name not in self._opened:
            context = self.features.get(name)
            if context is None or not context.feature.opens:
                known = ", ".join(sorted(one for one, each in self.features.items() if each.feature.opens))
                raise NotFound(f"there is no feature {name!r} to ask for", f"there are: {known}")
            self._opened[name] = load(context.feature.opens)(context)
        return self._opened[name]

    @property
    def upstream(self) -> Servers | None:
        """Other MCP servers behind this gate, where toolgate.yaml names any."""
        return self._opened.get("servers")

    # --- calls --------------------------------------------------------------------------------------------

    def call(
        self, tool: str, args: Mapping[str, Any] | None = None, *, persona: str | None = None,
        key: str | None = None, reason: str = "", conversation: str = "", transaction: str = "",
        action: str = "", plan: str = "", step: str = "", run: str = "", wait: bool = True,
        progress: Callable[[float, str], None] | None = None, part: Callable[[Any], None] | None = None,
        caller: Caller | None = None, reader: Reader | None = None,
    ) -> Coroutine[Any, Any, Result]:  # fmt: skip
        """Carry one call through the gate. A call that asks waits for its answer, or with `wait=False` is handed
        back with the code `pending` and runs when it is repeated after approval. `caller` is whoever can be asked
        back meanwhile: by the gate, and by a server behind it. `reader` makes the text that a model is handed. `run` names
        the run of an agent: there repeats count."""
        words = conversation or transaction or action or plan or step or reason or run
        trail = (
            NO_TRAIL
            if not words
            else Trail(
                conversation=conversation,
                transaction=transaction,
                action=action,
                plan=plan,
                step=step,
                reason=reason,
                run=run,
            )
        )
        return self.pipeline.call(
            tool, args if args is not None else {}, self._persona(persona), key=key, trail=trail, wait=wait,
            progress=progress, part=part, caller=caller, reader=reader,
        )  # fmt: skip

    def stream(
        self, tool: str, args: Mapping[str, Any] | None = None, *, persona: str | None = None, **more: Any
    ) -> AsyncIterator[Any]:
        """The same as `call`, for a tool that finds its result bit by bit, such as `code.search`: what it has found so
        far comes first, in no order, and the whole Result last. A result that is at hand comes without parts."""
        return stream(lambda part: self.call(tool, args, persona=persona, part=part, **more))

    async def calls(
        self, requests: Sequence[tuple[str, Mapping[str, Any]]], *, persona: str | None = None,
        conversation: str = "", reason: str = "", wait: bool = True,
    ) -> list[Result]:  # fmt: skip
        """Several calls in order; a refusal or an unknown tool stops the rest, which come back as not run."""
        trail = Trail(conversation=conversation, reason=reason)
        return await self.pipeline.calls(requests, self._persona(persona), trail=trail, wait=wait)

    def tools(self, persona: str | None = None) -> ToolSpecs:
        """The tools this persona may see: name, description, schemas, effects, and what policy says of them."""
        from toolgate.core.functions import ToolSpecs

        who = self._persona(persona)
        seen = [(tool, said) for tool, said in self.outlook(who) if said.verdict != "deny" and tool.listed]
        return ToolSpecs.of(seen, partial(self.calls, persona=who), self.own_rendering)

    def outlook(self, persona: str, *tools: Tool) -> list[tuple[Tool, Decision]]:
        """What policy says of these tools, or of all of them, before arguments are known."""
        return [(tool, self.policy.outlook(persona, tool)) for tool in tools or self.services.registry]

    async def check_ready(self) -> None:
        """Raises where no call can be made: the policy cannot be read, or the ledger."""
        self._policy.current()
        await self.services.ledger.look(lambda state, now: None, no_question)

    async def refused(self, what: str, persona: str = "") -> None:
        """A face refused something before it was a call. The ledger keeps it, floods counted."""
        await self.pipeline.refusals.keep(
            persona, lambda: Rejected(persona=persona, code="not_allowed", error=what[:500])
        )

    async def find_tool(self, name: str, *, ask_servers: bool = False) -> Tool | None:
        """The tool that a name or alias leads to; with `ask_servers` also one of a server that was not asked yet."""
        registry = self.services.registry
        with suppress(CallError):
            try:
                return registry.resolve(name)
            except UnknownTool:
                if ask_servers and registry.late is not None and await registry.late(name):
                    return registry.resolve(name)
        return None

    def facts_alone(self) -> FactsFor:
        """Makes the facts of a call from its name and arguments alone, for examples and replays."""
        from toolgate.policy.explain import facts_from

        return facts_from(self.services.registry)

    def tried(self, config: Config) -> Policy:
        """What another configuration would decide here; it is not put in force."""
        return self._policy.tried(config)

    async def explain(
        self, tool: str, args: Mapping[str, Any] | None = None, persona: str | None = None
    ) -> Explanation:
        """Every line that policy considers for one call, and which decides. Runs nothing."""
        facts = await self.facts(tool, args or {}, self._persona(persona))
        return self.policy.explain(facts)

    async def facts(self, tool: str, args: Mapping[str, Any], persona: str) -> Facts:
        flow = Flow(tool, args, persona, None, Trail(), False, "c_explain")
        late = resolve(self.services, flow)
        if late is not None:
            await late
        aside = validate(self.services, flow)
        if aside is not None:
            await aside
        assert flow.facts is not None
        paused, found = await self.paused(), flow.facts
        changed = found.paths if found.tool.plan is not None and found.effects.writes else None
        return replace(found, paused=paused, changed=changed)

    def judge(
        self, tool: Tool, args: Mapping[str, Any] | None = None, persona: str | None = None,
        paused: Mapping[str, str] | None = None,
    ) -> Decision:  # fmt: skip
        """What policy says of such a call, as its arguments are given. Runs and records nothing; the gate judges
        again when the call is made."""
        return self.policy.decide(
            Facts(self._persona(persona), tool, args or {}, tool.effects, paused=paused or {})
        )

    async def refuse(self, tool: str, args: Mapping[str, Any], persona: str, error: CallError) -> Result:
        """Record an attempt that a face refuses before it is a call. Nothing runs."""
        return await self.pipeline.refuse(tool, args, persona, error)

    def _persona(self, persona: str | None) -> str:
        return persona or self._policy.config.default_persona or "nobody"

    # --- consent ------------------------------------------------------------------------------------------

    async def approvals(self) -> list[Question]:
        """Open questions, oldest first."""
        return await self.services.desk.waiting()

    async def answer(
        self, ident: str, answer: Literal["approve", "deny"], *, reason: str = "",
        scope: Scope | Mapping[str, Any] | None = None, by: str = "", channel: str = "library",
    ) -> str:  # fmt: skip
        """Approve once, refuse, or with `scope` approve and grant what the scope covers."""
        if answer not in ("approve", "deny"):
            raise InvalidArgs(f"{answer!r} is not an answer", "say `approve` or `deny`")
        if scope is not None and not isinstance(scope, Scope):
            try:
                scope = Scope(**scope)
            except TypeError as error:
                raise InvalidArgs(
                    f"the scope is wrong: {error}", "use args, paths, conversation, seconds, uses"
                ) from None
        return await self.services.desk.answer(
            ident, answer == "approve", by=by, channel=channel, reason=reason, scope=scope
        )

    async def grants(self) -> list[Grant]:
        return await self.services.desk.grants()

    async def revoke(self, ident: str, *, reason: str = "", by: str = "", channel: str = "library") -> None:
        await self.services.desk.revoke(ident, by=by, channel=channel, reason=reason)

    async def pause(self, persona: str = "", *, reason: str = "", by: str = "") -> None:
        """Stop everything a persona does, or with no name everything at all, at once and in every process."""
        self._known(persona)
        await self.services.desk.pause(persona, by=by, reason=reason)

    async def resume(self, persona: str = "", *, by: str = "") -> None:
        await self.services.desk.resume(persona, by=by)

    def _known(self, persona: str) -> None:
        with suppress(Unavailable):  # whoever was there before the file broke can still be stopped
            self._policy.current()
        if persona:
            check_persona(persona, self.config)

    async def undo(
        self, *events: int | str, conversation: str = "", since: str = "", preview: bool = False,
        reason: str = "", wait: bool = True,
    ) -> Result:  # fmt: skip
        """Take back what calls did: those of these events or ids, all of a conversation, or all since a moment.

        All files as one, or nothing; itself a recorded call, and undoable. `preview` only says what it would do.
        """
        from toolgate.features.files import undo_api

        wanted = undo_api.Wanted(events, conversation, since, reason, wait)
        return await (undo_api.preview(self, wanted) if preview else undo_api.undo(self, wanted))

    async def artifacts(self, conversation: str = "", limit: int = 1000) -> Listed:
        """The files that calls changed, from the ledger, and whether they still are as it says."""
        from toolgate.features.files import artifacts

        return await artifacts.listed(self.services.ledger, self.services.files, conversation, limit)

    # --- secrets ------------------------------------------------------------------------------------------

    async def set_secret(
        self, name: str, value: str | bytes, *, hosts: Iterable[str] = (), reveal: bool = False,
        by: str = "", channel: str = "library",
    ) -> bool:  # fmt: skip
        """Keep a value in the vault; whether it replaced one. A human's; a face must know that it is one."""
        from toolgate.project import vault_api

        return await vault_api.keep(self, name, value, tuple(hosts), reveal, by or whoami(), channel)

    async def remove_secret(self, name: str, *, by: str = "", channel: str = "library") -> None:
        from toolgate.project import vault_api

        await vault_api.remove(self, name, by or whoami(), channel)

    def redact(self, value: Any) -> Any:
        """The value without the vault's secrets, in whatever form."""
        return self.services.redactor.redact(value)

    # --- other servers ------------------------------------------------------------------------------------

    def servers(self) -> list[dict[str, Any]]:
        """The MCP servers behind this gate: state, health, tools, what is held and why. Starts nothing."""
        return self.upstream.status() if self.upstream is not None else []

    async def approve_server(
        self, name: str, tools: Mapping[str, str], *, by: str = "", channel: str = "library"
    ) -> Result:
        """Approve what `upstream.diff(name)` showed: tools by name, each with the hash of its definition. A
        recorded call, and a human's; a face must know that it is one."""
        args = {"server": name, "tools": dict(tools), "by": by or whoami(), "channel": channel}
        return await self.call("servers.approve", args, persona=HUMAN)

    # --- long work ----------------------------------------------------------------------------------------

    @property
    def jobs(self) -> Jobs:
        """Jobs and schedules."""
        found: Jobs = self.feature("jobs")
        return found

    # --- the record ---------------------------------------------------------------------------------------

    async def note(self, by: str, text: str, data: Mapping[str, Any]) -> int:
        """Record an annotation of a feature's, without the vault's secrets; the event's number."""
        clean = self.redact({"text": text, "data": dict(data)})
        work = Work(lambda view: view.emit(Noted(type=by, rationale=clean["text"], data=clean["data"])))
        await self.services.ledger.do(work)
        return work.rows[0].seq

    @property
    def traces(self) -> Traces:
        """The programs that were run: `add` stores one, in redacted words."""
        found: Traces = self.feature("programs")
        return found

    async def verify(
        self,
        checkpoints: Iterable[Checkpoint] = (),
        progress: Progress | None = None,
        archives: Iterable[Iterable[Row]] = (),
    ) -> Report:
        ledger = self.services.ledger
        from toolgate.ledger.verify import verify

        return await verify(ledger.backend, ledger.keys, checkpoints, progress, ledger.clock.now(), archives)

    async def archive(self, directory: Path, keep_days: int = 30, *, by: str = "") -> Segment:
        """Move events older than that, and needed by nothing, into a signed file in `directory`."""
        from toolgate.ledger.archive import archive

        ident = trust.project_id(self.root)
        return await archive(self.services.ledger, ident, directory, keep_days, by or whoami())

    async def resolve(
        self, call: str | int, outcome: Literal["happened", "not"], *, reason: str = "", by: str = ""
    ) -> int:
        """Say how an unknown call ended; the event's number comes back."""
        ledger, still = self.services.ledger, partial(still_runs, self.services)
        work = await ResolveWork.make(ledger, str(call), outcome, by or whoami(), reason, still)
        await ledger.do(work)
        return next(row.seq for row in work.rows if row.kind == "resolved")

    async def rotate_key(self, *, by: str = "") -> tuple[int, int]:
        """Seal what follows with a new key: its version, and the event that says so."""
        ledger = self.services.ledger
        if ledger.keys.source == "memory":
            raise Unavailable("this ledger's key is kept in memory only", "there is nothing to rotate")
        from toolgate.ledger.keys import rotate

        return await rotate(ledger, Path(ledger.keys.source), by or whoami())
