"""Each kernel against a few lines of plain Python."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.kernels.instants.extent import extent
from headrace.kernels.instants.frames import frame_starts, number_instants, running_sums, subtract_columns
from headrace.kernels.instants.schedule import (
    BLOCK,
    index_schedule,
    key_ranges,
    net_schedule,
    next_rows,
    sums_at_marks,
)
from headrace.kernels.instants.timeline import (
    count_before,
    net_points,
    running_points,
    smallest_per_code,
    touched_codes,
)
from headrace.kernels.instants.windows import cut_by_window
from headrace.kernels.rows.grouping import dense_codes, order_by_code
from headrace.kernels.rows.hashing import buckets_of, fold_bytes, fold_words
from headrace.kernels.rows.joins import join_intervals, match_hashes
from headrace.kernels.rows.rows import slide_rows
from headrace.kernels.rows.sorting import count_descents, order_by_digits, stable_order
from headrace.kernels.values.extremes import lower_envelope
from headrace.kernels.values.inputs import CountChanges, KeyPoints, RankedIntervals
from headrace.kernels.values.order_statistics import order_statistics
from headrace.time import BEGINNING, INFINITY, MAX_INSTANT, MIN_INSTANT
from how_many import examples

small = st.integers(0, 6)


def ints(values: object) -> np.ndarray:
    return np.array(values, dtype=np.int64)


@examples(17)
@given(st.lists(st.integers(-(2**63), 2**63 - 1).map(lambda value: value % 7), max_size=40))
def test_dense_codes_number_values_by_first_appearance(values: list[int]) -> None:
    codes, first = dense_codes(ints(values))
    seen = list(dict.fromkeys(values))
    assert codes.tolist() == [seen.index(value) for value in values]
    assert first.tolist() == [values.index(value) for value in seen]


@given(st.lists(small, max_size=30))
def test_order_by_code_is_a_stable_sort(codes: list[int]) -> None:
    order = order_by_code(ints(codes), np.arange(len(codes)), 7)
    assert order.tolist() == sorted(range(len(codes)), key=lambda row: codes[row])


@examples(17)
@given(st.lists(st.one_of(small, st.integers(-(2**63), 2**63 - 1)), max_size=60))
def test_order_by_digits_is_a_stable_sort(values: list[int]) -> None:
    expected = sorted(range(len(values)), key=values.__getitem__)
    assert order_by_digits(ints(values)).tolist() == expected
    assert stable_order(ints(values)).tolist() == expected
    assert count_descents(ints(values)) == sum(b < a for a, b in itertools.pairwise(values))


@pytest.mark.parametrize("runs", [1, 2, 50, 3000])
def test_stable_order_of_many(runs: int) -> None:
    generator = np.random.default_rng(runs)
    values = np.concatenate(
        [np.sort(part) for part in np.array_split(generator.integers(0, 999, 3000), runs)]
    )
    assert (stable_order(values) == np.lexsort((np.arange(3000), values))).all()


def test_hashes_are_the_same_everywhere() -> None:
    hashes = np.zeros(3, dtype=np.int64)
    fold_words(ints([0, 1, 1]), np.array([1, 1, 0], dtype=np.uint8), hashes)
    again = np.zeros(3, dtype=np.int64)
    fold_words(ints([0, 1, 99]), np.array([1, 1, 0], dtype=np.uint8), again)
    assert hashes.tolist() == again.tolist(), "a NULL hashes alike whatever lies under it"
    # Stored state is looked up by these values, so they may never change.
    golden = 0x9E3779B97F4A7C15
    words = [mix(golden), mix(1 + golden), mix(0x5851F42D4C957F2D)]
    assert [value % 2**64 for value in hashes.tolist()] == [mix(word) for word in words]


def mix(value: int) -> int:
    """The finaliser of splitmix64, on Python integers."""
    mask = 2**64 - 1
    value &= mask
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9 & mask
    value = (value ^ (value >> 27)) * 0x94D049BB133111EB & mask
    return value ^ (value >> 31)


def test_strings_of_all_lengths_hash_apart() -> None:
    texts = [b"", b"a", b"aa", b"aaaaaaaa", b"aaaaaaaaa", b"aaaaaaaab", b"\0", b"\0\0"]
    offsets = np.cumsum([0, *map(len, texts)]).astype(np.int32)
    hashes = np.zeros(len(texts), dtype=np.int64)
    data = np.frombuffer(b"".join(texts), dtype=np.uint8)
    fold_bytes(offsets, data, np.ones(len(texts), dtype=np.uint8), hashes)
    assert len(set(hashes.tolist())) == len(texts)


def test_strings_hash_as_they_always_have() -> None:
    """Stored state is found by these hashes: of eight bytes at a time, the first the most significant."""
    texts = [bytes(range(200 - length, 200)) for length in range(40)]
    offsets = np.cumsum([0, *map(len, texts)]).astype(np.int32)
    hashes = np.arange(len(texts))
    fold_bytes(offsets, np.frombuffer(b"".join(texts), dtype=np.uint8), np.ones(40, dtype=np.uint8), hashes)
    golden = 0x9E3779B97F4A7C15
    for length, text in enumerate(texts):
        word = length + golden
        for at in range(0, length, 8):
            word = mix(word ^ mix(int.from_bytes(text[at : at + 8], "big") + golden))
        assert int(hashes[length]) % 2**64 == mix(length ^ mix(word))


@pytest.mark.parametrize("count", [1, 2, 8, 13])
def test_buckets_are_in_range_and_even(count: int) -> None:
    hashes = np.zeros(20_000, dtype=np.int64)
    fold_words(np.arange(20_000), np.ones(20_000, dtype=np.uint8), hashes)
    sizes = np.bincount(buckets_of(hashes, count), minlength=count)
    assert len(sizes) == count
    assert sizes.min() > 0.9 * 20_000 / count


changes = st.lists(st.tuples(st.integers(0, 3), small, st.integers(-3, 3)), max_size=25)


@examples(17)
@given(changes)
def test_netting_adds_up_what_falls_together(rows: list[tuple[int, int, int]]) -> None:
    codes, times, deltas = (ints([row[place] for row in rows]) for place in range(3))
    order = np.lexsort((times, codes))
    first, sums = net_points(order, codes, times, deltas.reshape(-1, 1))
    expected: dict[tuple[int, int], int] = {}
    for code, time, delta in rows:
        expected[code, time] = expected.get((code, time), 0) + delta
    assert [(int(codes[row]), int(times[row])) for row in first] == sorted(expected)
    assert sums[:, 0].tolist() == [expected[key] for key in sorted(expected)]
    by_time = np.argsort(times, kind="stable")
    count, first, owners, sums = net_schedule(by_time, codes, times, deltas.reshape(-1, 1), 4)
    first, owners, sums = first[:count], owners[:count], np.ascontiguousarray(sums[:, :count])
    found = [(int(codes[row]), int(times[row])) for row in first]
    assert sorted(found) == sorted(expected)
    assert owners.tolist() == codes[first].tolist()
    assert [time for _, time in found] == sorted(time for _, time in found)
    assert sums[0].tolist() == [expected[place] for place in found]
    # Two keys have one place in the order: their changes stay in order of time.
    index, marks = index_schedule(owners, ints([2, 1, 0, 1]), 3, sums, 4)
    places = [([2, 1, 0, 1][code], time) for code, time in found]
    assert index.tolist() == sorted(range(len(found)), key=places.__getitem__)
    assert marks.tolist() == sums_at_marks(index, sums, 4).tolist()


@examples(17)
@given(st.lists(st.integers(0, 5_000), max_size=20), st.integers(0, 5_000))
def test_codes_are_numbered_by_first_appearance(few: list[int], many: int) -> None:
    """Hashes that fall into one place of the table, and so many that it grows."""
    hashes = ints([*few, *(value << 40 for value in range(many)), *few, *range(many)])
    codes, first = dense_codes(hashes)
    numbers: dict[int, int] = {}
    expected = [numbers.setdefault(value, len(numbers)) for value in hashes.tolist()]
    assert codes.tolist() == expected
    assert hashes[first].tolist() == list(numbers)


@given(st.lists(small, min_size=1, max_size=12), st.data())
def test_touched_codes_are_numbered_in_order(codes: list[int], data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.integers(-len(codes), len(codes) - 1), max_size=30))
    others = data.draw(st.lists(small, max_size=3))
    numbers, touched, rank = touched_codes(ints(rows), ints(codes), ints(others), 8)
    own = [codes[row if row >= 0 else -1 - row] for row in rows]
    expected = sorted({*own, *others})
    assert touched.tolist() == expected
    assert numbers.tolist() == [expected.index(code) for code in own]
    assert rank.tolist() == [expected.index(code) if code in expected else -1 for code in range(8)]


@examples(17)
@given(changes, st.lists(st.booleans(), min_size=25, max_size=25))
def test_points_carry_the_running_sums(rows: list[tuple[int, int, int]], leaves: list[bool]) -> None:
    bases = {0: 10, 1: 20, 2: 30, 3: 40}
    # Every key has a point.
    rows = [*rows, *((code, 9, 1) for code in bases)]
    leaves = leaves[: len(rows)] + [False] * (len(rows) - 25)
    codes, times, deltas = (ints([row[place] for row in rows]) for place in range(3))
    places = np.arange(len(rows))
    signed = np.where(leaves, -1 - places, places)
    # The second column is 0 in all rows, and not looked at.
    both, before = (np.column_stack([part, 0 * part]) for part in (deltas, ints(list(bases.values()))))
    totals = np.zeros((2, len(rows) + len(bases)), dtype=np.int64)
    found = running_points(
        np.argsort(times, kind="stable"), codes, signed, times, both, before, ints([0]), totals
    )
    count, point_codes, point_times, previous, last = found
    assert not totals[1].any()
    point_codes, point_times = point_codes[:count], point_times[:count]
    assert (np.diff(point_times) >= 0).all()
    latest: dict[int, int] = {}
    for point, (code, time) in enumerate(zip(point_codes.tolist(), point_times.tolist(), strict=True)):
        assert previous[point] == latest.get(code, -1)
        latest[code] = point
        until = [
            -delta if leaves[place] else delta
            for place, (other, at, delta) in enumerate(rows)
            if other == code and at <= time
        ]
        assert totals[0, point] == bases[code] + sum(until)
    assert totals[0, count : count + 4].tolist() == list(bases.values())
    assert last.tolist() == [latest[code] for code in bases]
    assert len(point_codes) == len({(code, time) for code, time, _ in rows})


@examples(17)
@given(
    st.lists(st.tuples(st.integers(-2, 2), st.integers(0, 9)), max_size=400),
    st.tuples(st.integers(-3, 3), st.integers(0, 9), st.integers(0, 4)),
)
def test_ranges_of_a_run(rows: list[tuple[int, int]], probe: tuple[int, int, int]) -> None:
    """Also where a hash has more rows than a block, and none."""
    rows.sort(key=lambda row: row[1])
    order = sorted(range(len(rows)), key=lambda place: rows[place])
    hashes, times = ints([one for one, _ in rows]), ints([at for _, at in rows])
    places = np.array(order, dtype=np.int32)
    wanted, start, length = probe
    tops = hashes[places[::BLOCK]]
    lows, highs = key_ranges(
        hashes, times, places, tops, ints([wanted]), ints([start]), ints([start + length])
    )
    assert order[lows[0] : highs[0]] == [
        place for place in order if rows[place][0] == wanted and start <= rows[place][1] < start + length
    ]
    later = [place for place in order if rows[place][0] == wanted and rows[place][1] >= start]
    assert next_rows(hashes, times, places, tops, ints([wanted]), start).tolist() == [*later, -1][:1]


def test_searches_in_a_run() -> None:
    hashes, times = ints([1, 1, 1, 5, 5, 9]), ints([2, 4, 6, 1, 3, 7])
    by_key = ints([3, 0, 5, 1, 4, 2])
    back = np.argsort(by_key)
    found = next_rows(
        hashes[back], times[back], by_key.astype(np.int32), hashes[back][by_key[::64]], ints([1, 5, 9, 7]), 4
    )
    assert found.tolist() == [0, -1, 2, -1]
    assert count_before(times, np.argsort(times).astype(np.int32), 4) == 3
    assert smallest_per_code(ints([0, 2, 0]), ints([5, 7, 3]), 3).tolist() == [3, INFINITY, 7]
    probes, rows = match_hashes(ints([1, 5, 6]), hashes)
    assert list(zip(probes.tolist(), rows.tolist(), strict=True)) == [(0, 0), (0, 1), (0, 2), (1, 3), (1, 4)]


interval = st.tuples(st.integers(0, 2), st.integers(-4, 8), st.one_of(st.integers(1, 6), st.just(INFINITY)))


@given(st.lists(interval, max_size=15), st.lists(interval, max_size=15))
def test_join_intervals_is_the_nested_loop(
    left: list[tuple[int, int, int]], right: list[tuple[int, int, int]]
) -> None:
    sides = [
        (
            ints([row[0] for row in rows]),
            ints([row[1] for row in rows]),
            ints([INFINITY if row[2] == INFINITY else row[1] + row[2] for row in rows]),
        )
        for rows in (sorted(left), sorted(right))
    ]
    reaches = [max((length for _, _, length in rows), default=0) for rows in (left, right)]
    (keys, ts, te), (other_keys, other_ts, other_te) = sides
    ours, theirs = join_intervals(keys, ts, te, other_keys, other_ts, other_te, *reaches)
    expected = [
        (i, j)
        for i in range(len(left))
        for j in range(len(right))
        if keys[i] == other_keys[j] and max(ts[i], other_ts[j]) < min(te[i], other_te[j])
    ]
    assert sorted(zip(ours.tolist(), theirs.tolist(), strict=True)) == expected


@pytest.mark.parametrize("seed", range(4))
def test_join_intervals_passes_over_blocks_of_what_has_ended(seed: int) -> None:
    """Few rows meet a long run in which some rows are valid for very long."""
    generator = np.random.default_rng(seed)
    count = 70_000
    hashes = np.sort(generator.choice(ints([1, 2, 5]), count, p=[0.6, 0.399, 0.001]))
    times = generator.integers(0, 50_000, count)
    times = times[np.lexsort((times, hashes))]
    lengths = np.where(generator.random(count) < 0.0005, 40_000, generator.integers(1, 20, count))
    if seed == 1:
        lengths[0] = INFINITY - times[0]
    ends = times + lengths
    keys, instants = np.sort(generator.choice(ints([1, 2, 3, 5]), 60)), generator.integers(-5, 60_000, 60)
    instants = instants[np.lexsort((instants, keys))]
    lasts = instants + generator.integers(1, 300, 60)
    reaches = int((lasts - instants).max()), int(lengths.max())
    found = join_intervals(keys, instants, lasts, hashes, times, ends, *reaches)
    overlap = np.maximum(instants[:, None], times) < np.minimum(lasts[:, None], ends)
    expected = np.nonzero((keys[:, None] == hashes) & overlap)
    assert (np.stack(found) == expected).all()
    swapped = join_intervals(hashes, times, ends, keys, instants, lasts, *reversed(reaches))
    assert (np.stack(swapped) == expected[::-1]).all()


intervals = st.lists(st.tuples(st.integers(0, 1), small, st.integers(0, 8), st.integers(1, 5)), max_size=15)


def live_at(elements: list[tuple[int, int, int, int]], code: int, time: int) -> list[int]:
    """The sorted ranks of a key's intervals that hold an instant."""
    return sorted(rank for c, rank, start, length in elements if c == code and start <= time < start + length)


