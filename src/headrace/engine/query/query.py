"""A continuous query, as its user holds it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from html import escape
from types import MappingProxyType
from typing import Any, Final, Protocol, assert_never

import pyarrow as pa

from headrace.algebra.explain import explain
from headrace.algebra.nodes import Plan
from headrace.engine.query.choices import Choices, decisions_in, holds_in
from headrace.engine.shown.display import PlanText
from headrace.engine.views.readable import Readable, View, check_output
from headrace.engine.views.subscription import Subscription
from headrace.engine.why.why import Why
from headrace.errors import Position, ReplacedError, UserError
from headrace.language.notes import Note
from headrace.language.statements.statements import Heartbeats, Stage
from headrace.lowering.explain import explain_graph
from headrace.lowering.lower import NO_HOLDS, Holds, lower
from headrace.optimizer import rewrites_by
from headrace.optimizer.decisions import Decisions
from headrace.runtime.delivery.contract import Retry, SinkLike
from headrace.runtime.driver.change.wanted import AnswerStart
from headrace.runtime.journal.described_query import WarmStart
from headrace.runtime.journal.gap import Gap
from headrace.runtime.results.answer_sizes import AnswerSizes
from headrace.runtime.results.changes import Change
from headrace.runtime.results.instants import form_of
from headrace.runtime.results.past import as_of_epoch
from headrace.runtime.results.reader import ResultReader
from headrace.runtime.results.release import Finals, Settled
from headrace.schema import Schema
from headrace.time import BEGINNING, INFINITY, TimeDomain, format_instant

_BEGINNING: Final = Position(1, 1)


class AnswerSource(Protocol):
    """Where a query's answer is read: the database it belongs to."""

    def reader(self, query: Query) -> ResultReader:
        """What has been committed for a query so far."""
        ...

    def newest(self, query: Query) -> int:
        """The newest timestamp that was read of the query's streams (instant), BEGINNING if none was."""
        ...

    def frame(self, query: Query, view: View) -> Any:
        """A view of what has been committed, as a Spark data frame."""
        ...

    def follow(self, query: Query, from_epoch: int, client: str | None = None) -> Subscription[Change]:
        """The changes from an epoch on, or for a client with a name, as they are committed."""
        ...

    def forget_client(self, query: Query, client: str) -> None:
        """Keep nothing for a client of a query any more."""
        ...

    def deliver(
        self, query: Query, to: SinkLike, name: str | None, from_epoch: int, retry: Retry | None
    ) -> None:
        """Deliver committed changes to a sink."""
        ...

    def silence(self, plan: Plan, position: Position) -> tuple[Note, ...]:
        """Notes on what happens while streams that a query reads send nothing, as they are declared now."""
        ...

    def warm_start(self, query: Query) -> WarmStart | None:
        """How a query began, if it took over the state of another one."""
        ...

    def gaps(self, query: Query) -> tuple[Gap, ...]:
        """The instants about which a query says nothing."""
        ...

    def sizes(self, query: Query) -> AnswerSizes:
        """The sizes that a query's windows within bounds have had."""
        ...

    def why(self, query: Query) -> Why:
        """Why a query has no output, or no newer one."""
        ...


