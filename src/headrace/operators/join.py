"""Joins: equality keys hashed, the rest as a residual predicate."""

from __future__ import annotations

from typing import TypeGuard

import numpy as np
import pyarrow as pa

from headrace.algebra.nodes import Join
from headrace.elements import Batch, Int64Array, concat, integers, record_batch
from headrace.expressions.tree import Column, Expression
from headrace.kernels.rows.joins import join_intervals
from headrace.operators.contract import OperatorProgress, Report, evaluate_all, evaluate_predicate
from headrace.operators.state.keys import equal_rows, hash_rows, normalise
from headrace.operators.state.runs import END, HASH, TIME, WEIGHT, SortedRun, new_run
from headrace.operators.state.sweep_area import Layout, SweepArea
from headrace.schema import DOUBLE, Schema


class JoinSide:
    """One input of a join: what entered in this epoch, and the sweep area of what entered before."""

    def __init__(self, schema: Schema, keys: tuple[Expression, ...], report: Report) -> None:
        self.schema = schema
        self.payload = tuple(f"p{place}" for place in range(len(schema)))
        self._expressions = keys
        self._report = report
        self._keys = tuple(
            self.payload[key.index] if _is_stored(key) else f"__k{place}" for place, key in enumerate(keys)
        )
        same = (*self.payload, END)
        self.area = SweepArea(Layout(self._keys, same, (WEIGHT,)))
        self.inputs: list[Batch] = []

    def entered(self) -> SortedRun | None:
        """This epoch's elements as a run; elements with a NULL key join nothing and are left out."""
        batch, keys = evaluate_all(self._expressions, concat(self.schema, self.inputs), self._report)
        if any(key.null_count for key in keys):
            valid = np.logical_and.reduce([key.is_valid().to_numpy(zero_copy_only=False) for key in keys])
            rows = np.flatnonzero(valid)
            batch, keys = batch.take(rows), [key.take(pa.array(rows)) for key in keys]
        if not len(batch):
            return None
        keys = [normalise(key) for key in keys]
        columns = {
            HASH: pa.array(hash_rows(keys, len(batch))),
            TIME: pa.array(batch.ts),
            END: pa.array(batch.te),
            WEIGHT: pa.array(batch.w),
        }
        columns |= dict(zip(self.payload, batch.payload.columns, strict=True))
        return new_run(columns | dict(zip(self._keys, keys, strict=True)), indexed=False)

    def keep(self, run: SortedRun | None, heartbeat: int) -> None:
        """Store what may still meet later elements of the other input; forget the rest."""
        if run is not None:
            alive = np.flatnonzero(run.expiries > heartbeat)
            rows = run.batch.take(pa.array(alive))
            names = [name for name in rows.schema.names if name != "__order"]
            self.area.insert({name: rows.column(name) for name in names})
        self.area.expire(heartbeat)

    def found(self, run: SortedRun, rows: Int64Array) -> pa.RecordBatch:
        """Rows of a run of this side, without their intervals."""
        return run.take(rows, tuple(dict.fromkeys((*self._keys, *self.payload, WEIGHT))))

    def keys_of(self, rows: pa.RecordBatch) -> list[pa.Array]:
        """The key columns of rows of this side."""
        return [rows.column(name) for name in self._keys]


class JoinOperator:
    """Join of two streams (bilinear family; thesis, section 11.3.3).

    Definition:
        At t, all pairs of `L(t)` and `R(t)` that satisfy the predicate; multiplicities multiply.

    Retractions:
        `d(L join R) = dL join R + L join dR + dL join dR` on overlapping intervals, with the product of the
        signs: no case of its own.

    State:
        Per side the elements that may still overlap a later element of the other side: those that end after
        the other side's heartbeat.

    Example:
        Equality on x, both heartbeats 20:

        ====== ======= ==        ====== ======= ==        ====== ======= ==
        L.x    [ts,te)  w        R.x    [ts,te)  w        x, x   [ts,te)  w
        ====== ======= ==        ====== ======= ==        ====== ======= ==
        d      [6,14)   +        d      [3,9)    +        d, d   [6,9)    +
        b      [12,17)  +        b      [7,15)   +        b, b   [12,15)  +
        ====== ======= ==        ====== ======= ==        ====== ======= ==
    """

    def __init__(self, node: Join, report: Report) -> None:
        self._node = node
        self._report = report
        self.left = JoinSide(node.left.schema, tuple(left for left, _ in node.equalities), report)
        self.right = JoinSide(node.right.schema, tuple(right for _, right in node.equalities), report)

    @property
    def areas(self) -> dict[str, SweepArea]:
        """The elements of each side."""
        return {"left": self.left.area, "right": self.right.area}

    def process(self, port: int, batch: Batch) -> None:
        """Take in elements: port 0 is the left input, port 1 the right."""
        (self.right if port else self.left).inputs.append(batch)

    def advance(self, progress: OperatorProgress) -> Batch:
        """The pairs in which at least one element is new."""
        left, right = self.left.entered(), self.right.entered()
        pairs = []
        if left is not None:
            partners = [*self.right.area.runs, *([right] if right is not None else [])]
            pairs += [self._pair(left, run) for run in partners]
        if right is not None:
            pairs += [self._pair(run, right) for run in self.left.area.runs]
        left_heartbeat, right_heartbeat = progress.after
        self.left.keep(left, right_heartbeat)
        self.right.keep(right, left_heartbeat)
        return concat(self._node.schema, pairs)

    def _pair(self, left: SortedRun, right: SortedRun) -> Batch:
        if left.last <= right.first or right.last <= left.first:
            return concat(self._node.schema, [])
        ours, theirs = join_intervals(
            left.hashes,
            left.times,
            left.expiries,
            right.hashes,
            right.times,
            right.expiries,
            left.reach,
            right.reach,
        )
        one, other = self.left.found(left, ours), self.right.found(right, theirs)
        keys = [side.keys_of(rows) for side, rows in ((self.left, one), (self.right, other))]
        same = equal_rows(keys[0], None, keys[1], np.arange(len(ours)))
        ts = np.maximum(left.times[ours], right.times[theirs])
        te = np.minimum(left.expiries[ours], right.expiries[theirs])
        columns = [
            rows.column(name)
            for side, rows in ((self.left, one), (self.right, other))
            for name in side.payload
        ]
        weights = integers(one.column(WEIGHT)) * integers(other.column(WEIGHT))
        payload = record_batch(columns, self._node.schema, len(ours))
        return self._residual(self.found(Batch(payload, ts, te, weights).filter(same)))

    def found(self, pairs: Batch) -> Batch:
        """Those of the pairs that match in their keys which are looked at: all."""
        return pairs

    def _residual(self, batch: Batch) -> Batch:
        if self._node.residual is None or not len(batch):
            return batch
        return evaluate_predicate(self._node.residual, batch, self._report)


def _is_stored(key: Expression) -> TypeGuard[Column]:
    """Whether a key is an unchanged payload column; floats are kept beside it in normal form."""
    return isinstance(key, Column) and key.type != DOUBLE