waiting = st.tuples(st.integers(0, 1), small, st.integers(0, 14), st.integers(1, 5))


@examples(17)
@given(st.lists(waiting, max_size=15), st.integers(3, 12), st.booleans())
def test_lower_envelope(elements: list[tuple[int, int, int, int]], since: int, one_window: bool) -> None:
    if one_window:
        elements = [(code, rank, start, 4) for code, rank, start, _ in elements]
    codes, ranks, starts, lengths = (ints([row[place] for row in elements]) for place in range(4))
    ends = ((code, time) for code, _, start, _ in elements for time in (start, start + 1))
    points = sorted({(code, min(time, since)) for code, time in ends})
    point_codes, point_times = ints([point[0] for point in points]), ints([point[1] for point in points])
    order = np.lexsort((starts, codes))
    found, needed = lower_envelope(
        KeyPoints(point_codes, point_times),
        RankedIntervals(codes, ranks, starts, starts + lengths),
        order,
        since,
    )
    for (code, time), place in zip(points, found.tolist(), strict=True):
        assert (None if place < 0 else ranks[place]) == min(live_at(elements, code, time), default=None)
    kept = [element for element, flag in zip(elements, needed.tolist(), strict=True) if flag]
    for code in (0, 1):
        for time in range(since, 20):
            smallest = live_at(elements, code, time)[:1]
            assert live_at(kept, code, time)[:1] == smallest, "what is forgotten never was the answer"
    changes = sum(len(set(live_at(elements, code, t))) > 0 for code in (0, 1) for t in range(since, 20))
    assert len(kept) <= changes


