"""The input of an aggregate with the weight of each row, and how many equal rows it stands for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headrace.algebra.nodes import (
    Aggregate,
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
    inputs_of,
    project,
    with_inputs,
)
from headrace.algebra.properties import has_one_row, sources_of, walk
from headrace.algebra.tunings.loss import Loss
from headrace.expressions.aggregates.aggregates import resolve_aggregate
from headrace.expressions.functions.functions import literal, resolve
from headrace.expressions.tree import Column, transform_columns
from headrace.optimizer.estimates.deviations import ONE
from headrace.optimizer.estimates.keyed import KeyedSides
from headrace.optimizer.estimates.monotone import refused, refused_node
from headrace.optimizer.estimates.sizes import (
    Sizes,
    columns_drawn,
    sizes_below,
    sizes_of_rows,
    sizes_of_side,
    with_columns,
)
from headrace.optimizer.estimates.weighed_rows import KeptSpan, WeighedRows, beyond, projected
from headrace.schema import unique_names
from headrace.time import Duration


@dataclass(frozen=True)
class Weigher:
    """Puts weights to the rows of plans.

    Attributes:
        sources: the streams that are read, each with all of its columns, by name. Their rows are drawn as a
            whole, so that queries that read different columns keep the same ones.
        loss: what the query says of loss.
    """

    sources: Mapping[str, Source]
    loss: Loss

    @property
    def streams(self) -> tuple[str, ...]:
        """The names of the streams, in order."""
        return tuple(sorted(self.sources))

    def weighed(self, plan: Plan, sizes: Sizes = ()) -> WeighedRows:
        """A part of a plan that has windows, with weights.

        Args:
            plan: the part.
            sizes: of what is added up of its rows, by whose size rows are to be kept (DOUBLEs).

        Raises:
            LanguageError: rows that are left out would change its content in other ways than by theirs.
        """
        match plan:
            case TimeWindow(smallest=Duration()):
                why = "how many of its rows may be missing changes with its size"
                hint = "give it one size: RANGE in the place of RANGE MIN and MAX"
                raise refused("a window within bounds", why, self.loss.position, hint)
            case TimeWindow(size=size, slide=slide, offset=offset):
                return WeighedRows(
                    with_inputs(plan, (self._numbered(plan.input, sizes),)), KeptSpan(size, slide, offset)
                )
            case Lifetime():
                return self._living(plan, sizes)
            case Filter():
                below = self.weighed(plan.input, sizes)
                return below.over(with_inputs(plan, (below.plan,)))
            case Project():
                below = self.weighed(plan.input, sizes_below(plan, sizes))
                return below.over(projected(plan, below.plan))
            case Union(inputs=inputs):
                self._check_apart(plan)
                parts = [self.weighed(part, sizes) for part in inputs]
                if len({part.span for part in parts}) > 1:
                    why = "its parts have different windows"
                    raise refused("this UNION ALL", why, self.loss.position)
                if any(part.clustered for part in parts):
                    why = "a part of it joins two streams, of which rows are kept by key"
                    raise refused("this UNION ALL", why, self.loss.position)
                return WeighedRows(with_inputs(plan, tuple(part.plan for part in parts)), parts[0].span)
            case Join():
                return self._joined(plan, sizes)
            case Source():
                why = "it is over the rows of each instant alone"
                raise refused("a query without a window", why, self.loss.position, "write s [RANGE 1 HOUR]")
            case _:
                raise refused_node(plan, self.loss.position)

    def _check_apart(self, plan: Union) -> None:
        """See that no stream is in two parts: its rows would be kept in both or in none."""
        found: set[str] = set()
        for part in plan.inputs:
            names = {source.name for source in sources_of(part)}
            if names & found:
                why = f"a row of {min(names & found)} would be kept in several of its parts, or in none"
                raise refused("this UNION ALL", why, self.loss.position, "write one part with OR or CASE")
            found |= names

    def _living(self, plan: Lifetime, sizes: Sizes) -> WeighedRows:
        """Rows that are valid for as long as they say, from their own instants on."""
        if plan.shift or plan.granule.length > 1:
            why = "rows begin at other instants than their own"
            raise refused("this LIFETIME", why, self.loss.position)
        if plan.fixed is None:
            why = "for how long rows may be missing differs from row to row"
            raise refused("this LIFETIME", why, self.loss.position, "give all rows the same lifetime")
        span = KeptSpan(Duration(plan.fixed), Duration(1), Duration(0))
        return WeighedRows(with_inputs(plan, (self._numbered(plan.input, sizes),)), span)

    def _joined(self, plan: Join, sizes: Sizes) -> WeighedRows:
        """A join with a relation, of which a row meets one row at most."""
        streams = [bool(sources_of(side)) for side in inputs_of(plan)]
        if all(streams):
            return self._paired(plan)
        port = streams.index(True)
        self._check_relation(plan, 1 - port)
        below = self.weighed(inputs_of(plan)[port], sizes_of_side(plan, port, sizes))
        names = [*plan.names]
        width = len(plan.left.schema) if port == 0 else len(names)
        names[width:width] = below.plan.schema.names[-2:]
        residual = plan.residual
        if residual is not None and port == 0:
            residual = transform_columns(residual, lambda part: beyond(part, width))
        sides = (below.plan, plan.right) if port == 0 else (plan.left, below.plan)
        joined = Join(*sides, plan.equalities, residual, tuple(unique_names(names)))
        last = len(joined.schema)
        places = [*range(width), *range(width + 2, last), width, width + 1]
        items = tuple((joined.schema[place].name, column(joined, place)) for place in places)
        return below.over(project(joined, items))

    def _paired(self, plan: Join) -> WeighedRows:
        """A join of two streams: of both the rows of the same keys are kept, and so the pairs of these."""
        left, right = KeyedSides(self.sources, self.loss).of(plan)
        if left.span[1:] != right.span[1:]:
            why = "its windows slide differently"
            raise refused("a join of two streams", why, self.loss.position)
        width, last = len(plan.left.schema), len(plan.schema)
        names = unique_names([*left.plan.schema.names, *right.plan.schema.names])
        residual = plan.residual
        if residual is not None:
            residual = transform_columns(residual, lambda part: beyond(part, width))
        joined = Join(left.plan, right.plan, plan.equalities, residual, tuple(names))
        weights = column(joined, width + 1), column(joined, last + 3)
        items = [*range(width), *range(width + 2, last + 2)]
        added = (("weight", resolve("GREATEST", weights)), ("drawn", column(joined, width)))
        chosen = unique_names([*plan.schema.names, *(name for name, _ in added)])
        values = (*(column(joined, place) for place in items), *(part for _, part in added))
        span = max(left.span, right.span, key=lambda span: span.size.length)
        return WeighedRows(Project(joined, tuple(zip(chosen, values, strict=True))), span, clustered=True)

    def _check_relation(self, plan: Join, port: int) -> None:
        other = inputs_of(plan)[port]
        asked = [pair[port] for pair in plan.equalities]
        keys = frozenset(key.index for key in asked if isinstance(key, Column))
        if not has_one_row(other, keys):
            why = "a row may meet several rows of it, which are then kept or left out together"
            hint = "join with one row for each key: (SELECT k, MAX(name) AS name FROM r GROUP BY k)"
            raise refused("a join with this relation", why, self.loss.position, hint)
        for node in walk(other):
            if type(node).__name__ == "RefreshedRelation":
                raise refused_node(node, self.loss.position)

    def _numbered(self, plan: Plan, sizes: Sizes) -> Plan:
        """The rows of an instant: each by itself that stands for itself, and as one those kept together."""
        drawn = self._drawn(plan, sizes)
        width = len(drawn.schema)
        weight = column(drawn, width - 1)
        *names, counted = unique_names([*drawn.schema.names, "rows"])
        others = Filter(drawn, resolve(">", (weight, ONE)))
        keys = tuple((name, column(drawn, place)) for place, name in enumerate(names))
        groups = Aggregate(others, keys, ((counted, resolve_aggregate("COUNT", None)),))
        left = [*range(width - 2), width - 1]
        alone = tuple((names[place], column(drawn, place)) for place in left)
        together = tuple((groups.schema[place].name, column(groups, place)) for place in (*left, width))
        lone = Project(Filter(drawn, resolve("=", (weight, ONE))), (*alone, (counted, literal(1))))
        return Union((lone, Project(groups, together)))

    def _drawn(self, plan: Plan, sizes: Sizes) -> Plan:
        """Rows of instants, those that are kept, with the draw and the weight in the last columns."""
        match plan:
            case Source(name=name) if type(plan) is Source:
                whole = self.sources[name]
                named = dict(sizes_of_rows(whole, plan, sizes))
                rows = with_columns(whole, named.values())
                number = self.streams.index(name)
                shed = Shed(rows, self.streams, self.loss.text, number=number, sizes=tuple(named))
                return columns_drawn(shed, plan)
            case Filter():
                return with_inputs(plan, (self._drawn(plan.input, sizes),))
            case Project():
                return projected(plan, self._drawn(plan.input, sizes_below(plan, sizes)))
            case Union(inputs=inputs):
                self._check_apart(plan)
                return with_inputs(plan, tuple(self._drawn(part, sizes) for part in inputs))
            case _:
                raise refused_node(plan, self.loss.position)
