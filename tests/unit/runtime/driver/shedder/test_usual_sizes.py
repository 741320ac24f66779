"""Large values are kept more often, by how large values have been: measured, and looked at again."""

from __future__ import annotations

from pathlib import Path

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