@examples(17)
@given(
    st.lists(st.tuples(st.integers(0, 9), st.lists(st.integers(0, 3), max_size=8)), min_size=1, max_size=3),
    st.integers(1, 4),
    st.integers(1, 4),
)
def test_slide_rows_tells_how_the_window_of_each_row_number_changes(
    partitions: list[tuple[int, list[int]]], rows: int, slide: int
) -> None:
    def shown(count: int) -> set[int]:
        last = count // slide * slide
        return set(range(max(1, last - rows + 1), last + 1))

    held = [range(max(1, count // slide * slide - rows + 1), count + 1) for count, _ in partitions]
    old = ints(np.cumsum([0, *(len(numbers) for numbers in held)]))
    times = [np.cumsum(ints(steps)) for _, steps in partitions]
    fresh = ints(np.cumsum([0, *(len(part) for part in times)]))
    counts = ints([count for count, _ in partitions])
    together = ints(np.concatenate(times))
    sizes = np.full(len(together), rows)
    row, ts, te, w, stay, numbers, gone = slide_rows(counts, old, fresh, together, sizes, slide)

    names = [(place, number) for place, part in enumerate(held) for number in part]
    new = [
        (place, count + 1 + step)
        for place, (count, steps) in enumerate(partitions)
        for step in range(len(steps))
    ]
    named = [(names + new)[place] for place in row]
    for place, (count, _) in enumerate(partitions):
        for at in range(-1, 30):
            now = count + int(sum(time <= at for time in times[place]))
            content = dict.fromkeys(((place, number) for number in shown(count)), 1)
            for name, start, end, sign in zip(named, ts, te, w, strict=True):
                if name[0] == place and start <= at < end:
                    content[name] = content.get(name, 0) + int(sign)
            assert {name for name, n in content.items() if n} == {(place, number) for number in shown(now)}
            assert set(content.values()) <= {0, 1}
    after = [count + len(steps) for count, steps in partitions]
    kept = [new[place] for place in stay]
    assert kept == [name for name in new if name[1] > after[name[0]] // slide * slide - rows]
    assert numbers.tolist() == [number for _, number in kept]
    assert gone.tolist() == [max(0, after[place] // slide * slide - rows) for place, _ in kept]


@examples(17)
@given(intervals, st.sampled_from([0.0, 0.25, 0.5, 0.9, 1.0]))
def test_order_statistics(elements: list[tuple[int, int, int, int]], fraction: float) -> None:
    rows = [(code, start, rank, 1) for code, rank, start, _ in elements]
    rows = sorted(rows + [(code, start + length, rank, -1) for code, rank, start, length in elements])
    codes, times, ranks, counts = (ints([row[place] for row in rows]) for place in range(4))
    points = sorted({(row[0], row[1]) for row in rows})
    # Seven numbers for each of the two keys, whether all are there or not.
    lower, upper, share = order_statistics(
        CountChanges(codes, times, ranks + 7 * codes, counts),
        ints([0, 7, 14]),
        KeyPoints(ints([point[0] for point in points]), ints([point[1] for point in points])),
        np.array([fraction]),
        np.array([0], dtype=np.uint8),
    )
    for at, (code, time) in enumerate(points):
        live = live_at(elements, code, time)
        if not live:
            assert lower[at] == upper[at] == -1
            continue
        place = fraction * (len(live) - 1)
        assert lower[at] - 7 * code == live[math.floor(place)]
        assert upper[at] - 7 * code == live[math.ceil(place)]
        assert share[at] == place - math.floor(place)


@examples(17)
@given(st.lists(st.tuples(st.integers(0, 2), small, st.integers(-2, 2)), max_size=20), st.integers(1, 4))
def test_frames_of_time(rows: list[tuple[int, int, int]], size: int) -> None:
    present = sorted({code for code, *_ in rows})
    rows = [(present.index(code), time, value) for code, time, value in rows]
    codes, times, values = (ints([row[place] for row in rows]) for place in range(3))
    order = np.argsort(times, kind="stable").astype(np.int64)
    numbers, instants, first = number_instants(order, codes, times, len(present))
    expected = sorted({(code, time) for code, time, _ in rows})
    assert [expected[number] for number in numbers] == [(code, time) for code, time, _ in rows]
    assert instants.tolist() == [time for _, time in expected]
    assert np.diff(first).tolist() == [
        sum(code == one for one, _ in expected) for code in range(len(present))
    ]
    bases = ints([[10 * code] for code in range(len(present))]).reshape(-1, 1)
    sums = running_sums(order, codes, numbers, first, values.reshape(-1, 1), bases)
    for number, (code, time) in enumerate(expected):
        before = 10 * code + sum(value for one, then, value in rows if one == code and then < time)
        after = 10 * code + sum(value for one, then, value in rows if one == code and then <= time)
        assert (sums[0, number + code], sums[0, number + code + 1]) == (before, after)
    searched = first[:-1].copy()
    found, starts = frame_starts(first, instants, size, first[:-1], first[1:], instants, searched)
    assert found.tolist() == list(range(len(expected)))
    for number, start in zip(found, starts, strict=True):
        code, time = expected[number]
        within = [place for place, (one, then) in enumerate(expected) if one == code and then > time - size]
        assert start == within[0]
    assert searched.tolist() == first[1:].tolist()


def test_frames_that_start_in_two_pieces() -> None:
    first, times, searched = ints([0, 4]), ints([10, 11, 12, 19]), ints([0])
    found, rows = frame_starts(first, times, 5, ints([1]), ints([4]), ints([99, 4, 6, 7]), searched)
    assert (found.tolist(), rows.tolist(), searched.tolist()) == ([0, 1], [2, 3], [2])
    found, rows = frame_starts(first, times, 5, ints([0]), ints([4]), times, searched)
    assert (found.tolist(), rows.tolist(), searched.tolist()) == ([2, 3], [0, 3], [4])


def test_differences_of_columns() -> None:
    result, given_by = np.zeros((2, 3), dtype=np.int64), ints([[5, 6, 7, 8], [50, 60, 70, -(2**63)]])
    subtract_columns(ints([2, 0]), ints([1, 0]), ints([[1, 2], [10, 1]]), ints([1, 2, 3]), given_by, result)
    assert result.tolist() == [[5, 0, 6], [50, 0, 2**63 - 1]], "differences wrap around"


@examples(17)
@given(st.lists(st.tuples(st.integers(-20, 20), st.integers(1, 12))), st.integers(1, 5), st.integers(0, 4))
def test_intervals_are_cut_where_windows_take_over(
    spans: list[tuple[int, int]], slide: int, offset: int
) -> None:
    ts = np.array([start for start, _ in spans], dtype=np.int64)
    te = ts + np.array([length for _, length in spans], dtype=np.int64)
    rows, starts, stops, ends = (part.tolist() for part in cut_by_window(ts, te, slide, offset % slide))
    shown = [
        (row, instant, end)
        for row, start, stop, end in zip(rows, starts, stops, ends, strict=True)
        for instant in range(start, stop)
    ]
    assert shown == [
        (row, instant, max(end for end in range(-60, instant + 2) if (end - offset) % slide == 0))
        for row, (start, length) in enumerate(spans)
        for instant in range(start, start + length)
    ]
    assert len({(row, end) for row, _, end in shown}) == len(rows), "no piece is cut in two"


@given(
    st.lists(
        st.tuples(
            st.just(BEGINNING) | st.integers(MIN_INSTANT, MAX_INSTANT),
            st.just(INFINITY) | st.integers(0, MAX_INSTANT),
        ),
        min_size=1,
    )
)
def test_extent_adds_up_lengths_of_any_size(intervals: list[tuple[int, int]]) -> None:
    elements = [
        (ts, te if te == INFINITY else min(max(ts, MIN_INSTANT) + te, MAX_INSTANT + 1))
        for ts, te in intervals
    ]
    first, last, endless, high, low = extent(*map(ints, zip(*elements, strict=True)))
    ended = [te - ts for ts, te in elements if te != INFINITY and ts != BEGINNING]
    assert (first, last) == (min(ts for ts, _ in elements), max(ts for ts, _ in elements))
    assert endless == len(elements) - len(ended)
    assert high * 2**32 + low == sum(ended)
