"""SHOW CREATE and DESCRIBE: how something is defined, and what is said of it."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from typing import Final, assert_never

import pyarrow as pa

from headrace.algebra.tunings.loss import Loss
from headrace.algebra.tunings.tunings import shares_in, size_of
from headrace.engine.access.policy import Policy
from headrace.engine.catalog.definitions import Definitions
from headrace.engine.catalog.read_queries import readers_of
from headrace.engine.catalog.texts import has_reading, sink_query
from headrace.engine.shown.status import Status, instant_text
from headrace.errors import LanguageError
from headrace.language.catalog import columns_of
from headrace.language.defaults import INITIAL
from headrace.language.parsing.parser import parse_one
from headrace.language.statements.catalog import CatalogKind, Describe, ShowCreate
from headrace.language.statements.statements import CreateQuery
from headrace.language.syntax import Name
from headrace.runtime.driver.facts.sizes import WindowStatus
from headrace.runtime.journal.definition import Definition
from headrace.runtime.writing.tables import write_table
from headrace.schema import STRING, Schema, sql_type
from headrace.steps import share_text
from headrace.suggestions import did_you_mean
from headrace.time import BEGINNING, TimeDomain

_HIDDEN: Final = (CatalogKind.QUERY, CatalogKind.SINK)
"""Kinds of definitions whose texts are not for everybody."""


def told_of(
    definitions: Definitions, statement: ShowCreate | Describe, status: Status | None, policy: Policy
) -> str:
    """The answer to SHOW CREATE or DESCRIBE, as text.

    Args:
        definitions: all of them.
        statement: what is asked.
        status: of a run that goes on or is over, which knows the heartbeats; None if nothing has been run.
        policy: whether the text of queries and sinks may be seen.

    Raises:
        LanguageError: there is no such thing.
        PolicyError: its text may not be seen.
    """
    match statement:
        case ShowCreate(kind=kind, name=name):
            if kind in _HIDDEN:
                policy.check_change(f"SHOW CREATE {kind}", statement.position)
            return created(found(definitions, kind, name))
        case Describe(kind=kind, name=name):
            record = found(definitions, kind, name)
            return "\n".join(_described(definitions, record, status, policy))
        case _:
            assert_never(statement)


def created(record: Definition) -> str:
    """The statement that defines something again, with what is said of it."""
    if record.text is None:
        return f"-- {record.title}: {record.lacks}"
    is_plain = record.dialect == INITIAL.value or not has_reading(record)
    dialect = "" if is_plain else f"SET dialect = '{record.dialect}';\n"
    return f"{dialect}{record.text};"


def found(
    definitions: Definitions,
    kind: CatalogKind | None,
    name: Name,
    among: Iterable[CatalogKind] = tuple(CatalogKind),
) -> Definition:
    """How something of a name is defined.

    Args:
        definitions: all of them.
        kind: what it is, or None where the name says it.
        name: the name.
        among: what it may be then.

    Raises:
        LanguageError: there is no such thing, or there are two of the name.
    """
    kinds = tuple(among) if kind is None else (kind,)
    records = [record for one in kinds if (record := definitions.record_of(one, name.text)) is not None]
    if len(records) > 1:
        titles = " and ".join(record.title for record in records)
        raise LanguageError(
            f"there are {titles}",
            position=name.position,
            hint=f"say which: DESCRIBE {records[0].kind} {name.text}",
        )
    if not records:
        what = "nothing called" if kind is None else f"no {kind.word}"
        known = [
            one.name
            for one in definitions.records.known.values()
            if one.kind in {each.value for each in kinds}
        ]
        hint = did_you_mean(name.text, known) or (f"there is {', '.join(known)}" if known else None)
        raise LanguageError(f"there is {what} {name.text}", position=name.position, hint=hint)
    return records[0]


def schema_of(definitions: Definitions, record: Definition) -> Schema | None:
    """The columns of something, as queries or readers see them; None where it could not be made yet."""
    if record.key in definitions.records.waiting:
        return None
    if record.kind == CatalogKind.QUERY.value:
        query = definitions.find_query(record.name)
        return None if query is None else query.schema
    if record.kind == CatalogKind.SINK.value:
        return None
    entry = definitions.catalog.find(record.name)
    return None if entry is None else columns_of(entry)


def _described(
    definitions: Definitions, record: Definition, status: Status | None, policy: Policy
) -> Iterator[str]:
    shows = policy.may_change or record.kind not in {one.value for one in _HIDDEN}
    yield f"{record.kind} {record.name}" + (f": {record.comment}" if record.comment else "")
    schema = schema_of(definitions, record)
    if schema is not None:
        yield _columns(schema, record)
    if (why := definitions.records.waiting.get(record.key)) is not None:
        yield f"it is not there yet: {why}"
    match record.kind:
        case CatalogKind.QUERY.value:
            yield from _answer(definitions, record, status, shows)
        case CatalogKind.SINK.value:
            yield from _delivered(record, status, shows)
        case _ if users := definitions.users_of(record.name):
            yield f"used by {', '.join(users)}"
    if shows:
        yield created(record)


def _answer(
    definitions: Definitions, record: Definition, status: Status | None, shows: bool
) -> Iterator[str]:
    """How far a query's answer has come."""
    if record.paused:
        yield "it is paused" + (", and its streams' rows are kept" if record.keeps_input else "")
    for query in status.queries if status is not None else ():
        if query.name == record.name and query.failed is not None:
            yield f"it has failed: {query.failed} (hint: {query.advice})" if shows else "it has failed"
        elif query.name == record.name:
            yield f"final below {instant_text(query.heartbeat, query.domain)}"
            yield from (f"it says {gap.text(query.domain)}" for gap in query.gaps)
            yield from (_sized(window, query.domain) for window in query.windows)
            yield from _shares(definitions, record, query.id, status)
    if readers := readers_of(definitions, record.name):
        yield f"read by {', '.join(readers)}"
    if sinks := definitions.sinks_of(record.name):
        yield f"its changes go to {', '.join(f'the sink {name}' for name in sinks)}"