class Query(Readable):
    """A continuous query and its answer.

    Attributes:
        id: its identity, which no other query of its database ever has.
        name: unique in its database; ALTER QUERY ... RENAME changes it.
        plan: as it was written, bound to the streams' columns.
        choices: what was decided about how it runs that does not follow from its text.
        warm: whether it is to take over the state of a query that runs.
        heartbeats: how far its operators run ahead of those that are to use their results.
        start: since when it answers where others go on already; from now on if None.
        is_stream: whether others that read it read a stream of events, and not a content that changes.
    """

    def __init__(
        self,
        answers: AnswerSource,
        identity: str,
        name: str,
        plan: Plan,
        notes: tuple[Note, ...] = (),
        choices: Choices = MappingProxyType({}),
        position: Position = _BEGINNING,
        warm: bool = False,
        heartbeats: Heartbeats = Heartbeats.OPERATOR,
        start: AnswerStart | None = None,
        *,
        is_stream: bool = False,
    ) -> None:
        self._answers = answers
        self.id = identity
        self.name = name
        self.plan = plan
        self.choices = choices
        self._notes = notes
        self._position = position
        self.warm = warm
        self.heartbeats = heartbeats
        self.start = start
        self.is_stream = is_stream

    def _gaps(self) -> tuple[Gap, ...]:
        return self._answers.gaps(self)

    def _sizes(self) -> AnswerSizes:
        return self._answers.sizes(self)

    def noted(self, other: Query) -> None:
        """Take over the notes of the same query as it was given elsewhere, with their places there."""
        self._notes, self._position = other._notes, other._position

    def described(self) -> tuple[str, str, str]:
        """The query's name, its columns and how far its answer has come, as texts."""
        name, columns, answer = super().described()
        start = self.warm_start
        if start is None:
            return name, columns, f"{answer}{self._lacking()}"
        if self.start is not None and not self.start.now:
            return name, columns, f"{answer}; {self._exact_from(start.answers_from)}"
        since = f"over the rows since epoch {start.since}"
        if start.answers_from == BEGINNING:
            return name, columns, f"{answer}; {since}"
        return name, columns, f"{answer}; {since}, from {format_instant(start.answers_from, self.domain)} on"

    def _lacking(self) -> str:
        """From which instant on it is exact, where it began while its streams went on; nothing else."""
        exact = next((gap.exact for gap in reversed(self._gaps())), None)
        if exact is None:
            return ""
        if exact == INFINITY:
            return "; it lacks rows from before it was created"
        return f"; exact from {format_instant(exact, self.domain)} on"

    def _exact_from(self, answers_from: int) -> str:
        """From which instant on it answers over rows from before it."""
        if answers_from == BEGINNING:
            return "from the beginning"
        return f"exact from {format_instant(answers_from, self.domain)} on"

    def _repr_html_(self) -> str:
        answer = super()._repr_html_()
        notes = "".join(f"<div>note at {escape(str(note))}</div>" for note in self.notes)
        return (answer or f"{self._html_of_columns()}{self.explain('logical')._repr_html_()}") + notes

    @property
    def notes(self) -> tuple[Note, ...]:
        """What it does that its author may not expect, such as a join of streams without windows; each with
        its place in the text and what to write if something else is meant.

        What can hold it back for ever follows from how its streams are declared now.
        """
        return (*self._notes, *self._answers.silence(self.plan, self._position))

    @property
    def warm_start(self) -> WarmStart | None:
        """How it began, if it took over the state of another one; None if it did not, or has yet to run."""
        return self._answers.warm_start(self)

    @property
    def schema(self) -> Schema:
        """The answer's columns."""
        return self.plan.schema

    @property
    def domain(self) -> TimeDomain:
        """What the answer's instants count."""
        return self.plan.domain

    @property
    def is_events(self) -> bool:
        """Whether the answer is a stream of events, whose rows are of an instant each."""
        return form_of(self.plan).is_events

    def to_spark(self, view: View = "history") -> Any:
        """The answer as a Spark data frame of the session that the queries run on.

        `history` and `changes` are read by Spark's tasks from where results lie; nothing passes through this
        process, and the rows come in no order. The frame can be used until the database is closed.

        Args:
            view: as of `to_pandas`.

        Raises:
            UserError: the queries do not run on Spark, there is no such view, or as its method does.
        """
        self._check_view(view)
        return self._answers.frame(self, view)

    def explain(self, stage: str = "optimized") -> PlanText:
        """The plan as text: `logical`, `optimized` or `physical`.

        Raises:
            UserError: there is no such stage.
        """
        if stage.upper() not in Stage.__members__:
            raise UserError(f"there is no stage {stage}", hint="ask for logical, optimized or physical")
        decisions, holds = decisions_in(self.choices), holds_in(self.choices) or NO_HOLDS
        return PlanText(explain_plan(self.plan, decisions, Stage[stage.upper()], holds))

    def subscribe(
        self, from_epoch: int = 1, output: str = "open", *, client: str | None = None
    ) -> Subscription[Change]:
        """The changes of an endless run, epoch by epoch, with the heartbeat each one ends at.

        Waits for the next epoch, with `for` or `async for`; ends when the database is stopped.

        Args:
            from_epoch: the first epoch that is wanted; a reader that has seen epoch e goes on with e + 1. The
                query's first epoch means the oldest one that is kept.
            output: `open` or `final`, as of `changes`.
            client: the name of a reader whom the store remembers: it goes on behind the last epoch that it
                had, after a restart as well. It has an epoch when it asks for the next one; one in which it
                was cut off comes again. `from_epoch` is where a new one begins. Results are kept for it while
                it is away, with `retain_epochs` for ten times as many epochs.

        Raises:
            ReplacedError: at its end, if a query has taken its place in which its answer does not go on.
            UserError: an epoch that is due is no longer kept (`retain_epochs`), or what ended the run.
        """
        check_output(output)
        if client is not None and not client:
            raise UserError("a client has a name that is not empty", hint="leave out client, or name it")
        if client is not None and output != "open":
            raise UserError("the store remembers readers of what is open", hint="leave out output, or client")
        if output == "open":
            return self._answers.follow(self, from_epoch, client)
        changes = self._answers.follow(self, 1)
        return Subscription(self._settled(changes, from_epoch), changes.close)

    def _settled(self, changes: Subscription[Change], from_epoch: int) -> Iterator[Change]:
        """The part of changes that no input in order takes back."""
        settled, known = Settled(self._reader().form.schema), False
        for change in changes:
            reader, elements = self._reader(), change.elements
            if not known and change.epoch > reader.start:
                # What came before is no longer kept epoch by epoch.
                elements = as_of_epoch(reader, change.epoch).content()
            known = True
            elements = settled.next(elements, change.heartbeat, change.horizon)
            if change.epoch >= from_epoch:
                rows = reader.change_table(change.epoch, elements)
                yield replace(change, elements=elements, rows=rows, watermark=settled.watermark)

    def forget(self, client: str) -> None:
        """Keep nothing for a client any more; the name is a new one then.

        Raises:
            UserError: there is no such client, or the database is not started.
        """
        self._answers.forget_client(self, client)

    def follow(self, view: str = "history", *, begun: bool = False) -> Subscription[pa.Table]:
        """The rows of an endless run as they become final, for `for` or `async for`.

        Waits, and ends when the database is stopped.

        Args:
            view: `history` gives each row of the history once, when its end has passed, and at the end those
                that are still open, up to the heartbeat; `changes` gives the elements as they are released.
            begun: whether the rows that hold at the first heartbeats are given at once, with NULL as
                `valid_to`, while there are no others; they come again when they end.

        Raises:
            UserError: there is no such view, or what ended the run.
        """
        if view not in ("history", "changes"):
            raise UserError(f"there is no view {view} to follow", hint="follow history or changes")
        changes = self.subscribe()
        return Subscription(self._follow(view, begun, changes), changes.close)

    def _follow(self, view: str, begun: bool, changes: Subscription[Change]) -> Iterator[pa.Table]:
        reader = self._reader()
        finals = Finals(reader.form.schema)
        replaced: ReplacedError | None = None
        while True:
            try:
                change = next(changes, None)
            except ReplacedError as error:
                change, replaced = None, error
            if change is None:
                break
            if view == "changes":
                yield change.rows
            else:
                final = finals.next(change.elements, change.heartbeat)
                if begun and not len(final):
                    final = finals.begun()
                begun = begun and not len(final)
                yield reader.history_table(final)
        if view != "changes":
            yield reader.history_table(finals.rest())
        if replaced is not None:
            raise replaced

    def deliver(
        self, to: SinkLike, name: str | None = None, from_epoch: int = 1, retry: Retry | None = None
    ) -> None:
        """Deliver the changes of every epoch to a sink, after its commit and in order.

        In an endless run this goes on in the background, at once if it is running already; with `run` it
        happens at its end. On a durable store the sink continues where it was, whatever happened to the run.

        Args:
            to: a sink such as `FileSink`, or a function `(epoch, heartbeat, table)`; the promise of each
                is documented with it. A sink is for one query.
            name: what the sink is called, and known by after a restart; its own name if None.
            from_epoch: the first epoch it gets, if it is new in this store.
            retry: what happens when it fails; if None, it is tried again until the run is over.

        Raises:
            UserError: the name is taken or no name, or the sink cannot be used.
        """
        self._answers.deliver(self, to, name, from_epoch, retry)

    def why(self) -> Why:
        """Why there is no output, or no newer one: what the answer waits for, and where rows are lost.

        Raises:
            UserError: the query has not been run yet.
        """
        return self._answers.why(self)

    def _reader(self) -> ResultReader:
        return self._answers.reader(self)

    def _newest(self) -> int:
        return self._answers.newest(self)


def with_notes(text: str, notes: Iterable[Note]) -> str:
    """A plan as text, and below it what its author may not expect."""
    return "\n".join([text, *(f"-- note at {note}" for note in notes)])


def explain_plan(plan: Plan, decisions: Decisions, stage: Stage | None, holds: Holds = NO_HOLDS) -> str:
    """A plan as text.

    Args:
        plan: as it was written.
        decisions: what was decided about how it runs.
        stage: as written, optimized with the rewrites that led there, or as it runs; all three for None.
        holds: which of its operators wait for others.
    """
    if stage is Stage.LOGICAL:
        return explain(plan)
    steps = rewrites_by(plan, decisions)
    optimized = steps[-1][1] if steps else plan

    def shown(stage: Stage) -> str:
        match stage:
            case Stage.LOGICAL:
                return explain(plan)
            case Stage.OPTIMIZED:
                return "".join(f"-- {rule}\n" for rule, _ in steps) + explain(optimized)
            case Stage.PHYSICAL:
                return explain_graph(lower({"result": optimized}, holds={"result": holds}))
            case _:
                assert_never(stage)

    if stage is not None:
        return shown(stage)
    return "\n".join(f"== {part.value.lower()} ==\n{shown(part)}" for part in Stage)
