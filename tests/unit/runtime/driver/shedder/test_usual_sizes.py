"""Large values are kept more often, by how large values have been: measured, and looked at again."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

import headrace as hr
from headrace.algebra.tunings.tunings import Tuned

STREAM = "CREATE STREAM s (k BIGINT, v BIGINT, x DOUBLE, ts BIGINT) FROM push TIMESTAMP BY ts"
NAME = "s: CAST(v AS DOUBLE)"


def rows(first: int, count: int, value: int) -> list[dict[str, object]]:
    return [{"k": at % 3, "v": value, "x": None, "ts": at} for at in range(first, first + count)]


def tuned(db: hr.Database) -> Tuned:
    (found,) = db.status.tunings.values()
    return found


def test_the_usual_size_is_the_mean_of_the_rows_that_came() -> None:
    with hr.connect(runner="inline") as db:
        db.execute(
            f"{STREAM}; CREATE QUERY q LOSS TOLERANT AS SELECT SUM(v) AS s, SUM(x) AS x FROM s [RANGE 9]"
        )
        db.start()
        db.push("s", [*rows(0, 30, 2), *rows(30, 10, -10)])
        db.execute("ALTER QUERY q SET (KEEP 0.5)")
        # Nothing is known of a column that has no values.
        assert tuned(db).scales == ((40, ((NAME, 4.0),)),)


def test_a_share_that_was_lowered_first_goes_by_sizes_when_enough_rows_have_come() -> None:
    with hr.connect(runner="inline") as db:
        db.execute(f"{STREAM}; CREATE QUERY q LOSS TOLERANT AS SELECT SUM(v) AS s FROM s [RANGE 9]")
        db.start()
        db.execute("ALTER QUERY q SET (KEEP 0.5)")
        steps = tuned(db).steps
        db.push("s", rows(0, 100, 2))
        assert tuned(db).scales == ()
        db.push("s", rows(100, 2900, 2))
        assert tuned(db).scales == ((3000, ((NAME, 2.0),)),)
        db.push("s", rows(3000, 1000, 4))
        assert len(tuned(db).scales) == 1, "not so different"
        db.push("s", rows(4000, 9000, 100))
        assert [scale.begin for scale in tuned(db).scales][-1] == 13000
        assert tuned(db).steps == steps, "the share is what was asked for"


def test_cuts_do_not_matter_between_powers_of_two() -> None:
    at_random = Random(5)
    came = [{"k": 0, "v": 0, "x": at_random.uniform(1, 7), "ts": at} for at in range(4000)]
    answers = []
    for size in (1000, 250):
        with hr.connect(runner="inline") as db:
            db.execute(f"{STREAM}; CREATE QUERY q LOSS TOLERANT AS SELECT SUM(x) AS s FROM s [RANGE 500]")
            db.start()
            for first in range(0, 2000, size):
                db.push("s", came[first : first + size])
            db.execute("ALTER QUERY q SET (KEEP 0.2)")
            assert tuned(db).scales == ((2000, (("s: x", 4.0),)),)
            for first in range(2000, 4000, size):
                db.push("s", came[first : first + size])
            answers.append([db["q"].snapshot(at).to_pylist() for at in range(2100, 4000, 300)])
    assert answers[0] == answers[1]


@pytest.mark.parametrize(
    ("value", "usual"),
    [(2.8, 2.0), (2.9, 4.0), (0.71, 1.0), (-100.0, 128.0), (1.7e308, 2.0**1023), (5e-324, 5e-324)],
)
def test_the_usual_size_is_the_nearest_power_of_two(value: float, usual: float) -> None:
    with hr.connect(runner="inline") as db:
        db.execute(f"{STREAM}; CREATE QUERY q LOSS TOLERANT AS SELECT SUM(x) AS s FROM s [RANGE 9]")
        db.start()
        db.push("s", [{"k": 0, "v": 0, "x": value, "ts": 7}])
        db.execute("ALTER QUERY q SET (KEEP 0.5)")
        assert tuned(db).scales == ((8, (("s: x", usual),)),)


def test_a_size_is_another_one_by_a_factor_of_four() -> None:
    with hr.connect(runner="inline") as db:
        db.execute(f"{STREAM}; CREATE QUERY q LOSS TOLERANT AS SELECT SUM(v) AS s FROM s [RANGE 9]")
        db.start()
        db.push("s", rows(0, 1000, 2))
        db.execute("ALTER QUERY q SET (KEEP 0.5)")
        db.push("s", rows(1000, 9000, 5))
        assert [means for _, means in tuned(db).scales] == [((NAME, 2.0),)]
        db.push("s", rows(10_000, 50_000, 7))
        assert [means for _, means in tuned(db).scales] == [((NAME, 2.0),), ((NAME, 8.0),)]


def test_a_restart_goes_on_with_what_was_measured(tmp_path: Path) -> None:
    with hr.connect(runner="inline", storage=tmp_path) as db:
        db.execute(f"{STREAM}; CREATE QUERY q LOSS TOLERANT AS SELECT SUM(v) AS s FROM s [RANGE 9]")
        db.start()
        db.push("s", rows(0, 3000, 100))
    with hr.connect(runner="inline", storage=tmp_path) as db:
        db.start()
        db.push("s", rows(3000, 10, 1))
        db.execute("ALTER QUERY q SET (KEEP 0.5)")
        assert tuned(db).scales == ((3010, ((NAME, 128.0),)),)


def test_a_sum_of_sizes_that_is_too_large_begins_anew() -> None:
    with hr.connect(runner="inline") as db:
        db.execute(f"{STREAM}; CREATE QUERY q LOSS TOLERANT AS SELECT SUM(x) AS s FROM s [RANGE 9]")
        db.start()
        for at in range(2):
            db.push("s", [{"k": 0, "v": 0, "x": 1e308, "ts": at}])
        for first in range(10, 40, 10):
            db.push("s", [{"k": 0, "v": 0, "x": 8.0, "ts": at} for at in range(first, first + 10)])
        db.execute("ALTER QUERY q SET (KEEP 0.5)")
        assert tuned(db).scales == ((40, (("s: x", 8.0),)),)


def test_large_values_are_kept_for_certain(tmp_path: Path) -> None:
    with hr.connect(runner="inline", storage=tmp_path) as db:
        db.execute(f"{STREAM}; CREATE QUERY q LOSS TOLERANT AS SELECT SUM(v) AS s FROM s [RANGE UNBOUNDED]")
        db.start()
        db.push("s", rows(0, 2000, 1))
        db.execute("ALTER QUERY q SET (KEEP 0.1)")
        scales = tuned(db).scales
        last = rows(4000, 1, 0)
        db.push(
            "s",
            [one for at in range(2000, 4000, 100) for one in [*rows(at, 99, 1), *rows(at + 99, 1, 1000)]]
            + last,
        )
    with hr.connect(runner="inline", storage=tmp_path) as db:
        db.start()
        assert tuned(db).scales[:1] == scales
        (said,) = db["q"].snapshot(3999).to_pylist()
        # Of the small values some are missing; each of 20 large ones is there.
        exact = 2000 + 1980 + 20_000
        assert said["s"] == pytest.approx(exact, abs=600)
        assert said["s_low"] <= exact <= said["s_high"]
        assert said["s_high"] - said["s_low"] < 1200
