"""What a database consists of: its definitions, the run that answers them, and the runner."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

from headrace.algebra.nodes import Plan
from headrace.algebra.tunings.loss import Loss
from headrace.engine.access.policy import Policy
from headrace.engine.catalog.cascade import without, without_unclaimed
from headrace.engine.catalog.claims import is_stored, with_input, with_query
from headrace.engine.catalog.consistency import at_level
from headrace.engine.catalog.definitions import Definitions
from headrace.engine.catalog.query_changes import adding_query, pausing, renaming, with_sink
from headrace.engine.catalog.read_queries import ReadQueries, check_unread
from headrace.engine.catalog.records import DefinitionTexts
from headrace.engine.catalog.sinks import DefinedSink
from headrace.engine.catalog.texts import sink_query
from headrace.engine.inputs.inputs import Input, TemporaryFolders
from headrace.engine.inputs.relations import RelationTable, columns_read
from headrace.engine.inputs.times import start_of
from headrace.engine.planning.compiler import Compiled, Compiler
from headrace.engine.planning.decisions import decided
from headrace.engine.planning.holds import chosen_holds
from headrace.engine.planning.partitions import notes_on_partitions
from headrace.engine.planning.samples import unseen
from headrace.engine.planning.silence import notes_on_silence, place_of
from headrace.engine.query.choices import (
    Choices,
    choices_of,
    decisions_in,
    holds_in,
    stored_catalog,
    stored_choices,
)
from headrace.engine.query.query import Query
from headrace.engine.run.answers import Answers
from headrace.engine.run.execution import Execution, Settings
from headrace.engine.shown.status import Status
from headrace.engine.views.readable import View
from headrace.engine.views.subscription import Subscription
from headrace.engine.why.unused import LOOKED_AT
from headrace.engine.why.why import Why, not_taken_in, why
from headrace.errors import EndedError, LanguageError, Position, UserError, warn
from headrace.expressions.user import UserAggregate, UserFunction
from headrace.language.catalog import Catalog
from headrace.language.notes import Note
from headrace.language.parsing.pieces import Piece
from headrace.language.quoted_names import with_backticks
from headrace.language.statements.catalog import CatalogKind
from headrace.language.statements.past import StartClause
from headrace.language.statements.statements import STRONG, Consistency, CreateQuery, Heartbeats, Statement
from headrace.language.syntax import Name
from headrace.language.syntax import QuerySyntax as Syntax
from headrace.lowering.lower import Holds
from headrace.lowering.query_id import id_of
from headrace.runtime.delivery.contract import Attachment, Retry, SinkLike
from headrace.runtime.delivery.deliveries import attachment_of
from headrace.runtime.driver.beside.catch_up import Ahead
from headrace.runtime.driver.endless.withdrawal import check_wanted
from headrace.runtime.driver.facts.seen_rows import SeenRun, WantedColumns
from headrace.runtime.intake.streams import is_retained
from headrace.runtime.journal.definition import Definition
from headrace.runtime.journal.described_query import WarmStart
from headrace.runtime.journal.gap import Gap
from headrace.runtime.results.answer_sizes import AnswerSizes
from headrace.runtime.results.changes import Change
from headrace.runtime.results.frames import FrameMaker
from headrace.runtime.results.reader import ResultReader
from headrace.runtime.tasks.runner import FormatReader, Runner
from headrace.scheduling.priority import USUAL, Priority
from headrace.schema import Field, Schema, type_named

_PATIENCE: Final = 0.5
"""The end of an epoch is waited for so many seconds where a text is compiled; others wait for that."""


class Core:
    """The definitions of a database and what answers them; a `Database` is its face to programs.

    Args:
        make_runner: makes the runner when it is first needed.
        settings: how runs are carried out.
        make: makes what a definition of a durable store says.

    Attributes:
        lock: held while definitions change, and while a run begins.
        settings: how runs are carried out.
        compiler: finds queries that were compiled before.
        folders: what was handed over as a table, in files.
        execution: the run that goes on or was the last; None before the first.
    """

    def __init__(
        self,
        make_runner: Callable[[], Runner],
        settings: Settings,
        make: Callable[[Core, Definition], None],
    ) -> None:
        self._make_runner = make_runner
        self._make = make
        self._definitions: Definitions | None = None
        self._making = False
        self._made: Runner | None = None
        self._attachments: list[Attachment] = []
        self._stored: Mapping[str, Choices] | None = None
        self._replaced: dict[str, Callable[[Definitions], Definitions]] = {}
        self.lock = threading.RLock()
        self._gathering = False
        self._closed = False
        self._promised: set[str] = set()
        self._given = 0
        self.settings = settings
        # Before anything else: nothing of a store that is not whole is served.
        self._catalog, self._made_before = stored_catalog(settings.storage)
        self.compiler = Compiler()
        self.folders = TemporaryFolders()
        self.execution: Execution | None = None

    def check_open(self) -> None:
        """See that the database has not been closed.

        Raises:
            UserError: it has.
        """
        if self._closed:
            raise UserError("the database is closed", hint="connect once more: headrace.connect(...)")

    def close(self) -> None:
        """Stop everything and remove all temporary files; a durable store stays."""
        self._closed = True
        self._forget()
        if self._made is not None:
            self._made.close()
            self._made = None
        self.folders.close()

    @property
    def definitions(self) -> Definitions:
        """All streams, relations and queries; replaced as a whole. First of all those of the store."""
        if self._definitions is None:
            with self.lock:
                if self._definitions is None:
                    records = DefinitionTexts()
                    for definition in self._catalog:
                        records = records.stored(definition)
                    known = Definitions(records=records, made=self._made_before)
                    self._definitions = known.with_defaults(self.settings.dialect)
                    self.make_waiting()
        assert self._definitions is not None
        return self._definitions

    @definitions.setter
    def definitions(self, new: Definitions) -> None:
        self._definitions = new

    def make_waiting(self) -> None:
        """Make what the store has defined and could not be made yet, as far as it can be made now."""
        with self.lock:
            if self._making:
                return
            self._making = True
            try:
                for key in tuple(self.definitions.records.waiting):
                    self._make_stored(key)
            finally:
                self._making = False

    def _make_stored(self, key: str) -> None:
        definition = self.definitions.records.known[key]
        try:
            self._make(self, definition)
        except UserError as error:
            records = self.definitions.records.lacking(key, _reason(error))
            self.definitions = replace(self.definitions, records=records)
        else:
            query = self.definitions.find_query(definition.name) if definition.paused else None
            if query is not None and not self.definitions.is_paused(query):
                self.change(pausing(self.definitions, query, keeps_input=definition.keeps_input))

    def take_in(
        self, made: Input | RelationTable, given: Definition, position: Position | None = None
    ) -> None:
        """Take in a stream or a relation.

        Args:
            made: what it is read from.
            given: how it is defined.
            position: where, if that is a text.

        Raises:
            LanguageError: the name is taken, or the store has another one of it.
        """
        self.check_open()
        with self.lock:
            known = self.definitions
            if self.is_stored(given):
                self.definitions = with_input(known, made, given, position)
                return
            self.check_new_name(given, position)
            if isinstance(made, RelationTable):
                new = known.with_relation(made, position)
            else:
                new = known.with_input(made, position)
            given = replace(given, read=columns_read(made))
            self.change(self.claiming(new.recording(given), given))
        self.make_waiting()

    def statements(self, text: str) -> list[Statement | Piece]:
        """The statements of a text, in the dialect that was set last.

        Raises:
            LanguageError: the text is malformed.
        """
        self.check_open()
        return self.compiler.statements(with_backticks(text, self.definitions.catalog.quotes_names))

    def check_new_name(self, given: Definition, position: Position | None) -> None:
        """Refuse a stream or a relation under the name of a query that others read.

        Raises:
            LanguageError: it has such a name.
        """
        if not self._making:
            what = f"{given.name} cannot be the name of a {given.kind.lower()}"
            check_unread(self.definitions, given.name, what, position)

    @property
    def is_making(self) -> bool:
        """Whether definitions that a store holds are being made."""
        return self._making

    def is_stored(self, given: Definition) -> bool:
        """Whether a store has had what is given since before the database was opened."""
        return not self._making and is_stored(self.definitions, given)

    def known_columns(self, given: Definition, declared: Schema | None) -> Schema | None:
        """The columns of the rows of a stream or a relation that a store has; None where it has none.

        Args:
            given: how it is defined.
            declared: the columns that are declared, or None.
        """
        known = self.definitions.records.known.get(given.key)
        if known is None or not (self._making or self.is_stored(given)):
            return None
        if declared is not None or not known.read:
            return declared
        return Schema(tuple(Field(name, type_named(dtype)) for name, dtype in known.read))

    def claiming(self, new: Definitions, given: Definition) -> Definitions:
        """Definitions with one that somebody has given, unless it is made because the store has it."""
        return new if self._making else replace(new, records=new.records.claimed(given.key))

    @property
    def running(self) -> bool:
        """Whether an endless run is going on."""
        return self.execution is not None and self.execution.running

    @property
    def attachments(self) -> tuple[Attachment, ...]:
        """The sinks to which queries deliver: those of Python, and those of SQL."""
        return (*self._attachments, *(sink.attachment for sink in self.definitions.sinks.values()))

    @property
    def known_status(self) -> Status | None:
        """The status as of the last commit; None if nothing has been run."""
        return None if self.execution is None else self.execution.status

    @property
    def status(self) -> Status:
        """The status as of the last commit.

        Raises:
            UserError: nothing has been run yet.
        """
        status = self.known_status
        if status is None:
            raise UserError("nothing has been run yet", hint="call run() or start() first")
        return status

    @property
    def started(self) -> Execution:
        """The run that goes on or was the last.

        Raises:
            EndedError: a run is not there for now, such as between two tries to start it.
            UserError: nothing has been started, and there is nothing to answer.
        """
        self.check_open()
        if self.execution is None:
            kind = EndedError if self.definitions.answered else UserError
            raise kind("the database is not started", hint="call start() first")
        return self.execution

    def register(
        self,
        name: str | None,
        asked: Syntax | Piece,
        position: Position | None,
        policy: Policy,
        *,
        warm: bool = False,
        heartbeats: Heartbeats = Heartbeats.OPERATOR,
        consistency: Consistency = STRONG,
        start: StartClause | None = None,
        loss: Loss | None = None,
        priority: Priority = USUAL,
        given: Callable[[str], Definition],
    ) -> Query:
        """Take in a query.

        Args:
            name: its name; if None, one is made.
            asked: the query.
            position: of the statement.
            policy: what it may reach.
            warm: whether it is to take over the state of a query that runs.
            heartbeats: how far its operators run ahead of each other.
            consistency: how long its answer waits for rows that come late.
            start: since when it answers; from now on if None.
            loss: what it bears of rows that are left out; None if none may be.
            priority: its share of the processor, and how late its answer may be.
            given: how it is defined under a name.

        Raises:
            UserError: it is wrong, its name is taken, a stream cannot be started, or there is no state to
                take over.
        """
        with self._named(name) as chosen:
            with self.lock:
                definition = given(chosen)
                stored = self.is_stored(definition)
                if warm and not (self.running or stored):
                    raise LanguageError(
                        f"{chosen} cannot start WARM: no endless run is going on",
                        position=position,
                        hint="leave out WARM; all queries that a run begins with start together",
                    )
                found = self.compiled(asked, policy, definition if stored or self._making else None, loss)
                identity = self._identity_of(definition)
                known = self._stored_choices().get(identity)
                if found.decisions is not None and known is not None:
                    found = found.decided(decisions_in(known))
                choices = choices_of(found.decisions, self._holds(found.optimized, heartbeats, known or {}))
                since = None if start is None else start_of(start, found.plan.domain)
                query = Query(
                    self, identity, chosen, found.plan, found.notes, choices, place_of(asked),
                    warm, heartbeats, since, is_stream=found.is_stream,
                )  # fmt: skip
                inputs, is_new = self.definitions.inputs, not (stored or self._making)
                plan = at_level(found.optimized, consistency, inputs, warm=warm, new=is_new)
                if stored:
                    self.definitions, query = with_query(
                        self.definitions, query, plan, definition, position, priority
                    )
                    return query

            def made() -> Definitions:
                new = adding_query(self.definitions, query, plan, found.streams, position, priority)
                return self.claiming(new.recording(replace(definition, id=identity)), definition)

            self.change_when_ready(made, chosen)
            return query

    def _identity_of(self, definition: Definition) -> str:
        """The identity of a query that is taken in: its own if a store has it, else one that none has had."""
        known = self.definitions.records.known.get(definition.key)
        if known is not None:
            return known.id
        if not self._catalog and definition.name in self._stored_choices():
            # An earlier Headrace has not written what is defined; its queries have names for identities.
            return definition.name
        self._given = max(self._given, self.definitions.made) + 1
        return id_of(definition.name, self._given)

    @contextmanager
    def _named(self, name: str | None) -> Iterator[str]:
        """The name of a query that is being taken in; one that is made is nobody else's meanwhile."""
        if name is not None:
            yield name
            return
        with self.lock:
            made = self.definitions.free_name(self._promised)
            self._promised.add(made)
        try:
            yield made
        finally:
            self._promised.discard(made)

    def drafted(self, made: CreateQuery, known: Query | None, policy: Policy) -> tuple[Query, Plan, Compiled]:
        """The query of a CREATE [OR REPLACE] QUERY, its plan at its level, and what its text means.

        Args:
            made: the statement.
            known: the query that it is to replace, which is decided alike if it is the same; None without.
            policy: what it may reach.

        Raises:
            LanguageError: it is wrong.
        """
        found = self.compiled(made.query, policy, loss=made.loss)
        same = known is not None and known.plan == found.plan and known.heartbeats is made.heartbeats
        choices = known.choices if known is not None and same else {}
        if same and found.decisions is not None:
            found = found.decided(decisions_in(choices))
        if not same or made.heartbeats is not Heartbeats.OPERATOR:
            chosen = holds_in(choices) or self._holds(found.optimized, made.heartbeats, {})
            choices = choices_of(found.decisions, chosen)
        name = made.name.text if known is None else known.name
        identity = id_of(name, self.definitions.made + 1) if known is None else known.id
        since = None if made.start is None else start_of(made.start, found.plan.domain)
        query = Query(
            self, identity, name, found.plan, found.notes, choices, place_of(made.query), made.warm,
            made.heartbeats, since, is_stream=found.is_stream,
        )  # fmt: skip
        inputs = self.definitions.inputs
        return query, at_level(found.optimized, made.consistency, inputs, warm=made.warm, new=not same), found

    def sinks_of(self, query: str) -> tuple[str, ...]:
        """The names of the sinks that are attached to a query."""
        return tuple(part.name for part in self.attachments if part.query == query)

    def compiled(
        self,
        asked: Syntax | Piece,
        policy: Policy,
        given: Definition | None = None,
        loss: Loss | None = None,
    ) -> Compiled:
        """What a query means, and how it would run if it were new.

        Args:
            asked: the query.
            policy: what it may reach.
            given: how it is defined, if a store has it: columns that came after it are not meant in it.
            loss: what it bears of rows that are left out; None if none may be.

        Raises:
            LanguageError: it is wrong.
        """
        defined, catalog = self.definitions, policy.visible(self.catalog_of(given))
        return self.compiler.compiled(
            asked, catalog, lambda plan: decided(defined, plan, self._look_shortly), loss, self._with_rows()
        )

    def look(self, wanted: WantedColumns, rows: int, patience: float | None = None) -> SeenRun:
        """The findings of the endless run that goes on about streams; nothing without one.

        Args:
            wanted: the streams and their columns.
            rows: about so many rows of each are looked at.
            patience: so long the end of an epoch is waited for (seconds); as long as it takes if None.

        Raises:
            StoreError: what the run keeps cannot be read.
            UserError: the run has ended meanwhile, or an epoch takes longer.
        """
        return self.started.seen(wanted, rows, patience) if self.running else unseen(wanted, rows)

    def _look_shortly(self, wanted: WantedColumns, rows: int) -> SeenRun:
        """The same for who holds others up, who have texts compiled."""
        return self.look(wanted, rows, _PATIENCE)

    def _with_rows(self) -> frozenset[str]:
        """The streams of which the endless run that goes on has had rows."""
        execution = self.execution
        return (
            frozenset(execution.run.totals.arrivals)
            if execution is not None and self.running
            else frozenset()
        )

    def catalog_of(self, given: Definition | None = None) -> Catalog:
        """The catalog of all that FROM can name.

        Args:
            given: without columns of streams that came after what a store has under the name of this.
        """
        defined = self.definitions
        catalog = replace(defined.catalog, queries=ReadQueries(defined))
        return catalog if given is None else catalog.hiding(defined.hidden_from(given))

    def drop(self, kind: CatalogKind, name: str, position: Position | None, *, cascade: bool = False) -> None:
        """Drop a stream, a relation, a query or a sink; a query once its sinks have taken everything.

        Args:
            kind: which of them.
            name: its name.
            position: where it is written, if that is a text.
            cascade: whether what is written over it goes as well.

        Raises:
            LanguageError: there is no such thing, or something is written over it.
            DeliveryError: a sink of a query that goes has not taken everything.
        """
        if kind is CatalogKind.SINK:
            self.drop_sink(name, position)
            return
        with self.lock:
            after = without(self.definitions, kind, name, position, cascade=cascade)
        self._let_go(after)

    def sync(self) -> None:
        """Drop what a store has and nobody has given again since the database was opened."""
        with self.lock:
            after = without_unclaimed(self.definitions)
        self._let_go(after)

    def take_sink(self, sink: DefinedSink, given: Definition, position: Position | None) -> None:
        """Take in a sink; the changes of its query go there from then on.

        Args:
            sink: the sink.
            given: how it is defined.
            position: where, if that is a text.

        Raises:
            LanguageError: there is one of its name.
            UserError: it cannot be used, or would miss epochs; it is not defined then.
        """
        with self.lock:
            self._check_results()
            before = self.definitions
            self.change(self.claiming(with_sink(before, sink, given, position), given))
            if self.execution is None or not self.running:
                return
            try:
                # Only now: what is killed from here on knows the sink, and opens it when it starts again.
                self.execution.attach(sink.attachment)
            except BaseException:
                self.change(before)
                raise

    def drop_sink(self, name: str, position: Position | None) -> str | None:
        """Drop a sink once it has taken what was committed.

        Args:
            name: its name.
            position: where it is written, if that is a text.

        Returns:
            Why it has not taken everything, or None if it has.

        Raises:
            LanguageError: there is no such sink.
        """
        with self.lock:
            sink = self.definitions.sinks.get(name.lower())
            self.change(without(self.definitions, CatalogKind.SINK, name, position))
        # Without the lock, since the sink may use it.
        execution = self.execution
        return None if sink is None or execution is None else execution.drop_sink(sink.attachment)

    @contextmanager
    def together(self, *, come: bool) -> Iterator[None]:
        """Let queries that come or go within it do so by one change of a run that is going on, at its end.

        Where rows of streams are kept, each query that comes is brought to the present over these by itself.

        Args:
            come: whether they come.

        Raises:
            UserError: the change cannot take effect; none of it has then.
        """
        if come and any(map(is_retained, self.definitions.streams.values())):
            yield
            return
        gone: set[str] = set()
        try:
            with self.lock:
                before, self._gathering = self.definitions, self.running
                try:
                    yield
                finally:
                    gathered, self._gathering = self._gathering, False
                    if gathered:
                        after, self.definitions = self.definitions, before
                        gone = self._move(after)
        finally:
            self._end_sinks(gone)

    def _let_go(self, after: Definitions) -> None:
        """Move on to definitions that lack some; queries go once their sinks have taken everything."""
        with self.lock:
            sinks = self.definitions.sinks
            gone = self._move(after)
        self._end_sinks(gone)
        execution = self.execution
        for name, sink in sinks.items():
            if name not in after.sinks and sink.attachment.identity not in gone and execution is not None:
                execution.drop_sink(sink.attachment)

    def _move(self, after: Definitions) -> set[str]:
        """Move on to other definitions; the queries that are gone with that, by identity."""
        before = self.definitions
        if after is not before:
            self.change(after)
        if self._gathering:
            return set()
        gone = {*before.queries} - {*after.queries}
        self._attachments = [part for part in self._attachments if part.identity not in gone]
        return gone

    def _end_sinks(self, gone: Iterable[str]) -> None:
        """Let sinks of queries that are gone take everything; without the lock, since they may use it."""
        execution = self.execution  # Another thread may let go of it meanwhile.
        if execution is not None:
            for query in sorted(gone):
                execution.drop_sinks(query)

    def define_function(self, user: UserFunction | UserAggregate) -> None:
        """Take a user's function or aggregate into the catalog."""
        with self.lock:
            catalog = self.definitions.catalog.define_function(user)
            self.definitions = replace(self.definitions, catalog=catalog)
        self.make_waiting()

    def change_when_ready(self, make: Callable[[], Definitions], name: str) -> bool:
        """Let definitions take effect with a query that may have to be brought to the present first.

        Others change definitions meanwhile; who has the lock held keeps them from that.

        Args:
            make: makes them of those of now; called with the lock held, twice if the query is brought there.
            name: the query's.

        Returns:
            Whether the query was brought to the present.

        Raises:
            UserError: the change cannot take effect, or what the query reads was dropped meanwhile.
        """
        with self.near_present(name):
            return self._change_when_near(make, name)

    def _change_when_near(self, make: Callable[[], Definitions], name: str) -> bool:
        with self.lock:
            new = make()
            running = self.execution is not None and self.execution.running and not self._gathering
            ahead = self.execution.ahead(new) if self.execution is not None and running else None
            if ahead is None:
                self.change(new)
                return False
        ahead.arrived.result()
        with self.lock:
            try:
                now = make()
                _require_same_streams(new, now, name)
                check_wanted()
            except BaseException:
                self.started.give_up(ahead)
                raise
            self.change(now, ahead)
        return True

    @contextmanager
    def near_present(self, name: str) -> Iterator[None]:
        """Let a query that is behind others come near the present, for a change of it.

        It takes as long as it takes, so that it is done before the lock is held: others may change
        definitions meanwhile.

        Args:
            name: the query's; nothing is done where there is none, or where it is not behind.

        Raises:
            EndedError: the run has ended meanwhile.
        """
        query, execution = self.definitions.find_query(name), self.execution
        if query is None or execution is None or not execution.running or self._gathering:
            yield
            return
        with execution.near_present(query.id):
            yield

    def change(self, new: Definitions, ahead: Ahead | None = None) -> None:
        """Let definitions take effect: at once, or between two epochs of a run that is going on.

        Args:
            new: the definitions.
            ahead: the query of them that has been brought to the present, if there is one.

        Raises:
            WithdrawnError: nobody waits for that any more; nothing has changed then.
        """
        check_wanted()
        if self._gathering:
            self.definitions = new
            return
        if self.execution is not None and self.execution.running:
            self.execution.change(new, ahead)
            self._stored = None
        self.definitions = new

    def set(self, settings: Settings, key: str, said: Definition | None) -> None:
        """Let runs go on in another way, from the next epoch on.

        Args:
            settings: how.
            key: what it is known by among the definitions.
            said: how it is defined; None where what holds is what holds if nothing is said.

        Raises:
            StoreError: it cannot be written; nothing has changed then.
        """
        known = self.definitions
        records = known.records.without(key) if said is None else known.records.having(said)
        new = replace(known, records=records)
        if not self._making:
            self.change(new if said is None else self.claiming(new, said))
        else:
            self.definitions = new
            if said is not None and said.name in settings.given:
                return
        self.settings = settings if self._making else replace(settings, given=settings.given - {_name(key)})
        if self.execution is not None:
            self.execution.settle(self.settings)

    def rename(self, name: Name, to: Name) -> None:
        """Give a query another name; its answer, sinks and subscriptions go on.

        Raises:
            LanguageError: there is no such query, there is one of the other name, or no run goes on by which
                its store hears of it.
            StoreError: it cannot be written; nothing has changed then.
        """
        with self.lock:
            query, after = self.renamed(name, to)
            old, new = query.name, to.text
            if old == new:
                return
            if self.execution is not None and self.running:
                self.execution.rename(after, query, new)
                self._stored = None
            self.definitions = after
            self._attachments = [
                replace(part, query=new) if part.identity == query.id else part for part in self._attachments
            ]
            query.name = new

    def renamed(self, name: Name, to: Name) -> tuple[Query, Definitions]:
        """A query, and what is defined once it has another name; see `rename`.

        Raises:
            LanguageError: as of `rename`.
        """
        self.make_waiting()
        query = self.definitions.query_named(name.text, name.position)
        if query.name == to.text:
            return query, self.definitions
        check_unread(self.definitions, query.name, f"{query.name} cannot be renamed", name.position)
        after = renaming(self.definitions, query, to)
        if not self.running and (self.execution is not None or self.is_known_to_store(query)):
            raise LanguageError(
                f"{query.name} has an answer, and no run is going on that could rename it",
                position=name.position,
                hint="call start() first",
            )
        return query, after

    def replace_later(self, query: Query, undo: Callable[[Definitions], Definitions]) -> None:
        """Let a query be replaced when the next run has begun with it, if none goes on and a store has it.

        Args:
            query: the query.
            undo: makes definitions with the one that is replaced.
        """
        if not self.running and self.is_known_to_store(query):
            self._replaced.setdefault(query.id, undo)

    def is_known_to_store(self, query: Query) -> bool:
        """Whether a durable store has a query, which is answered or paused."""
        if query.id in self._stored_choices():
            return True
        return query.id in {one.id for one in stored_catalog(self.settings.storage)[0]}

    def replace_waiting(self) -> None:
        """Replace what was to be replaced once a run goes on; where that fails, the run ends.

        Raises:
            UserError: a query cannot be replaced; the store has the other one.
        """
        while self._replaced:
            self._replaced.popitem()
            try:
                self.started.change(self._begun_with())
            except BaseException:
                self.started.stop(None)
                raise

    def _begun_with(self) -> Definitions:
        """The definitions with what was to be replaced once a run goes on as the store has it."""
        found = self.definitions
        for query, undo in self._replaced.items():
            if query in found.answered:
                found = undo(found)
        return found

    def runner(self) -> Runner:
        """What queries run on, made when it is first needed."""
        if self._made is None:
            self._made = self._make_runner()
        return self._made

    def read_stream(self, format: str, options: Mapping[str, str], schema: Schema | None) -> Any:
        """A streaming data frame of one of Spark's own formats."""
        return self._reader_of(format).read_stream(format, options, schema)

    def read_frame(self, format: str, options: Mapping[str, str]) -> Any:
        """A bounded data frame of one of Spark's own formats."""
        return self._reader_of(format).read_frame(format, options)

    def _reader_of(self, format: str) -> FormatReader:
        runner = self.runner()
        if not isinstance(runner, FormatReader):
            raise UserError(f"the format {format} needs Spark", hint="use the runner spark")
        return runner

    def _nothing_to_run(self) -> UserError:
        """The error where there is no query, or where all are paused."""
        paused = sorted(query.name for query in self.definitions.paused.values())
        if not paused:
            hint = "write a SELECT, or CREATE QUERY name AS SELECT ..."
            return UserError("there is no query to run", hint=hint)
        names = f"{'the query' if len(paused) == 1 else 'the queries'} {', '.join(paused)}"
        message = f"there is no query to run: {names} {'is' if len(paused) == 1 else 'are'} paused"
        return UserError(message, hint=f"ALTER QUERY {paused[0]} RESUME lets it go on")

    def new_execution(self, *, adapt: bool) -> Execution:
        """A run of all queries, in the place of the last one.

        Args:
            adapt: whether the queries of a durable store are changed to those that are defined.

        Raises:
            UserError: no query is defined, or an endless run is going on.
        """
        self.check_open()
        if self.running:
            raise UserError("the database is running already", hint="call stop() first")
        if not adapt and (waiting := self.definitions.records.queries()):
            name, definition = next(iter(waiting.items()))
            raise UserError(
                f"the query {name} cannot be answered: {self.definitions.records.waiting[definition.key]}",
                hint=f"what is read without it is not read again; DROP QUERY {name} if it is not wanted",
            )
        if waiting := self.definitions.records.queries():
            whys = self.definitions.records.waiting
            reasons = [f"{name} is paused: {whys[record.key]}" for name, record in waiting.items()]
            warn("\n".join(reasons))
        self._check_sinks()
        if not (self.definitions.answered or self.definitions.keeping_input):
            raise self._nothing_to_run()
        if not adapt and self._replaced:
            name = self.definitions.queries[next(iter(self._replaced))].query.name
            raise UserError(
                f"{name} is replaced by a query over the rows that arrive from then on",
                hint="replace it in an endless run: call start() instead of run()",
            )
        self._check_known()
        self._forget()
        self.execution = Execution(self.runner(), self.settings, self._begun_with(), adapt=adapt)
        try:
            self.execution.attach(*self.attachments)
        except BaseException:
            self._forget()
            raise
        return self.execution

    def _check_sinks(self) -> None:
        """See that no sink of the store is lacking whose query is answered.

        Raises:
            UserError: one is; without it its epochs might be gone when it is there again.
        """
        known = self.definitions
        for name, record in known.records.sinks().items():
            if known.find_query(sink_query(record) or "") is not None:
                raise UserError(
                    f"the sink {name} cannot be used: {known.records.waiting[record.key]}",
                    hint=f"DROP SINK {name} if it is not wanted",
                )

    def _check_known(self) -> None:
        """See that nobody else has defined something in the store since the database was opened.

        Raises:
            UserError: somebody has, which this run would drop.
        """
        records = self.definitions.records
        for definition in stored_catalog(self.settings.storage)[0]:
            known = records.known.get(definition.key)
            is_new = definition.key not in records.forgotten
            if known is not None:
                is_new = definition.id not in {known.id, *records.dropped}
            if is_new:
                raise UserError(
                    f"{definition.title} is new in the store {self.settings.storage}",
                    hint="another process has defined it meanwhile: connect again",
                )

    def reader(self, query: Query) -> ResultReader:
        """What has been committed for a query so far.

        Raises:
            UserError: the query has no answer: it was not run, or it failed.
        """
        return self._answers_of(query).reader(query)

    def newest(self, query: Query) -> int:
        """The newest timestamp that was read of a query's streams; see `Query.latest`."""
        return self._answers_of(query).newest(query)

    def frame(self, query: Query, view: View) -> Any:
        """A view of what has been committed for a query as a Spark data frame; see `Query.to_spark`."""
        runner = self.runner()
        if not isinstance(runner, FrameMaker):
            raise UserError(
                "the runner inline makes no Spark data frames",
                hint="give spark.createDataFrame the table of history(), or connect with the runner spark",
            )
        return runner.frame(self.reader(query), view, getattr(query, view))

    def forget_client(self, query: Query, client: str) -> None:
        """Keep nothing for a client of a query any more; see `Query.forget`."""
        self.started.forget_client(query, client)

    def follow(self, query: Query, from_epoch: int, client: str | None = None) -> Subscription[Change]:
        """The changes of a query from an epoch on, as they are committed; see `Query.subscribe`."""
        if client is not None:
            return self.started.attend(query, client, from_epoch)
        return self._answers_of(query).follow(query, from_epoch)

    def silence(self, plan: Plan, position: Position) -> tuple[Note, ...]:
        """Notes on what happens to a query by how the streams that it reads send; see `Query.notes`."""
        defined = self.definitions
        return (
            *notes_on_silence(defined.endless_of(plan), position),
            *notes_on_partitions(defined.topics_of(plan), position),
        )

    def warm_start(self, query: Query) -> WarmStart | None:
        """The start of a query that was given one, or whose operators began before it or after it."""
        if self.execution is None:
            return None
        queries = self.execution.run.reading.queries
        found = queries.warm.get(query.id)
        began = found is not None and found.since == queries.start_of(query.id)
        return None if began and query.start is None else found

    def gaps(self, query: Query) -> tuple[Gap, ...]:
        """The instants about which a query says nothing; see `Query.gaps`."""
        return () if self.execution is None else self.execution.run.reading.queries.gaps_of(query.id)

    def sizes(self, query: Query) -> AnswerSizes:
        """The sizes that the windows of a query have had; see `Query.history`."""
        return (
            AnswerSizes() if self.execution is None else self.execution.run.reading.queries.sizes_of(query.id)
        )

    def paused_at(self, query: Query) -> int | None:
        """Up to where the answer of a paused query is final (instant); None if no run has paused it."""
        paused = None if self.execution is None else self.execution.run.reading.queries.paused.get(query.id)
        return None if paused is None else paused.heartbeat

    def has_failed(self, query: Query) -> bool:
        """Whether a query has ended early."""
        return self.execution is not None and query.id in self.execution.run.reading.queries.failed

    def why_of(self, name: str, position: Position | None = None) -> Why:
        """Why the query of a name has no output, or no newer one; see `Query.why`.

        Args:
            name: the name.
            position: where it is written, if that is a text.

        Raises:
            LanguageError: there is no such query.
            UserError: nothing has been run yet, or no run has the query.
        """
        known = self.definitions
        for called, record in known.records.queries().items():
            if called.lower() == name.lower():
                hint = "define what is missing; it goes on by itself then"
                return not_taken_in(called, known.records.waiting[record.key], hint)
        return self.why(known.query_named(name, position))

    def why(self, query: Query) -> Why:
        """Why a query has no output, or no newer one; see `Query.why`.

        Raises:
            UserError: nothing has been run yet, or no run has the query.
        """
        name = query.name
        if self.definitions.is_paused(query) and self.paused_at(query) is None:
            return not_taken_in(
                name, "no run has taken it in yet", f"write ALTER QUERY {name} RESUME, and call start()"
            )
        if query.id not in self.definitions.queries:
            raise UserError(f"{name} was dropped", hint="read what is left of its answer")
        status, run = self.status, self.started.run
        plan = run.reading.queries.plans.get(query.id)
        return why(status, name, plan, self.started.newest_letters(LOOKED_AT))

    def deliver(
        self, query: Query, to: SinkLike, name: str | None, from_epoch: int, retry: Retry | None
    ) -> None:
        """Deliver a query's committed changes to a sink; see `Query.deliver`."""
        self._check_results()
        with self.lock:
            known = self.definitions.queries.get(query.id)
            if known is None or known.query is not query:
                raise UserError(f"{query.name} was dropped", hint="read what is left of its answer")
            others = self.attachments
            attachment = attachment_of(query.name, to, name, from_epoch, retry, others, of=query.id)
            if self.execution is not None and self.running:
                self.execution.attach(attachment)
            self._attachments.append(attachment)

    def _check_results(self) -> None:
        if not self.settings.run.keep_results:
            raise UserError("there is nothing to deliver", hint="connect without keep_results=False")

    def _holds(self, plan: Plan, heartbeats: Heartbeats, known: Choices) -> Holds | None:
        """Which operators of a new query wait for others; a restart goes by what the store remembers."""
        if heartbeats is Heartbeats.OPERATOR:
            return None
        stored = holds_in(known) if self.execution is None else None
        if stored is not None:
            return stored
        return chosen_holds(self.definitions, plan, heartbeats, lambda: self.known_status)

    def _stored_choices(self) -> Mapping[str, Choices]:
        """What the durable store remembers of its queries, which a restart decides in the same way."""
        if self._stored is None:
            self._stored = stored_choices(self.settings.storage)
        return self._stored

    def _answers_of(self, query: Query) -> Answers:
        self.check_open()
        if self.execution is None:
            raise UserError(f"{query.name} has no answer yet", hint="call run() first")
        return self.execution.answers

    def _forget(self) -> None:
        if self.execution is not None:
            self.execution.close()
            self.execution = None


def _require_same_streams(before: Definitions, after: Definitions, query: str) -> None:
    """See that what a query reads is still there.

    Raises:
        UserError: it is not.
    """
    known = before.find_query(query)
    assert known is not None
    for stream in before.queries[known.id].streams:
        same_stream = before.catalog.find(stream) is after.catalog.find(stream)
        if not same_stream or before.find_query(stream) is not after.find_query(stream):
            raise UserError(
                f"{stream} was dropped, or is another one, since {query} began to catch up with the present",
                hint="define it again",
            )


def _name(key: str) -> str:
    return key.partition(" ")[2]


def _reason(error: UserError) -> str:
    """Why something of a store cannot be made, without the place in a text that nobody sees."""
    return error.message + (f" ({error.hint})" if error.hint else "")
