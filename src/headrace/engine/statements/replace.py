"""CREATE OR REPLACE QUERY and EXPLAIN REPLACE: another query under the name of one that is there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Final

from headrace.algebra.explain import describe
from headrace.algebra.nodes import Plan
from headrace.algebra.properties import key_of
from headrace.algebra.tunings.loss import Loss
from headrace.engine.access.policy import Policy
from headrace.engine.catalog.definitions import Definitions
from headrace.engine.catalog.query_changes import adding_query, replacing
from headrace.engine.catalog.read_queries import check_unread
from headrace.engine.catalog.texts import definition_of
from headrace.engine.explain.room import room_lines
from headrace.engine.query.query import Query
from headrace.engine.run.core import Core
from headrace.engine.statements.resize import sizes_begun_with
from headrace.errors import LanguageError
from headrace.language.statements.catalog import CatalogKind
from headrace.language.statements.statements import CreateQuery
from headrace.runtime.driver.change.beginning.boundary import Beginning, Boundary
from headrace.runtime.driver.change.beginning.kept_input import KeptInput
from headrace.runtime.driver.change.beginning.provenance import Empty
from headrace.runtime.driver.change.common_operators import Inheritance
from headrace.runtime.driver.change.content.larger_windows import Shift
from headrace.runtime.driver.change.migration.exchange import Begun
from headrace.runtime.driver.change.warm import TakenOver
from headrace.runtime.journal.definition import Definition
from headrace.runtime.journal.definition import key_of as key_of_definition
from headrace.runtime.results.instants import form_of
from headrace.scheduling.priority import Priority
from headrace.time import BEGINNING, INFINITY, MIN_INSTANT, TimeDomain, format_instant

_SHOWN: Final = 200
"""So many characters of what an operator does are shown."""


@dataclass(frozen=True)
class _Draft:
    """A query that is to replace another one.

    Attributes:
        known: the one that is there.
        query: the other one.
        plan: its plan, optimized.
        streams: the streams that its text names, in lower case.
    """

    known: Query
    query: Query
    plan: Plan
    streams: frozenset[str]

    @cached_property
    def unlike(self) -> str | None:
        """The part of the other one in which the answer of the one cannot go on; None where it can."""
        return form_of(self.known.plan).unlike(form_of(self.query.plan))


def replaced(core: Core, made: CreateQuery, policy: Policy) -> Query | None:
    """Let a query take the place of the one of its name.

    Args:
        core: the database.
        made: the CREATE OR REPLACE QUERY.
        policy: what it may reach.

    Returns:
        The query that has the name then: the one that was there if it is the same. None if there is none.

    Raises:
        LanguageError: it is wrong, or the other one cannot be replaced.
        UserError: the change cannot be carried out.
    """
    policy.check_change("CREATE OR REPLACE QUERY", made.position)
    with core.lock:
        draft = _drafted(core, made, policy)
        if draft is None:
            return None
        known, name = core.definitions, draft.known.name
        given = _given(core, replace(made, name=replace(made.name, text=name)), policy)
        if _is_same(core, draft):
            draft.known.noted(draft.query)
            core.definitions = core.claiming(known, given)
            return draft.known
        _check(core, draft, made)
        before, one, position = known.records.known[given.key], known.queries[draft.known.id], made.position

        def undo(later: Definitions) -> Definitions:
            return replacing(later, one.query, one.plan, one.streams, before, position)

        core.replace_later(draft.known, undo)

    def new() -> Definitions:
        now = core.definitions
        if now.answered.get(draft.known.id) is not draft.known:
            raise LanguageError(
                f"{name} was changed or dropped since the query that is to replace it began to catch up",
                position=made.position,
                hint="write it again",
            )
        return core.claiming(_replacing(now, draft, given, made), given)

    core.change_when_ready(new, name)
    return draft.query


def replacement_text(core: Core, made: CreateQuery, policy: Policy) -> str:
    """The effect that CREATE [OR REPLACE] QUERY would have; nothing is done.

    Args:
        core: the database.
        made: the statement.
        policy: what it may reach.

    Raises:
        LanguageError: it is wrong, or the query cannot be replaced.
    """
    if made.replaces:
        policy.check_change("EXPLAIN REPLACE", made.position)
    else:
        policy.check_definition("EXPLAIN CREATE QUERY", made.position)
    with core.lock:
        draft = _drafted(core, made, policy) if made.replaces else None
        if draft is None:
            first = (f"there is no query {made.name.text}; it is created",) if made.replaces else ()
            return "\n".join((*first, *_beginning(core, made, policy)))
        if _is_same(core, draft):
            return f"{draft.known.name} is the same query; nothing changes"
        _check(core, draft, made)
        given = _given(core, replace(made, name=replace(made.name, text=draft.known.name)), policy)
        defined = _replacing(core.definitions, draft, given, made)
        if draft.known.plan == draft.query.plan and draft.known.heartbeats is draft.query.heartbeats:
            return f"{draft.known.name} has another CONSISTENCY then; all operators keep their state"
        if core.execution is None or not core.running:
            return f"{draft.known.name} is replaced; no run is going on"
        if core.has_failed(draft.known):
            return f"{draft.known.name} has failed; the new query starts anew, as one that is created"
        room = [*_room_lines(core, made, policy, draft.plan, defined, draft.known)]
        found = core.execution.beginning_of(draft.query, defined)
    return "\n".join((*room, *_lines(draft, found, made.priority)))


def rows_text(rows: int) -> str:
    """So many kept rows, for people."""
    return "1 row that is kept" if rows == 1 else f"{rows:,} rows that are kept"


def _beginning(core: Core, made: CreateQuery, policy: Policy) -> Iterator[str]:
    """The beginning of a query that is created, line by line."""
    core.make_waiting()
    query, plan, found = core.drafted(made, None, policy)
    defined = adding_query(core.definitions, query, plan, found.streams, made.position, made.priority)
    if core.execution is None or not core.running:
        yield "it is answered from the next run on"
        return
    yield from _room_lines(core, made, policy, plan, defined)
    yield from sizes_begun_with(core, query.plan)
    begins, domain = core.execution.beginning_of(query, defined), query.domain
    at, exact, warm = begins.boundary.at, begins.boundary.exact, isinstance(begins.provenance, TakenOver)
    if begins.rows is None and at == exact == BEGINNING:
        yield "it is there before the first row"
        return
    if at == INFINITY:
        yield "it answers at once, and all of its answer is final"
        return
    lacks = at < exact
    if warm:
        yield "it takes over the state of queries that run"
    elif begins.windows:
        yield f"it begins with what larger windows hold: {', '.join(begins.windows)}"
    elif begins.rows is not None:
        yield f"it is first brought to the present over {rows_text(begins.rows)}"
    since = f"from {format_instant(at, domain)} on" if at > MIN_INSTANT else "at once"
    empty = lacks and isinstance(begins.provenance, Empty)
    yield f"it answers {since}{', over the rows that come from then on' if empty else ''}"
    yield from _exact_lines(begins.boundary, domain)


def _room_lines(
    core: Core,
    made: CreateQuery,
    policy: Policy,
    plan: Plan,
    defined: Definitions,
    known: Query | None = None,
) -> Iterator[str]:
    """Whether a run that goes on has the time and the memory for a query, line by line.

    Args:
        core: the database.
        made: the statement.
        policy: what it may reach.
        plan: the query's, optimized.
        defined: all queries with it.
        known: the query that it replaces; None where there is none.
    """
    shedding = core.status.shedding if policy.may_change else None
    gone = None if known is None else known.id
    yield from room_lines(core.started.run.reading, shedding, plan, _lossy(core, made, policy), gone)
    yield from memory_lines(core, defined)


def memory_lines(core: Core, defined: Definitions) -> Iterator[str]:
    """The memory and time that a run would need for queries that it does not have yet, where it has limits.

    Args:
        core: the database, of which an endless run is going on.
        defined: all queries with them.
    """
    room = core.started.room(defined)
    for share in () if room is None else room.shares:
        if share.limit is not None:
            yield share.text


def _lossy(core: Core, made: CreateQuery, policy: Policy) -> Plan | str | None:
    """A query's plan if it bore loss, or why it cannot; None where it says itself what it bears."""
    if made.loss is not None:
        return None
    try:
        return core.compiled(made.query, policy, loss=Loss()).optimized
    except LanguageError as error:
        return error.message


