"""ASOF JOIN: each row of a stream with the row of its key that holds, or came last, at its instant."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import reduce

from sqlglot import exp

from headrace.algebra.nodes import RowWindow, column
from headrace.algebra.properties import timestamp_columns
from headrace.errors import LanguageError
from headrace.language.binding.scope import BoundTable, Scope, names_in
from headrace.language.binding.tables.joins import product
from headrace.language.catalog import Catalog, RelationInfo
from headrace.language.dialect import position_of
from headrace.language.syntax import JoinedTable, NamedTable, Scalar


@dataclass(frozen=True)
class _Sides:
    """What an ASOF JOIN joins.

    Attributes:
        scope: of the pairs.
        width: how many columns the side before JOIN has.
        instants: which of them hold the instant at which a row is valid.
        relation: what is after JOIN.
        since: the column of the relation from which on a row is valid.
    """

    scope: Scope
    width: int
    instants: frozenset[int]
    relation: RelationInfo
    since: str

    def name_of(self, node: Scalar | None) -> str | None:
        """The column of the relation that is written, in lower case, or None if it is none."""
        if not isinstance(node, exp.Column):
            return None
        column, _ = self.scope.path(names_in(node))
        return names_in(node)[-1].text.lower() if column.index >= self.width else None

    def is_instant(self, node: Scalar | None) -> bool:
        """Whether it is the timestamp of the stream."""
        return isinstance(node, exp.Column) and self.scope.path(names_in(node))[0].index in self.instants


def as_of_join(
    item: JoinedTable, left: BoundTable, right: BoundTable, catalog: Catalog
) -> tuple[JoinedTable, BoundTable]:
    """The join that an ASOF JOIN means, with its right side; any other one as it is.

    At any instant a relation has at most one row of each key. So the latest one that began at or before the
    instant of a row is the one that is valid, if it has not ended: rows that hold together are asked for. Of
    a stream the latest row of each key is remembered, of several at one instant the last one in the order of
    the columns: `q WINDOW(PARTITION BY k ROWS 1)`.

    Args:
        item: the join.
        left: what is before JOIN.
        right: the table after it.
        catalog: says what is known of the relation.

    Raises:
        LanguageError: the table is not a stream without a window nor a relation whose rows begin at some
            time, or the condition is not that its key is equal and that its row began at or before the
            instant of the stream's.
    """
    if not item.as_of:
        return item, right
    if isinstance(item.right, NamedTable) and isinstance(catalog.find(item.right.name.text), RelationInfo):
        return _with_relation(item, left, right, catalog), right
    return _with_stream(item, left, right)


def _with_stream(item: JoinedTable, left: BoundTable, right: BoundTable) -> tuple[JoinedTable, BoundTable]:
    width, pairs = len(left.plan.schema), product(left, right, item.position).scope
    ours, theirs = timestamp_columns(left.plan), timestamp_columns(right.plan)
    names = {column.index: name for name, column in right.scope.all_columns()}
    since = next((names[place] for place in sorted(theirs) if place in names), None)
    ts = next((name for name, column in left.scope.all_columns() if column.index in ours), None)
    if since is None or ts is None:
        raise LanguageError(
            "ASOF JOIN is of two streams by their timestamps, or of a stream and a relation",
            position=item.position,
            hint="leave the windows of both sides out, and list their timestamps in subqueries",
        )
    assert item.condition is not None
    parts = list(_conjuncts(item.condition))
    kept = [part.copy() for part in parts if not _is_later(part, pairs, ours, {width + at for at in theirs})]
    keys = [_key_of(part, pairs, width) for part in kept]
    if len(kept) != len(parts) - 1 or None in keys:
        raise LanguageError(
            "ASOF JOIN of two streams is by equal columns and their timestamps",
            position=item.position,
            hint=f"write ON s.k = r.k AND s.{ts} >= r.{since}, with nothing else; other conditions go into "
            "WHERE, or into a subquery around r",
        )
    places = tuple(column(right.plan, key - width) for key in keys if key is not None)
    latest = replace(right, plan=RowWindow(right.plan, 1, keys=tuple(dict.fromkeys(places))))
    return (replace(item, condition=reduce(_both, kept)) if kept else item), latest


def _is_later(part: Scalar, pairs: Scope, ours: frozenset[int], theirs: set[int]) -> bool:
    """Whether a part of the condition is that the left row is not before the right one."""
    match part:
        case (
            exp.GTE(this=exp.Column() as later, expression=exp.Column() as earlier)
            | exp.LTE(this=exp.Column() as earlier, expression=exp.Column() as later)
        ):
            places = [pairs.path(names_in(node))[0].index for node in (later, earlier)]
            return places[0] in ours and places[1] in theirs
        case _:
            return False


def _key_of(part: Scalar, pairs: Scope, width: int) -> int | None:
    """The column of the right side that a part of the condition compares with the left one."""
    if not isinstance(part, exp.EQ):
        return None
    for one, other in ((part.this, part.expression), (part.expression, part.this)):
        columns = [pairs.path(names_in(node))[0].index for node in other.find_all(exp.Column)]
        if isinstance(one, exp.Column) and columns and all(place < width for place in columns):
            place = pairs.path(names_in(one))[0].index
            if place >= width:
                return place
    return None


def _with_relation(item: JoinedTable, left: BoundTable, right: BoundTable, catalog: Catalog) -> JoinedTable:
    relation, since = _relation(item, catalog)
    instants = timestamp_columns(left.plan)
    scope = product(left, right, item.position).scope
    sides = _Sides(scope, len(left.plan.schema), instants, relation, since)
    assert item.condition is not None
    parts = list(_conjuncts(item.condition))
    kept = [part.copy() for part in parts if not _compares_instants(part, sides)]
    keys = {key for part in kept for key in _equal_keys(part, sides)}
    missing = [key for key in relation.key if key.lower() not in keys]
    if len(kept) != len(parts) - 1 or missing:
        ts = next((name for name, column in left.scope.all_columns() if column.index in instants), "ts")
        equal = " AND ".join(f"s.{key} = r.{key}" for key in relation.key)
        raise LanguageError(
            f"ASOF JOIN with {relation.name} is by its key and its beginning",
            position=item.position,
            hint=f"write FROM s ASOF JOIN {relation.name} r ON {equal} AND s.{ts} >= r.{since}, "
            "where s has no window",
        )
    return replace(item, condition=reduce(_both, kept))


def _both(one: Scalar, other: Scalar) -> Scalar:
    """That both are true, which begins where the first one does."""
    found = exp.And(this=one, expression=other)
    found.meta["position"] = position_of(one)
    return found


def _relation(item: JoinedTable, catalog: Catalog) -> tuple[RelationInfo, str]:
    """The relation after JOIN, and the column from which on its rows are valid."""
    assert isinstance(item.right, NamedTable)
    entry = catalog.find(item.right.name.text)
    assert isinstance(entry, RelationInfo)
    since = None if entry.valid is None else entry.valid[0]
    if entry.changes is not None:
        since = entry.changes.stream.timestamp
    if since is None or not entry.key:
        raise LanguageError(
            f"{entry.name} does not say since when the row of a key holds",
            position=item.position,
            hint="declare it with KEY (k) and VALID FROM a TO b, or CHANGES BY op TIMESTAMP BY ts; or "
            "write JOIN",
        )
    return entry, since


def _conjuncts(condition: Scalar) -> Iterator[Scalar]:
    match condition:
        case exp.Paren(this=inner):
            yield from _conjuncts(inner)
        case exp.And(this=one, expression=other):
            yield from _conjuncts(one)
            yield from _conjuncts(other)
        case _:
            yield condition


def _compares_instants(part: Scalar, sides: _Sides) -> bool:
    """Whether a part of the condition is that the relation's row began at or before the stream's."""
    match part:
        case exp.GTE(this=later, expression=earlier) | exp.LTE(this=earlier, expression=later):
            return sides.is_instant(later) and sides.name_of(earlier) == sides.since.lower()
        case _:
            return False


def _equal_keys(part: Scalar, sides: _Sides) -> Iterator[str]:
    """The columns of the relation that a part of the condition says to be equal to something before JOIN."""
    if isinstance(part, exp.EQ):
        for one, other in ((part.this, part.expression), (part.expression, part.this)):
            name = sides.name_of(one)
            if name is not None and not any(map(sides.name_of, other.find_all(exp.Column))):
                yield name