def _sized(window: WindowStatus, domain: TimeDomain) -> str:
    """The present size of a window within bounds, or of a granule, as a line."""
    kind = window.kind
    smallest, largest, size = (
        kind.text(value, domain) for value in (window.smallest, window.largest, window.size)
    )
    since = "" if window.since == BEGINNING else f" for rows from {instant_text(window.since, domain)} on"
    why = f": {window.why}" if window.why else ""
    bounds = f"from {kind.bounds[0]} {smallest} to {kind.bounds[1]} {largest}"
    return f"its {kind.noun} of {', '.join(window.streams)} is {size}{since}, {bounds}{why}"


def loss_of(record: Definition | None) -> Loss | None:
    """The clause of a query itself about loss; None if it says nothing."""
    statement = None if record is None or record.text is None else parse_one(record.text)
    return statement.loss if isinstance(statement, CreateQuery) else None


def worth_of(record: Definition | None, share: int) -> str:
    """The worth of a share (millionths) by a query's loss graph, for a sentence; nothing without one."""
    loss = loss_of(record)
    return f", and the answer is worth {loss.utility(share):.3g}" if loss is not None and loss.graph else ""


def _shares(
    definitions: Definitions, record: Definition, identity: str, status: Status | None
) -> Iterator[str]:
    """The share of its rows that a query keeps, if it bears loss, and what the answer is worth then."""
    known = definitions.queries.get(identity)
    if known is None or status is None:
        return
    memory = next((one.memory for one in status.queries if one.id == identity), None)
    if memory is not None:
        yield memory.text
    values = next((one.values for one in status.queries if one.id == identity), None)
    if values is not None:
        yield f"{values.text}{f'; {values.why}' if values.why else ''}"
    for tuning in shares_in(known.plan):
        steps = status.tunings[tuning].steps if tuning in status.tunings else ()
        since = steps[-1].begin if steps else BEGINNING
        rows = "" if since == BEGINNING else f" from {instant_text(since, known.plan.domain)} on"
        share = size_of(tuning, status.tunings)
        why = status.tunings[tuning].why if tuning in status.tunings else ""
        told = f": {why}" if why else ""
        yield f"{share_text(share)} of its rows is kept{rows}{worth_of(record, share)}{told}"


def _delivered(record: Definition, status: Status | None, shows: bool) -> Iterator[str]:
    """How far a sink is."""
    for sink in status.sinks if status is not None else ():
        if (sink.query, sink.name) == (sink_query(record), record.name):
            yield f"it has taken epoch {sink.epoch}, and {sink.behind} are left"
            if sink.problem is not None:
                yield sink.problem if shows else "it has a problem"


def _columns(schema: Schema, record: Definition) -> str:
    said = [record.columns.get(field.name.lower(), "") for field in schema]
    table = {
        "column": pa.array(schema.names, STRING),
        "type": pa.array([sql_type(field.type) for field in schema], STRING),
    }
    if any(said):
        table["comment"] = pa.array(said, STRING)
    text = io.StringIO()
    write_table(pa.table(table), "table", text)
    return text.getvalue().rstrip("\n")
