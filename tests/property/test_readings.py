"""Texts by SQL's reading: joins within intervals against all pairs, groups against all rows so far."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import product

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from auctions import define
from headrace.algebra.bounds import has_unbounded_state
from headrace.algebra.nodes import Istream, Plan
from headrace.language.binding.binder import bind
from headrace.language.catalog import Catalog
from headrace.language.defaults import Defaults
from headrace.language.parsing.parser import parse_one
from headrace.language.statements.statements import Select
from headrace.reference.contents import Payload, Stream
from headrace.reference.operators import evaluate
from headrace.time import INFINITY
from how_many import examples

COLUMNS = ("ts", "k", "v")
NAMES = ("a", "b", "c")
CATALOG, _ = define(
    "".join(
        f"CREATE STREAM {name} (ts BIGINT, k BIGINT, v BIGINT) FROM push TIMESTAMP BY ts;" for name in NAMES
    ),
    Catalog(),
)

TIMED, _ = define(
    "".join(f"CREATE STREAM {name} (at TIMESTAMP) FROM push TIMESTAMP BY at;" for name in NAMES), Catalog()
)

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
STEP = 977_000_000

Rows = list[tuple[int, int, int]]
Events = Counter[tuple[object, ...]]
"""The number of times that a row is there at an instant, by its values and then the instant."""

rows = st.lists(st.tuples(st.integers(0, 14), st.integers(0, 1), st.integers(0, 2)), max_size=6)
"""The rows of a stream: ts, k and v."""


@st.composite
def inputs(draw: st.DrawFn) -> dict[str, Rows]:
    return {name: draw(rows) for name in NAMES}


EVERY_DISTANCE: dict[str, Rows] = {
    "a": [(7, 0, 1)],
    "b": [(ts, 0, 0) for ts in range(15)],
    "c": [(ts, 0, 2) for ts in range(15)],
}


def streams_of(data: dict[str, Rows]) -> dict[str, Stream]:
    return {
        name: Stream(COLUMNS, [(row, row[0], row[0] + 1, 1) for row in found]) for name, found in data.items()
    }


def plan_of(text: str, defaults: Defaults = Defaults.SQL) -> Plan:
    statement = parse_one(text)
    assert isinstance(statement, Select)
    return bind(statement.query, replace(CATALOG, defaults=defaults))


def events_of(plan: Plan, data: dict[str, Rows]) -> Events:
    """The events of a plan, which must be a stream."""
    found: Events = Counter()
    assert plan.is_chronon, plan
    for row, ts, te in evaluate(plan, streams_of(data)):
        found.update((*row, instant) for instant in range(ts, te))
    return found


# --- joins within intervals --------------------------------------------------------------------------------

bounds = st.tuples(st.integers(-4, 4), st.integers(0, 6)).map(lambda pair: (pair[0], pair[0] + pair[1]))
"""The least and the greatest distance of one row from an earlier one."""


def within(later: str, earlier: str, low: int, high: int, spelling: int) -> str:
    """A condition that one timestamp is so much later than another, in one of several spellings."""
    match spelling:
        case 0:
            return f"{later}.ts BETWEEN {earlier}.ts + {low} AND {earlier}.ts + {high}"
        case 1:
            return f"{later}.ts - {earlier}.ts >= {low} AND {later}.ts <= {earlier}.ts + {high}"
        case 2:
            return f"NOT ({later}.ts < {earlier}.ts + {low}) AND {earlier}.ts + {high + 1} > {later}.ts"
        case _:
            return f"{earlier}.ts >= {later}.ts - {high} AND {earlier}.ts - {later}.ts <= {-low}"


@examples(40, 80)
@given(inputs(), st.data())
def test_three_streams_within_intervals(data: dict[str, Rows], draws: st.DataObject) -> None:
    first, second = draws.draw(bounds), draws.draw(bounds)
    anchor = draws.draw(st.sampled_from("ab"))
    spelled = [draws.draw(st.integers(0, 3)) for _ in range(2)]
    conditions = within("b", "a", *first, spelled[0]), within("c", anchor, *second, spelled[1])
    listed = "a.ts, a.v, b.ts, b.v, c.ts, c.v"
    froms = [
        f"a JOIN b ON a.k = b.k AND {conditions[0]} JOIN c ON a.k = c.k AND {conditions[1]}",
        f"a, b, c WHERE a.k = b.k AND {conditions[0]} AND a.k = c.k AND {conditions[1]}",
        f"c JOIN (a JOIN b ON a.k = b.k AND {conditions[0]}) ON a.k = c.k AND {conditions[1]}",
        f"a JOIN b USING (k) JOIN c USING (k) WHERE {conditions[0]} AND {conditions[1]}",
    ]
    expected: Events = Counter()
    for a, b, c in product(*(data[name] for name in NAMES)):
        from_anchor = c[0] - (a if anchor == "a" else b)[0]
        if (
            a[1] == b[1] == c[1]
            and first[0] <= b[0] - a[0] <= first[1]
            and second[0] <= from_anchor <= second[1]
        ):
            expected[a[0], a[2], b[0], b[2], c[0], c[2], max(a[0], b[0], c[0])] += 1
    plan = plan_of(f"SELECT {listed} FROM {draws.draw(st.sampled_from(froms))}")
    assert events_of(plan, data) == expected


KINDS = ("LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN")


@examples(60, 120)
@given(inputs(), st.sampled_from(KINDS), bounds, st.integers(0, 3), st.booleans())
def test_rows_without_a_partner_within_an_interval(
    data: dict[str, Rows], kind: str, bound: tuple[int, int], spelling: int, using: bool
) -> None:
    condition = within("b", "a", *bound, spelling)
    listed = "a.ts, a.v" if kind.startswith("LEFT ") and kind != "LEFT JOIN" else "a.ts, a.v, b.ts, b.v"
    plan = plan_of(f"SELECT {listed} FROM a {kind} b ON a.k = b.k AND {condition}")
    low, high = bound

    def met(a: tuple[int, int, int], b: tuple[int, int, int]) -> bool:
        return a[1] == b[1] and low <= b[0] - a[0] <= high

    ours, theirs = data["a"], data["b"]
    expected: Events = Counter()
    alone = [row for row in ours if not any(met(row, other) for other in theirs)]
    if kind == "LEFT ANTI JOIN":
        expected.update((row[0], row[2], row[0] + max(0, high)) for row in alone)
    elif kind == "LEFT SEMI JOIN":
        for row in ours:
            partners = [other[0] for other in theirs if met(row, other)]
            if partners:
                expected[row[0], row[2], max(row[0], min(partners))] += 1
    else:
        pairs = ((a, b) for a, b in product(ours, theirs) if met(a, b))
        expected.update((a[0], a[2], b[0], b[2], max(a[0], b[0])) for a, b in pairs)
        if kind != "RIGHT JOIN":
            expected.update((row[0], row[2], None, None, row[0] + max(0, high)) for row in alone)
        if kind != "LEFT JOIN":
            others = (row for row in theirs if not any(met(other, row) for other in ours))
            expected.update((None, None, row[0], row[2], row[0] + max(0, -low)) for row in others)
    assert events_of(plan, data) == expected


@examples(30, 60)
@given(inputs(), bounds, st.integers(0, 3))
def test_one_question_in_several_spellings(
    data: dict[str, Rows], bound: tuple[int, int], spelling: int
) -> None:
    condition = within("b", "a", *bound, spelling)
    for join, others in {
        "LEFT SEMI JOIN": (
            "EXISTS (SELECT 1 FROM b WHERE a.k = b.k AND {})",
            "k IN (SELECT b.k FROM b WHERE {})",
        ),
        "LEFT ANTI JOIN": (
            "NOT EXISTS (SELECT 1 FROM b WHERE a.k = b.k AND {})",
            "a.k NOT IN (SELECT b.k FROM b WHERE {})",
        ),
    }.items():
        expected = events_of(plan_of(f"SELECT a.ts, a.v FROM a {join} b ON a.k = b.k AND {condition}"), data)
        for other in others:
            assert (
                events_of(plan_of(f"SELECT ts, v FROM a WHERE {other.format(condition)}"), data) == expected
            )


CONDITIONS = [
    "ABS(b.ts - a.ts) <= 3",
    "2 * (b.ts - a.ts) BETWEEN -1 AND 7",
    "a.ts DIV 5 = b.ts DIV 5",
    "FLOOR(a.ts / 4) = FLOOR(b.ts / 4)",
    "NOT (b.ts < a.ts - 3 OR b.ts > a.ts + 5)",
    "NOT (b.ts <= a.ts - 3 OR a.ts + 5 <= b.ts)",
    "(b.ts BETWEEN a.ts AND a.ts + 1 OR b.ts BETWEEN a.ts - 6 AND a.ts - 5)",
    "b.ts - a.ts IN (0, 5)",
    "b.ts >= a.ts AND NOT b.ts - 4 > a.ts",
    "CASE WHEN a.v > 0 THEN b.ts BETWEEN a.ts AND a.ts + 2 ELSE b.ts = a.ts END",
    "b.ts > a.ts",
    "b.ts <> a.ts",
    "b.ts <= a.ts - 2",
    "GREATEST(a.ts, b.ts) - LEAST(a.ts, b.ts) <= 2",
    "b.ts % 5 = a.ts % 5",
    "TIMESTAMPDIFF(SECOND, TIMESTAMP_MICROS(a.ts * 500000), TIMESTAMP_MICROS(b.ts * 500000)) BETWEEN 0 AND 2",
]
MOMENTS = [
    "DATE_TRUNC('MINUTE', a.at) = DATE_TRUNC('MINUTE', b.at)",
    "DATE_TRUNC('MONTH', a.at) = DATE_TRUNC('MONTH', b.at)",
    "DATE_TRUNC('WEEK', a.at) = DATE_TRUNC('WEEK', b.at)",
    "CAST(a.at AS DATE) = CAST(b.at AS DATE)",
    "DATEDIFF(b.at, a.at) BETWEEN 0 AND 1",
    "TIMESTAMPDIFF(MINUTE, a.at, b.at) BETWEEN 0 AND 20",
    "TIMESTAMPDIFF(HOUR, a.at, b.at) = -1",
    "UNIX_SECONDS(b.at) - UNIX_SECONDS(a.at) <= 100 AND UNIX_SECONDS(b.at) - UNIX_SECONDS(a.at) > -5000",
    "b.at BETWEEN a.at AND a.at + INTERVAL '1' MONTH",
    "b.at BETWEEN a.at - INTERVAL '1' DAY AND a.at + INTERVAL '90' MINUTES",
]


@pytest.mark.parametrize("condition", CONDITIONS)
@examples(8, 15)
@given(inputs())
@example(EVERY_DISTANCE)
def test_any_condition_on_two_timestamps(condition: str, data: dict[str, Rows]) -> None:
    text = f"SELECT a.ts AS t, a.v, b.ts, b.v AS w FROM a JOIN b ON a.k = b.k AND {condition}"
    assert events_of(plan_of(text), data) == events_of(plan_of(text, Defaults.CQL), data)


@pytest.mark.parametrize("condition", MOMENTS)
@examples(8, 15)
@given(st.lists(st.integers(0, 240), max_size=6), st.lists(st.integers(0, 240), max_size=6))
@example([120], list(range(0, 241, 4)))
def test_any_condition_on_two_moments(condition: str, ours: list[int], theirs: list[int]) -> None:
    data = {
        name: Stream(
            ("at",),
            [((EPOCH + timedelta(0, place * 977),), place * STEP, place * STEP + 1, 1) for place in found],
        )
        for name, found in (("a", ours), ("b", theirs))
    }
    text = f"SELECT a.at AS t, b.at FROM a JOIN b ON {condition}"
    statement = parse_one(text)
    assert isinstance(statement, Select)
    mine, all_rows = (
        Counter(evaluate(bind(statement.query, replace(TIMED, defaults=defaults)), data))
        for defaults in (Defaults.SQL, Defaults.CQL)
    )
    assert mine == all_rows


def test_conditions_that_bound_a_distance_bound_what_is_remembered() -> None:
    """All but those from which no bound follows, or only one."""
    growing = {
        condition
        for condition in CONDITIONS
        if has_unbounded_state(plan_of(f"SELECT a.v FROM a JOIN b ON a.k = b.k AND {condition}"))
    }
    assert growing == {
        "CASE WHEN a.v > 0 THEN b.ts BETWEEN a.ts AND a.ts + 2 ELSE b.ts = a.ts END",
        "b.ts > a.ts",
        "b.ts <> a.ts",
        "b.ts <= a.ts - 2",
        "GREATEST(a.ts, b.ts) - LEAST(a.ts, b.ts) <= 2",
        "b.ts % 5 = a.ts % 5",
        CONDITIONS[-1],
    }


# --- other operators, against all rows so far --------------------------------------------------------------

BY_WINDOW = "GROUP BY window_start, window_end"
GROUPS = [
    "SELECT ts, k, COUNT(*), SUM(v) FROM a GROUP BY ts, k",
    "SELECT k, ts - 3 AS t, MAX(v) FROM a GROUP BY k, ts - 3",
    "SELECT DISTINCT ts, v FROM a",
    "SELECT ts + 1, k FROM a WHERE v > 0 INTERSECT SELECT ts + 1, k FROM a",
    "SELECT ts, k FROM a EXCEPT SELECT ts, k FROM a WHERE v = 0",
    "SELECT a.ts, COUNT(*) FROM a JOIN b ON a.ts = b.ts GROUP BY a.ts",
    f"SELECT window_start, window_end, k, COUNT(*) FROM TUMBLE(TABLE a, DESCRIPTOR(ts), 5) {BY_WINDOW}, k",
    f"SELECT window_start AS s, window_end AS e, SUM(v) FROM HOP(TABLE a, DESCRIPTOR(ts), 2, 6) {BY_WINDOW}",
    f"SELECT window_end, SUM(v) FROM HOP(TABLE a, DESCRIPTOR(ts), 4, 3) WHERE v > 0 {BY_WINDOW}",
    f"SELECT window_start, window_end, SUM(v) FROM CUMULATE(TABLE a, DESCRIPTOR(ts), 2, 6) {BY_WINDOW}",
    f"SELECT window_end, k, SUM(v) FROM SESSION(TABLE a PARTITION BY k, DESCRIPTOR(ts), 3) {BY_WINDOW}, k",
    "SELECT k, v FROM a JOIN b USING (k, v)",
    "SELECT DISTINCT k FROM a",
]


@pytest.mark.parametrize("text", GROUPS)
@examples(8, 15)
@given(inputs())
def test_what_only_grows_is_a_stream_of_what_appears(text: str, data: dict[str, Rows]) -> None:
    contents = plan_of(text, Defaults.CQL)
    inserted = contents if contents.is_chronon else Istream(contents)
    assert events_of(plan_of(text), data) == events_of(inserted, data)


CONTENTS = [
    "SELECT k, COUNT(*) FROM a GROUP BY k",
    "SELECT k FROM a EXCEPT SELECT k FROM b",
    "SELECT * FROM a ORDER BY v DESC, ts LIMIT 2",
    "SELECT k, v FROM a QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts DESC, v) = 1",
    "SELECT k, v, COUNT(*) OVER () FROM a",
    "SELECT a.k, b.v FROM a LEFT JOIN b ON a.k = b.k",
    "SELECT k FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE a.k = b.k)",
    "SELECT a.v, (SELECT MAX(b.v) FROM b WHERE b.k = a.k) FROM a",
    "SELECT a.v, (SELECT COUNT(*) FROM b WHERE b.v > a.v) FROM a",
    "SELECT k, MAX(v) FROM (SELECT DISTINCT k, v FROM a UNION ALL SELECT k, v FROM b) GROUP BY k",
    "SELECT k, v FROM a WHERE v >= (SELECT AVG(v) FROM b)",
    "SELECT k, v, v IN (SELECT v FROM b) FROM a",
    "SELECT k, SUM(v) FROM a [NOW] GROUP BY k",
    "SELECT x.v, y.v FROM a [RANGE 4] x JOIN b y ON x.k = y.k",
    "SELECT b.k FROM a [RANGE 4] RIGHT JOIN b ON a.v = b.v",
    "SELECT a.v, b.v FROM a [RANGE 4] JOIN b ON a.v = b.v AND b.ts >= a.ts - 1",
    "SELECT a.v, b.v FROM a JOIN b [RANGE 3] ON b.ts BETWEEN a.ts AND a.ts + 4",
    "SELECT a.v, b.v FROM a [RANGE 4] LEFT JOIN b ON a.v = b.v AND b.ts >= a.ts - 1",
    "SELECT a.v, b.v FROM a [RANGE 4] RIGHT JOIN b ON a.v = b.v AND b.ts >= a.ts - 1",
    "SELECT a.v FROM a [RANGE 2] WHERE NOT EXISTS (SELECT 1 FROM b WHERE a.k = b.k AND ABS(a.ts - b.ts) < 3)",
]


@pytest.mark.parametrize("text", CONTENTS)
@examples(8, 15)
@given(inputs())
def test_what_changes_is_of_all_rows_so_far(text: str, data: dict[str, Rows]) -> None:
    ours, theirs = (
        evaluate(plan_of(text, reading), streams_of(data)) for reading in (Defaults.SQL, Defaults.CQL)
    )
    assert contents_of(ours) == contents_of(theirs)


def contents_of(history: list[tuple[Payload, int, int]]) -> list[Counter[Payload]]:
    """The rows at each instant of the inputs and after them."""
    return [Counter(row for row, ts, te in history if ts <= instant < te) for instant in range(-2, 25)]


WINDOWED = [
    "SELECT k, COUNT(*) FROM a [RANGE 4] GROUP BY k",
    "SELECT x.v FROM a [RANGE 4] x JOIN b [RANGE 3 SLIDE 2] y ON x.k = y.k",
    "SELECT DISTINCT k FROM a [ROWS 3]",
    "SELECT k FROM a [RANGE UNBOUNDED] EXCEPT SELECT k FROM b [RANGE 5]",
    "SELECT k, v FROM a [NOW]",
    "RSTREAM(SELECT k FROM a [RANGE 2])",
]


@pytest.mark.parametrize("text", WINDOWED)
def test_windows_that_are_written_mean_the_same_in_every_reading(text: str) -> None:
    assert plan_of(text) == plan_of(text, Defaults.PIPES) == plan_of(text, Defaults.CQL)


@examples(20, 40)
@given(inputs(), st.integers(1, 4), st.integers(1, 4), st.sampled_from(("window_start", "window_end")))
def test_windows_over_windows(data: dict[str, Rows], size: int, factor: int, by: str) -> None:
    """Groups of windows are events, which may be windowed by a bound of theirs like any stream."""
    inner = (
        "SELECT window_start, window_end, COUNT(*) AS n FROM TUMBLE(TABLE a, DESCRIPTOR(ts), "
        f"{size}) GROUP BY window_start, window_end"
    )
    text = (
        f"SELECT window_start, SUM(n) FROM TUMBLE(TABLE (SELECT {by} AS at, n FROM ({inner})), "
        f"DESCRIPTOR(at), {size * factor}) {BY_WINDOW}"
    )
    counts: Counter[int] = Counter()
    length = size * factor
    for ts, _, _ in data["a"]:
        start = ts // size * size
        moment = start if by == "window_start" else start + size
        counts[moment // length * length] += 1
    last = size - 1 if by == "window_start" else -1
    expected = Counter({(start, n, start + length - 1 + last): 1 for start, n in counts.items()})
    assert events_of(plan_of(text), data) == expected


@examples(10, 20)
@given(inputs(), st.integers(1, 5))
def test_the_last_instant_of_a_window_is_a_column(data: dict[str, Rows], size: int) -> None:
    """It may be asked for by its name, and times the windows over these."""
    windows = f"TUMBLE(TABLE a, DESCRIPTOR(ts), {size})"
    assert plan_of(f"SELECT * FROM {windows}").schema.names[-1] == "window_end"
    found = events_of(plan_of(f"SELECT window_time, COUNT(*) FROM {windows} GROUP BY window_time"), data)
    counts = Counter(ts // size * size + size - 1 for ts, _, _ in data["a"])
    assert found == Counter((last, n, last) for last, n in counts.items())


@examples(30, 60)
@given(inputs(), bounds, st.integers(0, 3), st.booleans())
def test_a_value_of_the_rows_that_are_close(
    data: dict[str, Rows], bound: tuple[int, int], spelling: int, equal: bool
) -> None:
    """It is known when all of them are there, which is when the row is."""
    key = "a.k = b.k AND " if equal else ""
    counted = f"(SELECT COUNT(*) FROM b WHERE {key}{within('b', 'a', *bound, spelling)})"
    largest = f"(SELECT MAX(b.v) FROM b WHERE {key}{within('b', 'a', *bound, spelling)})"
    low, high = bound
    expected: Events = Counter()
    for ts, k, v in data["a"]:
        close = [b[2] for b in data["b"] if low <= b[0] - ts <= high and (not equal or b[1] == k)]
        expected[ts, v, len(close), max(close, default=None), ts + max(0, high)] += 1
    assert events_of(plan_of(f"SELECT ts, v, {counted}, {largest} FROM a"), data) == expected
    none = plan_of(f"SELECT ts, v FROM a WHERE {counted} = 0")
    kept = Counter({(ts, v, at): n for (ts, v, count, _, at), n in expected.items() if not count})
    assert events_of(none, data) == kept


ROUNDED = "(SELECT ts DIV 5 * 5 AS t, v FROM a) x"
LATER = "(SELECT a.ts AS t, c.v FROM a JOIN c ON a.ts BETWEEN c.ts - 5 AND c.ts) x"
LIKE_EACH_OTHER: dict[str, Rows] = {
    "a": [(0, 0, 0), (3, 0, 0), (4, 0, 0)],
    "b": [(ts, 0, 0) for ts in (-2, 1, 2)],
    "c": [(ts, 0, 7) for ts in range(6)],
}


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (f"SELECT x.v, b.ts FROM {ROUNDED} JOIN b ON x.t - b.ts BETWEEN 2 AND 6", 3),
        (f"SELECT x.v, b.ts FROM {LATER} JOIN b ON b.ts BETWEEN x.t - 2 AND x.t + 1", 20),
        (f"SELECT x.v FROM {LATER} WHERE EXISTS (SELECT 1 FROM b WHERE b.ts BETWEEN x.t AND x.t + 1)", 6),
        ("SELECT a.ts AS t, b.ts FROM a JOIN b ON ROUND(a.ts, -1) = ROUND(b.ts, -1)", 9),
    ],
)
def test_rows_of_other_instants_may_be_equal(text: str, count: int) -> None:
    """No event is lost where an equal one leaves at its instant."""
    assert events_of(plan_of(text), LIKE_EACH_OTHER).total() == count


def test_a_value_of_rows_that_do_not_tell_their_instant() -> None:
    text = f"SELECT x.v, (SELECT COUNT(*) FROM b WHERE b.ts BETWEEN x.t AND x.t + 3) AS n FROM {ROUNDED}"
    last = [row for row, ts, te in evaluate(plan_of(text), streams_of(LIKE_EACH_OTHER)) if ts <= 9 < te]
    assert Counter(last) == {(0, 2): 3}


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) FROM a JOIN b ON a.ts - b.ts BETWEEN 3 AND 3",
        "SELECT COUNT(*) FROM a, b WHERE a.ts - b.ts BETWEEN 5 AND 9",
        "SELECT COUNT(*) FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.ts BETWEEN a.ts AND a.ts + 5)",
        "SELECT COUNT(*) FROM a JOIN b ON a.k = b.k WHERE a.v > 5",
        "SELECT COUNT(*) FROM TUMBLE(TABLE a, DESCRIPTOR(ts), 4) JOIN b ON b.v = 9",
    ],
)
def test_a_count_of_nothing_is_zero_from_the_first_row_on(text: str) -> None:
    data: dict[str, Rows] = {"a": [(8, 0, 0)], "b": [(4, 0, 0)], "c": []}
    assert evaluate(plan_of(text), streams_of(data)) == [((0,), 4, INFINITY)]


def test_a_window_that_is_written_has_no_row_of_nothing() -> None:
    data: dict[str, Rows] = {"a": [(8, 0, 0)], "b": [], "c": []}
    assert evaluate(plan_of("SELECT COUNT(*) FROM a [RANGE 2]"), streams_of(data)) == [((1,), 8, 10)]


@pytest.mark.parametrize(
    ("text", "grows"),
    [
        ("SELECT a.v FROM a [NOW] JOIN b ON b.ts = a.ts", False),
        ("SELECT a.v FROM a [NOW] JOIN b ON b.k = a.k", True),
        # Where DOUBLEs lose digits, instants that are far apart are equal.
        ("SELECT a.v FROM a JOIN b ON a.ts + 1e20 = b.ts + 1e20", True),
    ],
)
def test_no_more_is_remembered_than_may_have_partners(text: str, grows: bool) -> None:
    assert has_unbounded_state(plan_of(text)) == grows
