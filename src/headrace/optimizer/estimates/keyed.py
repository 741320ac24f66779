"""The sides of a join of two streams, of which the rows of some keys are kept.

Of two samples that are drawn apart a join has few pairs, and those of a row come and go together. So keys are
drawn, and of both sides all rows of a key are kept or none: what is joined then is what is kept of the join
(universe sampling: Kandula et al., Quickr, SIGMOD 2016, section 4.1.3).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headrace.algebra.failure import can_fail
from headrace.algebra.nodes import (
    Filter,
    Join,
    Lifetime,
    Plan,
    Project,
    Shed,
    Source,
    TimeWindow,
    Union,
    column,
    with_inputs,
)
from headrace.algebra.tunings.loss import Loss
from headrace.errors import LanguageError
from headrace.expressions.tree import Expression, transform_columns
from headrace.optimizer.estimates.monotone import refused, refused_node
from headrace.optimizer.estimates.sizes import columns_drawn, with_columns
from headrace.optimizer.estimates.weighed_rows import KeptSpan, WeighedRows, projected
from headrace.time import Duration

_WHAT = "a join of two streams"
_TWO = "join two streams, each in its window: s [RANGE 1 HOUR] a JOIN r [RANGE 1 HOUR] b ON a.k = b.k"
PairKeys = tuple[Expression, ...]
"""The keys of one side, over its columns."""


@dataclass(frozen=True)
class KeyedSides:
    """Both sides of joins of two streams, with what the key of each row has drawn and its weight.

    Attributes:
        sources: the streams that are read, each with all of its columns, by name.
        loss: what the query says of loss.
    """

    sources: Mapping[str, Source]
    loss: Loss

    def of(self, plan: Join) -> tuple[WeighedRows, WeighedRows]:
        """The sides of a join; behind their columns is what was drawn, and the weight.

        Raises:
            LanguageError: rows of a key cannot be kept together.
        """
        if not plan.equalities:
            why = "nothing is equal in its pairs by which rows could be kept together"
            raise self._refused(why, "join by an equality, as ON a.k = b.k")
        for mine, yours in plan.equalities:
            if mine.type != yours.type:
                raise self._refused(
                    "what is equal is of two types", "CAST one of both sides to the other's type"
                )
        left, right = zip(*plan.equalities, strict=True)
        return self._windowed(plan.left, left), self._windowed(plan.right, right)

    def _refused(self, why: str, hint: str) -> LanguageError:
        return refused(_WHAT, why, self.loss.position, hint)

    def _windowed(self, plan: Plan, keys: PairKeys) -> WeighedRows:
        match plan:
            case TimeWindow(smallest=Duration()):
                raise self._refused(
                    "a window of it has bounds", "give it one size: RANGE in the place of MIN and MAX"
                )
            case TimeWindow(size=size, slide=slide, offset=offset):
                return WeighedRows(
                    with_inputs(plan, (self._rows(plan.input, keys),)), KeptSpan(size, slide, offset)
                )
            case Filter():
                below = self._windowed(plan.input, keys)
                return below.over(with_inputs(plan, (below.plan,)))
            case Project():
                below = self._windowed(plan.input, _below(plan, keys))
                return below.over(projected(plan, below.plan))
            case Source():
                raise self._refused(
                    "a side of it is the rows of each instant alone", "write RANGE 1 HOUR in the place of NOW"
                )
            case Join():
                raise self._refused("a side of it is a join itself", _TWO)
            case _:
                raise self._other(plan)

    def _rows(self, plan: Plan, keys: PairKeys) -> Plan:
        match plan:
            case Source(name=name) if type(plan) is Source:
                return self._drawn(self.sources[name], plan, keys)
            case Filter():
                return with_inputs(plan, (self._rows(plan.input, keys),))
            case Project():
                return projected(plan, self._rows(plan.input, _below(plan, keys)))
            case _:
                raise self._other(plan)

    def _other(self, plan: Plan) -> LanguageError:
        match plan:
            case Union():
                return self._refused("a side of it is a UNION ALL", _TWO)
            case Lifetime():
                return self._refused("a side of it has a LIFETIME", _TWO)
            case _:
                return refused_node(plan, self.loss.position)

    def _drawn(self, whole: Source, narrow: Source, keys: PairKeys) -> Plan:
        """The rows of a stream whose keys are kept."""
        names, all_names = narrow.schema.names, whole.schema.names
        moved = tuple(
            transform_columns(key, lambda part: column(whole, all_names.index(names[part.index])))
            for key in keys
        )
        if any(map(can_fail, moved)):
            why = "what is equal may fail for a row, which is looked at before any is left out"
            raise self._refused(why, "compare columns, or TRY_CAST them")
        streams = tuple(sorted(self.sources))
        shed = Shed(with_columns(whole, moved), streams, self.loss.text, keys=len(moved))
        return columns_drawn(shed, narrow)


def _below(plan: Project, keys: PairKeys) -> PairKeys:
    """PairKeys over the columns of a projection, over those of its input."""
    return tuple(transform_columns(key, lambda part: plan.items[part.index][1]) for key in keys)
