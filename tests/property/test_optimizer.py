"""An optimized plan answers like its original, on random plans and random input, by the reference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.algebra.kinds import JoinKind, SetKind
from headrace.algebra.nodes import (
    EVERY_INSTANT,
    Aggregate,
    Distinct,
    Filter,
    Istream,
    Join,
    OuterJoin,
    Plan,
    Project,
    RowWindow,
    SetOperation,
    Source,
    TimeWindow,
    TopK,
    Union,
    WindowBounds,
    column,
)
from headrace.algebra.predicates import conjunction
from headrace.algebra.properties import walk
from headrace.elements import from_rows
from headrace.errors import ExecutionError
from headrace.expressions.aggregates.aggregates import resolve_aggregate
from headrace.expressions.coercion import literal
from headrace.expressions.functions.functions import resolve
from headrace.expressions.tree import Column, Expression, shift_columns
from headrace.history import equivalent
from headrace.optimizer import CHOSEN_RULES, LAST_RULES, RULES, optimize, optimize_by, rewrites
from headrace.optimizer.decisions import Decisions
from headrace.optimizer.joins.join_graph import JoinGraph, JoinOrder
from headrace.optimizer.joins.order_joins import in_orders, join_orders
from headrace.reference.contents import History
from headrace.reference.operators import evaluate
from headrace.schema import BIGINT, BOOLEAN, Field, Schema, unique_names
from headrace.time import INFINITY, Duration, TimeDomain
from how_many import examples
from property.expression_strategies import expressions
from property.plan_strategies import KINDS, Case, GeneratedStream, cases, plans, streams
from property.strategies import BUCKETS
from support import run_plans


@st.composite
def queries(draw: st.DrawFn) -> Case:
    """What SELECT ... FROM a, b WHERE ... makes: conditions above a join, expressions above and below."""
    made = (draw(streams("s0")), draw(streams("s1")))
    left, right = (draw(_inputs(plans([stream.source for stream in made], depth=1))) for _ in range(2))
    names = tuple(unique_names([*left.schema.names, *right.schema.names]))
    join = Join(left, right, (), None, names)
    parts = draw(st.lists(_conditions(join), min_size=1, max_size=3))
    predicate = conjunction(parts)
    assert predicate is not None
    kind = draw(st.sampled_from((JoinKind.INNER, JoinKind.LEFT, JoinKind.RIGHT, JoinKind.FULL)))
    found: Plan = Join(left, right, (), predicate, names)
    if kind is not JoinKind.INNER:
        condition = conjunction(draw(st.lists(_conditions(join), max_size=2)))
        found = Filter(OuterJoin(left, right, (), condition, names, kind), predicate)
    elif draw(st.booleans()):
        found = Filter(join, predicate)
    return Case(draw(_inputs(st.just(found))), made)


@st.composite
def _inputs(draw: st.DrawFn, below: st.SearchStrategy[Plan]) -> Plan:
    """Up to three filters and projections above a plan."""
    plan = draw(below)
    for _ in range(draw(st.integers(0, 3))):
        if draw(st.booleans()):
            plan = Filter(plan, draw(_expressions(plan, BOOLEAN)))
        else:
            items = draw(st.lists(_items(plan), min_size=1, max_size=3))
            plan = Project(plan, tuple((f"p{place}", part) for place, part in enumerate(items)))
    return plan


def _items(plan: Plan) -> st.SearchStrategy[Expression]:
    columns = [column(plan, place) for place in range(len(plan.schema))]
    return st.sampled_from(columns) | st.sampled_from(KINDS).flatmap(lambda kind: _expressions(plan, kind))


def _expressions(plan: Plan, kind: object) -> st.SearchStrategy[Expression]:
    return st.booleans().flatmap(
        lambda rough: expressions(plan.schema, kind, depth=2, rough=rough, kinds=KINDS)
    )


@st.composite
def _conditions(draw: st.DrawFn, join: Join) -> Expression:
    """An equality between both sides, or a condition on one of them or on both."""
    width = len(join.left.schema)
    match draw(st.sampled_from(("equal", "equal", "left", "right", "both"))):
        case "equal":
            kind = draw(st.sampled_from(KINDS))
            one, other = draw(_expressions(join.left, kind)), draw(_expressions(join.right, kind))
            pair = (one, shift_columns(other, width))
            return resolve("=", pair if draw(st.booleans()) else pair[::-1])
        case "left":
            return draw(_expressions(join.left, BOOLEAN))
        case "right":
            return shift_columns(draw(_expressions(join.right, BOOLEAN)), width)
        case _:
            return draw(_expressions(join, BOOLEAN))


@st.composite
def row_queries(draw: st.DrawFn) -> Case:
    """Filters and projections above a row window over rows that often tie, of which only some may pass it."""
    drawn = draw(streams("s0", max_disorder=0))
    crowded = tuple(((*row[:-1], ts // 4), ts // 4, ts // 4 + 1, w) for row, ts, _, w in drawn.elements)
    stream = replace(drawn, elements=crowded)
    columns = [column(stream.source, place) for place in range(len(stream.source.schema))]
    keys = tuple(draw(st.lists(st.sampled_from(columns), max_size=1)))
    rows, slide = draw(st.sampled_from((1, 2, 3))), draw(st.sampled_from((1, 1, 2)))
    window = RowWindow(stream.source, rows, slide, keys)
    chosen = draw(st.lists(st.sampled_from(columns), min_size=1, max_size=3))
    items = tuple((f"c{place}", part) for place, part in enumerate(chosen))
    return Case(draw(_inputs(st.just(Project(window, items)) | st.just(window))), (stream,))


@st.composite
def last_rows(draw: st.DrawFn) -> Case:
    """Filters and projections above the last row of each key, if a column of it is true."""
    drawn = draw(streams("s0", max_disorder=0))
    crowded = tuple(((*row[:-1], ts // 4), ts // 4, ts // 4 + 1, w) for row, ts, _, w in drawn.elements)
    stream = replace(drawn, elements=crowded)
    columns = [column(stream.source, place) for place in range(len(stream.source.schema))]
    some = draw(st.permutations([*columns, draw(_expressions(stream.source, BOOLEAN))]))
    below = Project(stream.source, tuple((f"c{place}", part) for place, part in enumerate(some)))
    window = RowWindow(below, 1, keys=(column(below, draw(st.integers(0, len(columns)))),))
    flag = column(window, next(place for place, part in enumerate(some) if part.type == BOOLEAN))
    condition = draw(st.sampled_from((flag, resolve("AND", (flag, draw(_expressions(window, BOOLEAN)))))))
    return Case(draw(_inputs(st.just(Filter(window, condition)))), (stream,))


def answer(plan: Plan, case: Case) -> History | str:
    """The history of a plan, or that it fails."""
    try:
        return evaluate(plan, case.reference_streams())
    except ExecutionError:
        return "fails"


@st.composite
def group_queries(draw: st.DrawFn) -> Case:
    """A join with groups, of whose results a condition and a projection leave less than there was."""
    made = (draw(streams("s0")), draw(streams("s1")))
    sources = [stream.source for stream in made]
    below = TimeWindow(sources[0], Duration(draw(st.sampled_from((2, 5, INFINITY)))), EVERY_INSTANT)
    fields = [column(below, place) for place in range(len(below.schema))]
    keys = tuple(
        (f"k{place}", key) for place, key in enumerate(draw(st.lists(st.sampled_from(fields), max_size=2)))
    )
    groups = Aggregate(below, keys, (("n", resolve_aggregate("COUNT", None)),))
    count = column(groups, len(keys))
    shown: list[Expression] = [column(groups, place) for place in range(len(keys))]
    shown += draw(st.sampled_from(([], [count], [resolve(">", (count, literal(2)))])))
    some = Filter(groups, resolve(draw(st.sampled_from((">", "<>"))), (count, literal(1))))
    left = Project(some, tuple((f"g{place}", item) for place, item in enumerate(shown)))
    right = draw(plans(sources[1:], depth=1))
    names = tuple(unique_names([*left.schema.names, *right.schema.names]))
    kind = draw(st.sampled_from((JoinKind.INNER, JoinKind.LEFT, JoinKind.RIGHT, JoinKind.FULL)))
    if kind is JoinKind.INNER:
        return Case(Join(left, right, (), None, names), made)
    return Case(OuterJoin(left, right, (), None, names, kind), made)


@st.composite
def chains(draw: st.DrawFn) -> Case:
    """Three or four inputs joined in any shape, each connected to an earlier one by an equality."""
    count = draw(st.integers(3, 4))
    made = tuple(draw(streams(f"s{place}", types=(BIGINT,), max_size=5)) for place in range(count))
    sizes = st.sampled_from((3, INFINITY))
    found: list[tuple[set[int], Plan]] = [
        ({place}, TimeWindow(stream.source, Duration(draw(sizes)), EVERY_INSTANT))
        for place, stream in enumerate(made)
    ]
    tree = [(draw(st.integers(0, place - 1)), place) for place in range(1, count)]
    while len(found) > 1:
        place = draw(st.integers(0, len(found) - 2))
        (ours, left), (theirs, right) = found[place : place + 2]
        names = tuple(unique_names([*left.schema.names, *right.schema.names]))
        join = Join(left, right, (), None, names)
        starts = _starts(made, sorted(ours | theirs))
        parts: list[Expression] = [
            resolve("=", (column(join, starts[one]), column(join, starts[other])))
            for one, other in tree
            if (one in ours) != (other in ours) and {one, other} <= ours | theirs
        ]
        if draw(st.integers(0, 4)) == 0:
            parts.append(draw(_expressions(join, BOOLEAN)))
        found[place : place + 2] = [(ours | theirs, replace(join, residual=conjunction(parts)))]
    return Case(found[0][1], made)


def _starts(made: Sequence[GeneratedStream], places: Sequence[int]) -> dict[int, int]:
    """The first column of each of some streams that are joined in their order."""
    widths = [len(made[place].source.schema) for place in places]
    return {place: sum(widths[:number]) for number, place in enumerate(places)}


@st.composite
def unions_of_windows(draw: st.DrawFn) -> Case:
    """A union of two windows, mostly the same one, with lists above, over rows of one type."""
    made = tuple(draw(streams(f"s{place}", types=(BIGINT,), max_size=6)) for place in range(2))
    shape = st.sampled_from(((3, 1), (6, 3), (4, 3), (INFINITY, 1)))
    shapes = [draw(shape)] * 2 if draw(st.integers(0, 3)) else [draw(shape), draw(shape)]
    inputs = []
    for stream, (size, slide) in zip(made, shapes, strict=True):
        window = TimeWindow(stream.source, Duration(size), Duration(slide))
        fields = st.sampled_from([column(window, place) for place in range(len(window.schema))])
        inputs.append(Project(window, tuple((f"u{place}", draw(fields)) for place in range(2))))
    return Case(draw(_inputs(st.just(Union(tuple(inputs))))), made)


@st.composite
def events_of_windows(draw: st.DrawFn) -> Case:
    """ISTREAM of rows of windows, mostly with bounds: groups, groups of these, or pairs of two windows."""
    made = tuple(draw(streams(f"s{place}", types=(BIGINT,), max_size=6)) for place in range(2))
    shapes = st.sampled_from(((3, 3, 0), (4, 2, 1), (3, 2, 0), (5, 1, 0)))
    lengths = shapes.map(lambda shape: (Duration(shape[0]), Duration(shape[1]), Duration(shape[2])))
    first = draw(lengths)
    left: Plan = draw(_windows(made[0].source, *first))
    if draw(st.booleans()):
        second = first if draw(st.booleans()) else draw(lengths)
        right = draw(_windows(made[1].source, *second) | st.just(TimeWindow(made[1].source, *second)))
        left = Join(left, right, (), None, tuple(unique_names([*left.schema.names, *right.schema.names])))
    columns = draw(st.lists(st.sampled_from(_fields(left)), min_size=1))
    shown = Project(left, tuple((f"u{place}", one) for place, one in enumerate(columns)))
    return Case(draw(_inputs(st.just(Istream(draw(st.just(left) | _inputs(st.just(shown))))))), made)


@st.composite
def _windows(draw: st.DrawFn, source: Plan, size: Duration, slide: Duration, offset: Duration) -> Plan:
    """Rows of windows with their bounds last, or groups of them, whose rows are limited or told apart."""
    window: Plan = TimeWindow(source, size, slide, offset)
    count = resolve_aggregate("COUNT", None)
    if draw(st.booleans()):
        window = Aggregate(window, (("k", draw(st.sampled_from(_fields(window)))),), (("n", count),))
    if draw(st.booleans()):
        window = Distinct(window) if draw(st.booleans()) else TopK(window, (), (), 2)
    found: Plan = WindowBounds(window, size, slide, offset)
    if draw(st.booleans()):
        some = draw(st.lists(st.sampled_from(_fields(found)), min_size=1, max_size=2))
        keys = tuple((f"k{place}", key) for place, key in enumerate(some))
        found = Aggregate(found, keys, (("n", count),))
        # The last column is a bound again, or was one.
        order = (*_fields(found)[::-1],)
        found = Project(found, tuple((f"o{place}", one) for place, one in enumerate(order)))
    return found


def _fields(plan: Plan) -> list[Column]:
    return [column(plan, place) for place in range(len(plan.schema))]


CASES = (
    cases(depth=4)
    | events_of_windows()
    | queries()
    | chains()
    | unions_of_windows()
    | row_queries()
    | last_rows()
    | group_queries()
    | cases(depth=2, root="window_groups")
)


@examples(17)
@given(CASES)
def test_an_optimized_plan_equals_its_original(case: Case) -> None:
    optimized = optimize(case.plan)
    assert optimized.schema == case.plan.schema
    assert answer(optimized, case) == answer(case.plan, case)


@examples(17)
@given(CASES)
def test_every_single_rule_keeps_the_answer(case: Case) -> None:
    expected = answer(case.plan, case)
    for rule in (*RULES, *LAST_RULES):
        rewritten = rule.rewrite(case.plan)
        assert rewritten.schema == case.plan.schema
        assert answer(rewritten, case) == expected, rule.name


@examples(20)
@given(events_of_windows(), BUCKETS, st.sampled_from((1, 2, 3)))
def test_events_of_windows_run_as_the_reference_says(case: Case, buckets: int, epoch_rows: int) -> None:
    plan = optimize(case.plan)
    history = evaluate(case.plan, case.reference_streams())
    found = run_plans({"q": plan}, case.inputs(), buckets=buckets, epoch_rows=epoch_rows)["q"].elements()
    assert equivalent(found, from_rows(plan.schema, [(row, ts, te, 1) for row, ts, te in history]))


@st.composite
def crowded_chains(draw: st.DrawFn) -> Case:
    """Three or four inputs with many partners, each joined with an earlier one; some columns left out."""
    count = draw(st.integers(3, 4))
    schema = Schema((Field("k", BIGINT), Field("ts", BIGINT)))
    row = st.tuples(st.sampled_from((0, 0, 1, None)), st.integers(0, 3))
    found: Plan | None = None
    made = []
    for place in range(count):
        rows = draw(st.lists(row, min_size=2, max_size=5))
        elements = tuple(((key, ts), ts, ts + 1, 1) for key, ts in sorted(rows, key=lambda one: one[1]))
        source = Source(f"s{place}", schema, "ts", TimeDomain.INTEGER)
        made.append(GeneratedStream(source, schema, elements, 0))
        window = TimeWindow(source, Duration(draw(st.sampled_from((5, INFINITY)))), EVERY_INSTANT)
        if found is None:
            found = window
            continue
        names = tuple(unique_names([*found.schema.names, *window.schema.names]))
        join = Join(found, window, (), None, names)
        other = draw(
            st.sampled_from([place for place, name in enumerate(names[:-2]) if name.startswith("k")])
        )
        pair = (column(join, other), column(join, len(names) - 2))
        found = replace(join, residual=resolve(draw(st.sampled_from(("=", "=", "<>", "<="))), pair))
        kept = draw(st.permutations(range(len(names)))) if draw(st.booleans()) else range(len(names))
        found = Project(found, tuple((names[place], column(found, place)) for place in kept))
    assert found is not None
    return Case(found, tuple(made))


@settings(max_examples=20)
@given(crowded_chains(), st.randoms(use_true_random=False))
def test_joins_in_any_order_have_the_same_answer(case: Case, random: Random) -> None:
    def any_order(graph: JoinGraph) -> JoinOrder:
        parts: list[JoinOrder] = random.sample(range(len(graph.inputs)), len(graph.inputs))
        while len(parts) > 1:
            left, right = (parts.pop(random.randrange(len(parts))) for _ in range(2))
            parts.append((left, right))
        return parts[0]

    optimized = optimize(case.plan)
    orders = join_orders(optimized, any_order)
    assert orders
    expected = answer(case.plan, case)
    assert answer(in_orders(optimized, orders), case) == expected
    assert answer(optimize_by(case.plan, Decisions((), orders)), case) == expected


@st.composite
def groups_of_joins(draw: st.DrawFn) -> Case:
    """Groups, or rows without duplicates, over joins of which some columns may be left out."""
    case = draw(crowded_chains())
    below = case.plan
    fields = [column(below, place) for place in range(len(below.schema))]
    some = tuple(
        (f"g{place}", part) for place, part in enumerate(draw(st.lists(st.sampled_from(fields), max_size=3)))
    )
    if draw(st.booleans()):
        return replace(case, plan=Distinct(Project(below, some) if some else below))
    place = draw(st.integers(0, len(fields) - 1))
    calls = [resolve_aggregate(name, fields[place]) for name in ("MIN", "MAX", "COUNT")]
    calls.append(replace(calls[-1], condition=resolve(">", (fields[place], literal(0)))))
    chosen = draw(st.lists(st.sampled_from(calls), min_size=1, max_size=3))
    aggregates = tuple((f"a{number}", call) for number, call in enumerate(chosen))
    return replace(case, plan=Aggregate(below, some, aggregates))


@st.composite
def distinct_unions(draw: st.DrawFn) -> Case:
    """Rows without duplicates of unions, some with none in their inputs, filtered and listed between."""
    case = draw(unions_of_windows())
    (union,) = (node for node in walk(case.plan) if isinstance(node, Union))
    inputs: list[Plan] = []
    for below in (*union.inputs, draw(st.sampled_from(union.inputs))):
        plan: Plan = Distinct(below) if draw(st.booleans()) else below
        if draw(st.booleans()):
            plan = Filter(plan, draw(_expressions(plan, BOOLEAN)))
        if draw(st.booleans()):
            plan = Project(plan, tuple((name, column(plan, 0)) for name in plan.schema.names))
        inputs.append(plan)
    first, second, third = inputs
    united = st.sampled_from(
        (
            lambda one, other: Union((one, other)),
            lambda one, other: Distinct(Union((one, other))),
            lambda one, other: SetOperation(one, other, SetKind.UNION),
        )
    )
    return replace(case, plan=Distinct(draw(united)(draw(united)(first, second), third)))


@given(groups_of_joins() | distinct_unions())
@examples(20, 60)
def test_what_is_done_before_others_has_the_same_answer(case: Case) -> None:
    expected = answer(case.plan, case)
    for plan in (case.plan, optimize(case.plan)):
        for rule in CHOSEN_RULES:
            rewritten = rule.rewrite(plan)
            assert rewritten.schema == case.plan.schema
            assert answer(rewritten, case) == expected, rule.name
            assert answer(optimize(rewritten), case) == expected, rule.name
            assert rule.rewrite(rewritten) == rewritten


@examples(17)
@given(chains())
def test_inputs_that_conditions_connect_are_never_joined_as_all_pairs(case: Case) -> None:
    joins = [node for node in walk(optimize(case.plan)) if isinstance(node, Join)]
    assert all(join.equalities for join in joins)


@examples(17)
@given(CASES)
def test_an_optimized_plan_is_not_rewritten_again(case: Case) -> None:
    assert rewrites(optimize(case.plan)) == []