def _drafted(core: Core, made: CreateQuery, policy: Policy) -> _Draft | None:
    """What is to take the place of what; None where there is nothing of that name.

    Raises:
        LanguageError: it is wrong, the other one is paused, or a clause is for new queries alone.
    """
    core.make_waiting()
    defined, name = core.definitions, made.name
    key = key_of_definition(CatalogKind.QUERY.value, name.text)
    if defined.find_query(name.text) is None and key not in defined.records.waiting:
        return None
    known = defined.answered_query(name.text, name.position)
    for clause, hint in (
        ("WARM" if made.warm else None, "leave out WARM: what stays the same keeps its state"),
        (None if made.start is None else str(made.start), f"drop {known.name}, and create it again"),
    ):
        if clause is not None:
            raise LanguageError(
                f"{known.name} is there already, and {clause} is for queries that are created",
                position=made.position,
                hint=hint,
            )
    query, plan, found = core.drafted(made, known, policy)
    return _Draft(known, query, plan, found.streams)


def _given(core: Core, made: CreateQuery, policy: Policy) -> Definition:
    return definition_of(made, Path(), policy, core.definitions.catalog.defaults)


def _replacing(defined: Definitions, draft: _Draft, given: Definition, made: CreateQuery) -> Definitions:
    """The definitions with the other query."""
    return replacing(defined, draft.query, draft.plan, draft.streams, given, made.position, made.priority)


