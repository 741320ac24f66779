"""What a plan means, straight from the definitions on contents in `headrace.algebra.nodes`.

The evaluator asks for the content of a node at an instant, which asks for the contents of its inputs. It is
slow and keeps nothing but answers it gave before; operators are tested against it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import assert_never

from headrace.algebra.kinds import JoinKind, SetKind
from headrace.algebra.nodes import (
    Aggregate,
    AnyAggregate,
    AnyJoin,
    ApproximateAggregate,
    BloomFilter,
    Clip,
    Coalesce,
    Distinct,
    Dstream,
    Early,
    EventSource,
    Filter,
    Finalize,
    GapFill,
    Granularity,
    Istream,
    Join,
    LargestWeight,
    Lifetime,
    LimitedJoin,
    Match,
    NestedAggregate,
    OuterJoin,
    Over,
    Plan,
    Project,
    Relation,
    Remember,
    RowWindow,
    Rstream,
    Sample,
    SemiJoin,
    SessionAggregate,
    SessionWindow,
    SetOperation,
    Source,
    Split,
    TimeWindow,
    TopK,
    Union,
    Unnest,
    Weighing,
    WindowBounds,
    inputs_of,
)
from headrace.expressions.tree import AggregateCall, Expression, arguments_of
from headrace.reference.aggregates import aggregate
from headrace.reference.contents import (
    Content,
    History,
    Payload,
    Stream,
    content_at,
    counts_at,
    history_of,
    payload,
)
from headrace.reference.sampling import is_found, sampled, shares_kept, weight_changes
from headrace.reference.scalars import RowError, equal, value
from headrace.reference.summaries import approximate
from headrace.reference.top_k import first_rows
from headrace.reference.windows import (
    LooksBack,
    PastContents,
    bound_changes,
    frames,
    granules_shown,
    rows_shown,
    session_changes,
    window_changes,
    window_content,
    with_bounds,
)
from headrace.time import ALWAYS, BEGINNING, INFINITY, MIN_INSTANT


@dataclass(frozen=True)
class DeadLetter:
    """A row that an operator left out because an expression failed on it.

    Attributes:
        node: the operator.
        row: the payload the expression was computed from; of a join's residual, both sides' columns.
        reason: why it failed.
    """

    node: Plan
    row: Payload
    reason: str


def evaluate(plan: Plan, streams: Mapping[str, Stream], errors: list[DeadLetter] | None = None) -> History:
    """The canonical history of a plan.

    Args:
        plan: any plan.
        streams: the elements of its sources by name, with at least the columns that the sources read.
        errors: takes the rows that were left out, each once per operator and reason.

    Raises:
        ExecutionError: a SUM overflows.
        HistoryError: a source's content is below zero at some instant.
    """
    evaluation = _Evaluation(streams)
    contents = {instant: evaluation.content(plan, instant) for instant in evaluation.instants(plan)}
    if errors is not None:
        errors.extend(evaluation.errors)
    return history_of(contents)


@dataclass
class _Evaluation:
    """One evaluation: the sources, and what was found out so far."""

    streams: Mapping[str, Stream]
    errors: dict[DeadLetter, None] = field(default_factory=dict)
    _contents: dict[tuple[int, int], Content] = field(default_factory=dict)
    _instants: dict[int, frozenset[int]] = field(default_factory=dict)

    def content(self, plan: Plan, instant: int) -> Content:
        """The content of the plan's stream at an instant."""
        key = id(plan), instant
        if key not in self._contents:
            self._contents[key] = self._content(plan, instant)
        return self._contents[key]

    def instants(self, plan: Plan) -> frozenset[int]:
        """All the instants at which the content may differ from that of the instant before."""
        if id(plan) not in self._instants:
            self._instants[id(plan)] = frozenset(self._changes(plan)) - {INFINITY}
        return self._instants[id(plan)]

    def _changes(self, plan: Plan) -> set[int]:
        below = {instant for node in inputs_of(plan) for instant in self.instants(node)}
        match plan:
            case Relation(is_constant=True):
                return {ALWAYS}
            case Source(name=name) | Relation(name=name):
                return {end for _, ts, te, _ in self.streams[name].elements for end in (ts, te)}
            case TimeWindow() | BloomFilter():
                return {change for instant in below for change in window_changes(plan, instant)}
            case Lifetime():
                return {end for *ends, _ in self._lifetimes(plan) for end in ends}
            case SessionWindow() | GapFill():
                return {change for instant in below for change in session_changes(plan, instant)}
            case WindowBounds() | LargestWeight() | Split():
                return below.union(*self._cuts(plan))
            case NestedAggregate() | SessionAggregate() | Match():
                return set(self.instants(plan.written_out))
            case Istream() | Dstream():
                return below | {instant + 1 for instant in below}
            case Granularity(granule=granule, steps=()):
                return {-(-instant // granule.length) * granule.length for instant in below}
            case Granularity():
                return set(granules_shown(plan, self.instants))
            case Clip(begin=begin, end=end):
                return {instant for instant in below if begin <= instant < end} | {begin, end} - {BEGINNING}
            case _:
                return below

    def _cuts(self, plan: WindowBounds | LargestWeight | Split) -> Iterator[Iterable[int]]:
        """The instants at which a node may cut the elements of its input."""
        if isinstance(plan, LargestWeight):
            return iter([weight_changes(plan)])
        if isinstance(plan, WindowBounds):
            return (bound_changes(plan, *ends) for ends in self._filled(plan.input))
        # A stream of chronons changes at every instant at which it holds rows; windows look there.
        return (range(*ends) for ends in self._filled(plan.input))

    def _filled(self, plan: Plan) -> Iterator[tuple[int, int]]:
        """The intervals in which the content does not change and is not empty."""
        instants = sorted(self.instants(plan))
        return ((start, end) for start, end in pairwise(instants) if self.content(plan, start))

    def _content(self, plan: Plan, instant: int) -> Content:
        match plan:
            case Source() | Relation():
                return self._source(plan, instant)
            case Filter():
                return self._filter(plan, self.content(plan.input, instant))
            case Project() | Unnest():
                return self._mapped(plan, self.content(plan.input, instant))
            case TimeWindow() | Lifetime() | WindowBounds() | Weighing():
                return self._window(plan, instant)
            case RowWindow() | SessionWindow() | Over() | BloomFilter() | GapFill():
                return self._looking_back(plan, instant)
            case Union() | SetOperation() | Join() | OuterJoin() | SemiJoin():
                return self._combined(plan, [self.content(below, instant) for below in inputs_of(plan)])
            case Aggregate() | ApproximateAggregate():
                return self._aggregated(plan, instant)
            case Distinct() | TopK() | Finalize() | Sample():
                return _counted(plan, self.content(plan.input, instant), instant)
            case Istream() | Dstream():
                return self._change(plan, instant)
            case Granularity() | Clip():
                return self._at_some(plan, instant)
            case (
                NestedAggregate()
                | SessionAggregate()
                | Match()
                | Rstream()
                | Split()
                | Coalesce()
                | Early()
                | Remember()
            ):
                return self.content(_meant(plan), instant)
            case _:
                assert_never(plan)

    def _combined(self, plan: Union | SetOperation | AnyJoin, inputs: list[Content]) -> Content:
        match plan:
            case Union():
                return sum(inputs, Counter())
            case SetOperation(kind=kind):
                return _combine(kind, *inputs)
            case Join() | OuterJoin() | SemiJoin():
                return self._join(plan, *inputs)
            case _:
                assert_never(plan)

    def _source(self, plan: Source | Relation, instant: int) -> Content:
        stream = self.streams[plan.name]
        names = [name.lower() for name in stream.columns]
        places = [names.index(name.lower()) for name in plan.schema.names]
        content: Content = Counter()
        signed = isinstance(plan, EventSource) and plan.signed
        found = counts_at if signed else content_at
        for row, count in found(stream.elements, instant).items():
            content[tuple(row[place] for place in places)] += count
        return content

    def _filter(self, plan: Filter, below: Content) -> Content:
        held = (row for row in below if self._values(plan, (plan.predicate,), row) == (True,))
        return Counter({row: below[row] for row in held})

    def _project(self, plan: Project, below: Content) -> Content:
        content: Content = Counter()
        for row, count in below.items():
            values = self._values(plan, [expression for _, expression in plan.items], row)
            if values is not None:
                content[values] += count
        return content

    def _mapped(self, plan: Project | Unnest, below: Content) -> Content:
        return self._project(plan, below) if isinstance(plan, Project) else self._unnest(plan, below)

    def _unnest(self, plan: Unnest, below: Content) -> Content:
        content: Content = Counter()
        for row, count in below.items():
            found = self._values(plan, (plan.values,), row)
            if found is None:
                continue
            (listed,) = found
            assert listed is None or isinstance(listed, list | tuple)
            values = list(listed or ())
            kept = tuple(row[place] for place in plan.kept)
            width = len(plan.schema) - len(kept)
            if not values and plan.outer:
                content[(*kept, *([None] * width))] += count
            for place, one in enumerate(values, start=1):
                several = len(plan.names) > 1
                parts = one if several and one is not None else (one,) * len(plan.names)
                content[(*kept, *parts, place)[: len(plan.schema)]] += count
        return content

    def _window(self, plan: TimeWindow | Lifetime | WindowBounds | Weighing, instant: int) -> Content:
        if isinstance(plan, Weighing):
            return shares_kept(plan, instant, self.content(plan.input, instant))
        if isinstance(plan, Lifetime):
            living = (rows for begin, end, rows in self._lifetimes(plan) if begin <= instant < end)
            return sum(living, Counter())
        if isinstance(plan, WindowBounds):
            return with_bounds(plan, instant, self.content(plan.input, instant))
        return rows_shown(plan, instant, self.instants, self.content)

    def _lifetimes(self, plan: Lifetime) -> Iterator[tuple[int, int, Content]]:
        """When each row of the input begins and ends to be valid, and how often it is there."""
        for then in self.instants(plan.input):
            begin = max(then // plan.granule.length * plan.granule.length + plan.shift, MIN_INSTANT)
            for row, count in self.content(plan.input, then).items():
                (length,) = self._values(plan, (plan.duration,), row) or (None,)
                if isinstance(length, int) and length >= 1:
                    end = INFINITY if length == INFINITY else min(begin + length, INFINITY)
                    yield begin, end, Counter({row: count})

    def _at_some(self, plan: Granularity | Clip, instant: int) -> Content:
        if isinstance(plan, Granularity) and plan.steps:
            return rows_shown(plan, instant, self.instants, self.content)
        if isinstance(plan, Granularity):
            return self.content(plan.input, instant // plan.granule.length * plan.granule.length)
        return self.content(plan.input, instant) if plan.begin <= instant < plan.end else Counter()

    def _change(self, plan: Istream | Dstream, instant: int) -> Content:
        before, now = self.content(plan.input, instant - 1), self.content(plan.input, instant)
        return now - before if isinstance(plan, Istream) else before - now

    def _past(self, plan: Plan, instant: int) -> PastContents:
        """What a stream of chronons held at every instant so far; between these its content is empty."""
        return {past: self.content(plan, past) for past in self.instants(plan) if past <= instant}

    def _join(self, plan: AnyJoin, left: Content, right: Content) -> Content:
        pairs = self._pairs(plan, left, right)
        ours, theirs = {one for one, _ in pairs}, {other for _, other in pairs}
        if isinstance(plan, SemiJoin):
            return Counter({row: count for row, count in left.items() if (row in ours) != plan.anti})
        content: Content = Counter()
        for one, other in pairs:
            content[one + other] += left[one] * right[other]
        if isinstance(plan, OuterJoin) and plan.kind is not JoinKind.RIGHT:
            for row in left.keys() - ours:
                content[row + (None,) * len(plan.right.schema)] += left[row]
        if isinstance(plan, OuterJoin) and plan.kind is not JoinKind.LEFT:
            for row in right.keys() - theirs:
                content[(None,) * len(plan.left.schema) + row] += right[row]
        return content

    def _pairs(self, plan: AnyJoin, left: Content, right: Content) -> list[tuple[Payload, Payload]]:
        """The payloads of both inputs that match."""
        left_keys = {row: self._values(plan, [one for one, _ in plan.equalities], row) for row in left}
        right_keys = {row: self._values(plan, [other for _, other in plan.equalities], row) for row in right}
        pairs = []
        for one, one_key in left_keys.items():
            for other, other_key in right_keys.items():
                if one_key is None or other_key is None:
                    continue
                if all(map(equal, one_key, other_key)) and self._holds(plan, one + other):
                    pairs.append((one, other))
        return pairs

    def _holds(self, plan: AnyJoin, row: Payload) -> bool:
        if isinstance(plan, LimitedJoin) and not is_found(plan, row):
            return False
        return plan.residual is None or self._values(plan, (plan.residual,), row) == (True,)

    def _looking_back(self, plan: LooksBack | Over, instant: int) -> Content:
        past = self._past(plan.input, INFINITY if isinstance(plan, GapFill) else instant)
        if not isinstance(plan, Over):
            return window_content(plan, instant, past)
        content: Content = Counter()
        for row, below in frames(plan, instant, past):
            added = zip(plan.aggregates, below, strict=True)
            answers = (self._over(plan, call, rows) for (_, call, _), rows in added)
            content[row + payload(answers)] += 1
        return content

    def _over(self, plan: Over, call: AggregateCall, rows: list[Payload]) -> object:
        """An aggregate over the rows of a frame."""
        answer = self._groups(Aggregate(plan.input, (), (("", call),)), Counter(rows))
        ((result,),) = answer or [(aggregate(call, ()),)]
        return result

    def _groups(self, plan: Aggregate, below: Content) -> Content:
        groups: dict[Payload, list[list[Payload | None]]] = defaultdict(list)
        keys = [key for _, key in plan.keys]
        calls = [call for _, call in plan.aggregates]
        for row in below.elements():
            key = self._values(plan, keys, row)
            inputs = self._inputs(plan, calls, row)
            if key is not None and inputs is not None:
                groups[key].append(inputs)
        content: Content = Counter()
        for key, rows in groups.items():
            columns = zip(*rows, strict=True) if calls else ()
            results = (
                aggregate(call, [row for row in column if row is not None])
                for call, column in zip(calls, columns, strict=True)
            )
            content[payload((*key, *results))] += 1
        return content

    def _aggregated(self, plan: AnyAggregate, instant: int) -> Content:
        if isinstance(plan, ApproximateAggregate):
            return self._approximate_groups(plan, instant)
        return self._groups(plan, self.content(plan.input, instant))

    def _approximate_groups(self, plan: ApproximateAggregate, instant: int) -> Content:
        """The groups of the exact aggregation, with what the rows that began in two laps tell of each."""
        calls = [call for _, call in plan.aggregates]
        groups: dict[Payload, dict[int, list[list[Payload | None]]]] = defaultdict(lambda: defaultdict(list))
        for when, rows in self._begun(plan, instant).items():
            for row in rows.elements():
                key = self._values(plan, [key for _, key in plan.keys], row)
                inputs = self._inputs(plan, calls, row)
                if key is not None and inputs is not None:
                    groups[key][when].append(inputs)
        content: Content = Counter()
        for key, begun in groups.items():
            if any(instant - plan.size.length < when for when in begun):
                results = []
                for place, call in enumerate(calls):
                    columns = {when: [row[place] for row in rows] for when, rows in begun.items()}
                    given = {when: [row for row in rows if row is not None] for when, rows in columns.items()}
                    results.append(approximate(call, given, plan.size.length, instant))
                content[payload((*key, *results))] += 1
        return content

    def _begun(self, plan: ApproximateAggregate, instant: int) -> PastContents:
        """By instant up to now, the rows that begin then: those that are there but for those that stay."""
        begun: dict[int, Content] = {}
        for when in sorted(past for past in self.instants(plan.input) if past <= instant):
            stay = self.content(plan.input, when - 1) - begun.get(when - plan.size.length, Counter())
            begun[when] = self.content(plan.input, when) - stay
        return begun

    def _inputs(
        self, node: Plan, calls: Sequence[AggregateCall], row: Payload
    ) -> list[Payload | None] | None:
        """What each aggregate takes in of a row, or None, with a dead letter, if an expression fails."""
        try:
            return [_input(call, row) for call in calls]
        except RowError as error:
            self.errors[DeadLetter(node, row, error.reason)] = None
            return None

    def _values(self, node: Plan, expressions: Sequence[Expression], row: Payload) -> Payload | None:
        """The values of expressions over a row, or None, with a dead letter, if one of them fails."""
        try:
            return payload(value(expression, row) for expression in expressions)
        except RowError as error:
            self.errors[DeadLetter(node, row, error.reason)] = None
            return None


def _meant(
    plan: NestedAggregate | SessionAggregate | Match | Rstream | Split | Coalesce | Early | Remember,
) -> Plan:
    """The plan that has the same content: what a node is short for, or its input."""
    if isinstance(plan, NestedAggregate | SessionAggregate | Match):
        return plan.written_out
    return plan.input


def _counted(plan: Distinct | TopK | Finalize | Sample, below: Content, instant: int) -> Content:
    """What depends on how often rows are in the input's content at an instant alone."""
    match plan:
        case TopK():
            return first_rows(plan, below)
        case Distinct():
            return Counter(set(below))
        case Finalize():
            return Counter({row: count for row, count in below.items() if count > 0})
        case Sample():
            taken = {row: sampled(plan, row, count, instant) for row, count in below.items()}
            return Counter({row: count for row, count in taken.items() if count})
        case _:
            assert_never(plan)


def _combine(kind: SetKind, left: Content, right: Content) -> Content:
    return Counter(
        {row: n for row in {**left, **right} if (n := _multiplicity(kind, left[row], right[row])) > 0}
    )


def _multiplicity(kind: SetKind, left: int, right: int) -> int:
    match kind:
        case SetKind.UNION:
            return 1 if left + right else 0
        case SetKind.INTERSECT:
            return 1 if left and right else 0
        case SetKind.EXCEPT:
            return 1 if left and not right else 0
        case SetKind.UNION_MAX:
            return max(left, right)
        case SetKind.INTERSECT_ALL:
            return min(left, right)
        case SetKind.INTERSECT_STRICT:
            return left if right else 0
        case SetKind.EXCEPT_ALL:
            return left - right
        case SetKind.EXCEPT_STRICT:
            return 0 if right else left
        case _:
            assert_never(kind)


def _input(call: AggregateCall, row: Payload) -> Payload | None:
    """What an aggregate takes in of a row; None where the condition of FILTER is not true."""
    if call.condition is not None and value(call.condition, row) is not True:
        return None
    return tuple(value(part, row) for part in arguments_of(call))
