"""Relations that are given by their changes: rows that insert, update or delete by key.

The content is that of a stream of changes under what there is already: the last row of each key, without
those that delete (`headrace.reference.changes` is the definition).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from headrace.algebra.nodes import Filter, Plan, Project, Relation, RelationIndex, RowWindow, Source, column
from headrace.expressions.functions.functions import literal, resolve
from headrace.expressions.tree import Column, Expression
from headrace.schema import BIGINT, Field, Schema, unique_names
from headrace.time import MICROSECONDS, TimeDomain

DELETIONS: Final = ("D", "DELETE")
"""The operations that delete, in upper case."""

OPERATIONS: Final = ("I", "INSERT", "C", "CREATE", "R", "READ", "U", "UPDATE", *DELETIONS)
"""All operations, in upper case: first letters and words, with Debezium's for inserts and snapshots."""


HOW_LATE: Final = {TimeDomain.TIMESTAMP: MICROSECONDS["DAY"], TimeDomain.INTEGER: 86_400}
"""The distance below the heartbeat at which a change still counts, and for which deletions are remembered
for its sake (instants): a day, if integers count seconds."""


@dataclass(frozen=True)
class Changes:
    """Which columns say what a row changes.

    Attributes:
        operation: the column with one of `OPERATIONS`, in any case.
        key: the columns that say which row is changed.
        version: the column that orders the changes of a key at one instant, or None.
        arrived: a column that no row comes with: the place of a change among those of its source. It orders
            what the version does not. None where there is no such order.
    """

    operation: str
    key: tuple[str, ...]
    version: str | None = None
    arrived: str | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """All that is read of a change to see whether it can be applied."""
        return self.operation, *self.key

    def describe(self) -> str:
        """What a durable store remembers of it."""
        by = "" if self.version is None else f" version {self.version}"
        return f"changes {self.operation} of {', '.join(self.key)}{by}"


def content_schema(schema: Schema, changes: Changes) -> Schema:
    """The columns of the relation: all but that of the operation.

    Args:
        schema: the columns of the changes.
        changes: which of them say what a row changes.
    """
    return schema.select(tuple(place for place, name in enumerate(schema.names) if name != changes.operation))


def content_of(leaf: Plan, changes: Changes, how_late: int | None = None) -> Plan:
    """The relation that a stream of changes yields.

    A row window orders the rows of an instant by its columns from left to right. So the version comes first
    in it, then the order in which the changes came, and then whether the row is there: of an insertion and a
    deletion that nothing orders the former counts. Where changes may come late, their instant comes first.

    Args:
        leaf: the changes, chronons with all columns that their rows come with.
        changes: which columns say what a row changes.
        how_late: how far below the heartbeat one may be that still counts (instants); `HOW_LATE` if None.
    """
    assert isinstance(leaf, Source | Relation)
    kept = [name for name in leaf.schema.names if name != changes.operation]
    if changes.arrived is not None:
        leaf = replace(leaf, schema=Schema((*leaf.schema, Field(changes.arrived, BIGINT))))
    names = leaf.schema.names
    at = leaf.timestamp if isinstance(leaf, Source) else None
    first = (at, changes.version, changes.arrived)
    versions = list(dict.fromkeys(name for name in first if name is not None))
    (flag,) = unique_names([*names, "is_there"])[len(names) :]
    items: list[tuple[str, Expression]] = [(name, _named(leaf, name)) for name in versions]
    items.append((flag, _is_there(_named(leaf, changes.operation))))
    items += [(name, _named(leaf, name)) for name in kept if name not in versions]
    ordered = Project(leaf, tuple(items))
    keys = tuple(_named(ordered, name) for name in changes.key)
    live: Plan
    if isinstance(leaf, Relation):
        # Each start of a query reads all of it, and keeps what it needs.
        window = RowWindow(ordered, 1, keys=keys)
        live = Filter(window, _named(window, flag))
    else:
        remembered = HOW_LATE[leaf.domain] if how_late is None else how_late
        live = RelationIndex(ordered, 1, keys=keys, live=_named(ordered, flag), remembered=remembered)
    return Project(live, tuple((name, _named(live, name)) for name in kept))


def _named(plan: Plan, name: str) -> Column:
    return column(plan, plan.schema.names.index(name))


def _is_there(operation: Column) -> Expression:
    """Whether the row of a change is in the relation after it."""
    words = (literal(word) for word in DELETIONS)
    return resolve("NOT", (resolve("IN", (resolve("UPPER", (operation,)), *words)),))