def _is_same(core: Core, draft: _Draft) -> bool:
    known, query = draft.known, draft.query
    present = core.definitions.queries[known.id].plan
    return (known.plan, known.heartbeats, present) == (query.plan, query.heartbeats, draft.plan)


def _check(core: Core, draft: _Draft, made: CreateQuery) -> None:
    """See that a query can be replaced.

    Raises:
        LanguageError: its sinks would not fit, or the answer that a store has cannot go on.
    """
    name, known, query = draft.known.name, draft.known.plan, draft.query.plan
    if core.catalog_of().is_of_query(name) and name.lower() in draft.streams:
        raise LanguageError(
            f"{name} would read itself",
            position=made.position,
            hint="read the streams that it is over, or give the new query another name",
        )
    check_unread(core.definitions, name, f"{name} cannot be replaced", made.position)
    sinks = core.sinks_of(name)
    if sinks and (draft.unlike is not None or key_of(known) != key_of(query)):
        raise LanguageError(
            f"{name} cannot be replaced by a query with {draft.unlike or 'another key'}: its answer is taken "
            f"by {', '.join(sinks)}",
            position=made.position,
            hint="give the new query another name, and sinks of its own",
        )
    if draft.unlike is not None and not core.running and core.is_known_to_store(draft.known):
        raise LanguageError(
            f"{name} cannot be replaced by a query with {draft.unlike} while no run is going on",
            position=made.position,
            hint="call start() first",
        )


def _lines(draft: _Draft, found: Beginning, priority: Priority) -> Iterator[str]:
    name, domain, boundary = draft.known.name, draft.query.domain, found.boundary
    at, until = (format_instant(instant, domain) for instant in (boundary.at, boundary.until))
    if draft.unlike is not None:
        yield f"{name} then has {draft.unlike}: its answer and subscriptions to it end"
    elif boundary.until > MIN_INSTANT:
        yield f"the old answer holds below {until}"
    if boundary.at > MIN_INSTANT:
        yield f"the new answer holds from {at} on"
    if draft.unlike is None and MIN_INSTANT < boundary.until < boundary.at:
        yield f"nothing is said about the instants from {until} to before {at}"
    yield _way(found, at)
    if priority.weight is not None and isinstance(found.provenance, Begun) and boundary.at > MIN_INSTANT:
        yield "it has its lane from then on, by its WEIGHT"
    if not isinstance(found.provenance, Begun | Inheritance):
        yield from _exact_lines(boundary, domain)
    yield from _listed("keeps its state", found.kept)
    if not isinstance(found.provenance, KeptInput):
        yield from _listed("starts anew", found.anew)


def _way(found: Beginning, at: str) -> str:
    """The way in which the new plan takes over, which answers from an instant on."""
    match found.provenance:
        case KeptInput():
            return "it is brought to the present over the rows that are kept, and takes over once it is there"
        case Shift():
            return f"it takes over at once, with what larger windows hold: {', '.join(found.windows)}"
        case Inheritance():
            return "it takes over at once, with what both have in common"
        case Begun() if found.boundary.at <= MIN_INSTANT:
            return "it takes over at once, since no rows have come"
        case Begun():
            return f"until the heartbeat is at {at} both run"
        case Empty(reason=reason) if reason is not None:
            return f"all operators start anew, over the rows that arrive from now on: {reason}"
        case _:
            return "all operators start anew, over the rows that arrive from now on"


def _exact_lines(boundary: Boundary, domain: TimeDomain) -> Iterator[str]:
    """From when on an answer is that over all rows, if it is not from its first instant on."""
    if boundary.exact == INFINITY:
        yield "it will lack rows from before, to which its windows reach back"
    elif boundary.at < boundary.exact:
        yield f"it is exact from {format_instant(boundary.exact, domain)} on"


def _listed(title: str, parts: Sequence[Plan]) -> Iterator[str]:
    for part in parts:
        yield f"  {title}: {describe(part)[:_SHOWN]}"
