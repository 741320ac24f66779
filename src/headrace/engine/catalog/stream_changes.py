"""Definitions after ALTER STREAM, CREATE SKEW, DROP STREAM and DROP RELATION."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from headrace.algebra.letters import LETTER_COLUMNS
from headrace.engine.catalog.definitions import Definitions, unknown
from headrace.engine.catalog.texts import (
    hiding,
    retimed,
    widened,
    with_skew,
    without_skews,
)
from headrace.engine.inputs.declared import PUSH
from headrace.engine.inputs.inputs import Input
from headrace.engine.inputs.times import follow_of
from headrace.errors import LanguageError, Position
from headrace.language.catalog import Entry, RelationInfo
from headrace.language.lengths import check_behind, check_duration
from headrace.language.statements.catalog import CatalogKind
from headrace.language.statements.streams import AddColumns, AlterStream, CreateSkew, TimeClauses
from headrace.language.syntax import Name
from headrace.runtime.journal.definition import key_of
from headrace.schema import Schema
from headrace.time import TimeDomain

_TIMED_BY: Final = {TimeDomain.INTEGER: "an integer", TimeDomain.TIMESTAMP: "a TIMESTAMP"}


def with_time(defined: Definitions, statement: AlterStream, written: TimeClauses) -> Definitions:
    """Something else said about the time of a stream.

    Args:
        defined: what is defined.
        statement: the statement, with values in the place of a relation that has them.
        written: its clauses as they are written.

    Raises:
        LanguageError: there is no such source stream, or a clause does not fit it.
    """
    stream = defined.input_named(statement.name)
    changed = {name: getattr(statement.time, name) for name in statement.changed}
    clauses, place = replace(stream.clauses, **changed), statement.name.position
    if clauses.disorder is not None:
        check_behind(clauses.disorder, stream.info.domain, "DISORDER", place)
    if clauses.retain is not None and clauses.retain.length is not None:
        check_duration(clauses.retain.length, stream.info.domain, "RETAIN", place)
    if statement.time.overflow is not None and stream.origin != PUSH:
        raise LanguageError(
            f"OVERFLOW is of streams FROM push, which {stream.entry.name} is not",
            position=place,
            hint="leave it out: an epoch takes of other input as much as it can",
        )
    found = defined.having(stream.retimed(clauses))
    record = defined.record_of_input(stream)
    if record is None:
        return found
    said = {name: getattr(written, name) for name in statement.changed}
    return replace(found, records=defined.records.changed(record.key, retimed(record, said)))


def adding_columns(defined: Definitions, statement: AddColumns) -> Definitions:
    """Further columns of a stream; what is defined over it already means those that it had.

    Raises:
        LanguageError: there is no such source stream, it has such a column, or it cannot have any.
    """
    stream, place = defined.input_named(statement.name), statement.name.position
    there = {field.name.lower(): field.type for field in stream.info.schema}
    columns = Schema(
        tuple(
            column
            for column in statement.columns
            if column.name not in statement.missing or there.get(column.name.lower()) != column.type
        )
    )
    if not columns:
        return defined
    for column in columns:
        if any(column.name.lower() == name.lower() for name in stream.info.schema.names):
            raise LanguageError(
                f"{stream.entry.name} has a column {column.name} already",
                position=place,
                hint="choose another name",
            )
        if column.name.lower() in LETTER_COLUMNS:
            raise LanguageError(
                f"{column.name} is a column of the dead letters of {stream.entry.name}",
                position=place,
                hint="choose another name",
            )
    wider = stream.widened(columns)
    if wider is None:
        raise LanguageError(
            f"the columns of {stream.entry.name} are those of what it is read from",
            position=place,
            hint="columns are added to streams that declare theirs, and that Headrace reads itself",
        )
    found = replace(defined.having(wider), catalog=defined.catalog.redefine(wider.entry))
    records = hiding(defined.records, stream.entry.name, columns)
    record = defined.record_of_input(stream)
    if record is not None:
        records = records.changed(record.key, widened(record, columns))
    return replace(found, records=records)


def with_bounds(defined: Definitions, statement: CreateSkew) -> Definitions:
    """Bounds between streams, in place of those that there were between the same ones.

    Raises:
        LanguageError: there is no such source stream, they count their timestamps differently, the clock
            moves one that is to follow, a bound does not fit them, or there is nothing to drop.
    """
    named = [(name, defined.input_named(name)) for name in (*statement.firsts, *statement.seconds)]
    first = named[0][1]
    for name, stream in named:
        if stream.info.domain is not first.info.domain:
            raise LanguageError(
                f"{first.name} is timed by {_TIMED_BY[first.info.domain]}, and {stream.name} by "
                f"{_TIMED_BY[stream.info.domain]}",
                position=name.position,
                hint="bounds are between streams whose timestamps count the same",
            )
    inputs = dict(defined.inputs)
    for firsts, seconds in _directions(statement):
        others, followers = (
            tuple(defined.input_named(name).name for name in side) for side in (firsts, seconds)
        )
        follow = follow_of(statement, others, followers, first.info.domain)
        for name in seconds:
            second = defined.input_named(name)
            if second.info.by_arrival:
                raise LanguageError(
                    f"{second.name} is timed by arrival, so that the clock alone moves its heartbeat",
                    position=name.position,
                    hint=f"bounds may be FROM {second.name}, and not to it",
                )
            if follow is None and not second.follows(others):
                raise _no_skew(defined, second, others, statement.position)
            inputs[second.name] = inputs[second.name].following(others, follow)
    return replace(defined, inputs=inputs, records=with_skew(defined.records, statement))


def _no_skew(defined: Definitions, second: Input, others: Sequence[str], position: Position) -> LanguageError:
    known = [", ".join(one.streams) for one in second.stream.timing.follows]
    names = ", ".join(name for name in others if name != second.name)
    return LanguageError(
        f"there is no skew from {names} to {second.name}",
        position=position,
        hint=f"there is one from {'; one from '.join(known)}" if known else None,
    )


def without_stream(defined: Definitions, name: str, position: Position | None) -> Definitions:
    """The definitions without a stream.

    Raises:
        LanguageError: there is no such stream, or something is written over it.
    """
    if (waiting := defined.without_waiting(CatalogKind.STREAM, name)) is not None:
        return waiting
    entry = _dropped(defined, CatalogKind.STREAM, name, position)
    left = _without_input(defined, entry.name)
    records = without_skews(defined.records, entry.name).without(key_of(CatalogKind.STREAM.value, entry.name))
    derived = {name: read for name, read in defined.derived.items() if name != entry.name}
    return replace(left, derived=derived, records=records)


def without_relation(defined: Definitions, name: str, position: Position | None) -> Definitions:
    """The definitions without a relation.

    Raises:
        LanguageError: there is no such relation, or something is written over it.
    """
    if (waiting := defined.without_waiting(CatalogKind.RELATION, name)) is not None:
        return waiting
    entry = _dropped(defined, CatalogKind.RELATION, name, position)
    relations = {known: table for known, table in defined.relations.items() if known != entry.name}
    records = without_skews(defined.records, entry.name).without(
        key_of(CatalogKind.RELATION.value, entry.name)
    )
    return replace(_without_input(defined, entry.name), relations=relations, records=records)


def _without_input(defined: Definitions, name: str) -> Definitions:
    left = {known: stream.without(name) for known, stream in defined.inputs.items() if known != name}
    return replace(defined, catalog=defined.catalog.without(name), inputs=left)


def _dropped(defined: Definitions, kind: CatalogKind, name: str, position: Position | None) -> Entry:
    """The stream or the relation of a name, which nothing is written over.

    Raises:
        LanguageError: there is none, it is of the other kind, or something is.
    """
    entry = defined.catalog.find(name)
    if entry is None:
        raise unknown(kind.word, name, defined.catalog.names, position)
    its = CatalogKind.RELATION if isinstance(entry, RelationInfo) else CatalogKind.STREAM
    if its is not kind:
        raise LanguageError(
            f"{entry.name} is a {its.word}",
            position=position,
            hint=f"write DROP {its.value} {entry.name}",
        )
    if users := defined.users_of(name):
        raise LanguageError(
            f"the {kind.word} {entry.name} cannot be dropped: it is used by {', '.join(users)}",
            position=position,
            hint=f"drop {users[0]} first, or all of it: DROP {kind.value} {entry.name} CASCADE",
        )
    return entry


def _directions(statement: CreateSkew) -> list[tuple[tuple[Name, ...], tuple[Name, ...]]]:
    """From which streams to which the bounds of a CREATE SKEW hold."""
    firsts, seconds = statement.firsts, statement.seconds
    if not seconds:
        return [(firsts, firsts)]
    return [(firsts, seconds), (seconds, firsts)] if statement.both else [(firsts, seconds)]
