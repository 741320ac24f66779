"""LOSS TOLERANT and ALTER QUERY name SET (KEEP share): of the rows from now on a part is kept."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path

import pytest

import headrace as hr
from headrace.algebra.tunings.loss import Loss
from headrace.errors import LanguageError
from headrace.steps import WHOLE

STREAM = "CREATE STREAM s (k BIGINT, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts;"
COUNTED = "SELECT COUNT(*) AS n, SUM(v) AS s, AVG(v) AS a FROM s [RANGE 100]"


def database(storage: Path | None = None) -> hr.Database:
    return hr.connect(runner="inline", storage=storage)


def push(db: hr.Database, first: int, last: int) -> None:
    assert db.push("s", [{"k": at % 3, "v": at % 7, "ts": at} for at in range(first, last)])


def told(db: hr.Database, text: str) -> str:
    return str(db.execute(text)[0])


def row(db: hr.Database, name: str, at: int) -> dict[str, float]:
    (found,) = db[name].snapshot(at).to_pylist()
    return dict(found)


def test_all_rows_are_kept_until_it_is_said_otherwise() -> None:
    with database() as db:
        db.execute(f"{STREAM} CREATE QUERY q LOSS TOLERANT AS {COUNTED}; CREATE QUERY exact AS {COUNTED}")
        db.start()
        push(db, 0, 500)
        for at in (0, 50, 300, 498):
            exact, found = row(db, "exact", at), row(db, "q", at)
            for name, value in exact.items():
                assert (found[name], found[f"{name}_low"], found[f"{name}_high"]) == (value, value, value)


def test_estimates_have_bounds_while_rows_are_left_out_and_are_exact_again() -> None:
    with database() as db:
        db.execute(f"{STREAM} CREATE QUERY q LOSS TOLERANT AS {COUNTED}")
        db.start()
        push(db, 0, 500)
        assert told(db, "ALTER QUERY q SET (KEEP 0.5)") == "0.5 of the rows is kept from 500 on"
        assert told(db, "ALTER QUERY q SET (KEEP 0.5)") == "0.5 of the rows is kept already"
        push(db, 500, 1000)
        assert told(db, "ALTER QUERY q SET KEEP 1") == "1 of the rows is kept from 1000 on"
        push(db, 1000, 1500)
        assert row(db, "q", 499)["n_low"] == 100
        # No row of 500 and few from then on may be among those that are kept.
        assert row(db, "q", 503)["n_low"] is None
        found = row(db, "q", 900)
        assert found["n_low"] < found["n"] < found["n_high"]
        assert found["n_low"] < 100 < found["n_high"]
        assert row(db, "q", 1050)["n_low"] < row(db, "q", 1050)["n_high"]
        assert (row(db, "q", 1099)["n_low"], row(db, "q", 1099)["n_high"]) == (100, 100)


def test_a_smaller_share_keeps_a_part_of_what_a_larger_one_keeps_and_of_a_sample() -> None:
    with database() as db:
        kept = "SELECT k, ts, COUNT(*) AS n FROM s [RANGE UNBOUNDED] GROUP BY k, ts"
        for number, graph in enumerate((" (0.5: 0.5)", " (0.5: 0.6)", " (0.5: 0.7)")):
            db.execute(f"{STREAM * (number == 0)} CREATE QUERY q{number} LOSS TOLERANT{graph} AS {kept}")
        db.execute("CREATE QUERY drawn AS SELECT k, ts FROM s SAMPLE(60) [RANGE UNBOUNDED]")
        db.start()
        for number, share in enumerate((0.1, 0.3, 0.6)):
            told(db, f"ALTER QUERY q{number} SET (KEEP {share})")
        push(db, 0, 400)
        sets = [{part["ts"] for part in db[f"q{number}"].snapshot(398).to_pylist()} for number in range(3)]
        assert sets[0] < sets[1] < sets[2]
        assert sets[2] == {part["ts"] for part in db["drawn"].snapshot(398).to_pylist()}
        assert 20 < len(sets[0]) < 60 < len(sets[1]) < 160 < len(sets[2]) < 300


def test_queries_that_bear_the_same_loss_of_the_same_streams_are_shed_together() -> None:
    with database() as db:
        db.execute(
            f"{STREAM} CREATE QUERY q LOSS TOLERANT AS {COUNTED}; CREATE QUERY t LOSS TOLERANT AS {COUNTED}"
        )
        db.execute(f"CREATE QUERY other LOSS TOLERANT CONFIDENCE 99 AS {COUNTED}")
        db.start()
        said = told(db, "ALTER QUERY q SET (KEEP 0.25)")
        assert said == "0.25 of the rows is kept; so it is of t, which bear the same loss"
        lines = [line.split("  ") for line in told(db, "SHOW TUNINGS").splitlines()]
        rows = [[part.strip() for part in line if part.strip()] for line in lines]
        assert ["s LOSS TOLERANT", "0", "1", "0.25", "q, t"] in rows
        assert ["s LOSS TOLERANT CONFIDENCE 99", "0", "1", "1", "other"] in rows


def test_a_share_goes_on_after_a_restart(tmp_path: Path) -> None:
    with database(tmp_path) as db:
        db.execute(f"{STREAM} CREATE QUERY q LOSS TOLERANT (0.2: 0.5, 0.5: 0.8) CONFIDENCE 90 AS {COUNTED}")
        db.start()
        push(db, 0, 300)
        said = told(db, "ALTER QUERY q SET (KEEP 0.5)")
        assert said == "0.5 of the rows is kept from 300 on, and the answer is worth 0.8"
        push(db, 300, 600)
    with database(tmp_path) as db:
        db.start()
        push(db, 600, 700)
        assert "now 0.5 since 300" in told(db, "EXPLAIN ANALYZE q")
        text = "CREATE QUERY q LOSS TOLERANT (0.2: 0.5, 0.5: 0.8) CONFIDENCE 90 AS "
        assert told(db, "SHOW CREATE QUERY q").startswith(text)
        assert row(db, "q", 650)["n_low"] < 100 < row(db, "q", 650)["n_high"]
        line = "0.5 of its rows is kept from 300 on, and the answer is worth 0.8"
        assert line in told(db, "DESCRIBE q").splitlines()


def test_the_utility_of_a_share_is_on_the_lines_of_its_graph() -> None:
    graph = ((200_000, Decimal("0.5")), (500_000, Decimal("0.8")))
    found = [Loss(graph).utility(share) for share in (0, 100_000, 200_000, 350_000, 500_000, 750_000, WHOLE)]
    assert found == pytest.approx([0, 0.25, 0.5, 0.65, 0.8, 0.9, 1])
    assert Loss(((WHOLE, Decimal("0.5")),)).utility(WHOLE) == 0.5
    assert Loss().utility(300_000) == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ALTER QUERY exact SET (KEEP 0.5)", "exact does not say that rows may be left out"),
        ("ALTER QUERY q SET CONSISTENCY MIDDLE", "a query cannot have this CONSISTENCY and LOSS TOLERANT"),
        ("ALTER QUERY q SET (WINDOW 5)", "q has no window whose size may change"),
    ],
)
def test_what_cannot_be_said(text: str, message: str) -> None:
    with database() as db:
        db.execute(f"{STREAM} CREATE QUERY q LOSS TOLERANT AS {COUNTED}; CREATE QUERY exact AS {COUNTED}")
        db.start()
        with pytest.raises(LanguageError) as found:
            db.execute(text)
        assert found.value.message == message
        assert found.value.hint


def test_a_query_that_says_nothing_of_loss_has_no_share_of_its_own() -> None:
    with database() as db:
        db.execute(f"{STREAM} CREATE QUERY q LOSS TOLERANT AS {COUNTED}")
        db.execute(f"CREATE QUERY z LOSS TOLERANT CONFIDENCE 90 AS {COUNTED}")
        db.execute("CREATE QUERY one AS SELECT n FROM q")
        db.execute("CREATE QUERY both AS SELECT a.n AS x, b.n AS y FROM q a, z b")
        db.start()
        push(db, 0, 500)
        for name in ("one", "both"):
            with pytest.raises(LanguageError, match="says nothing of loss itself"):
                db.execute(f"ALTER QUERY {name} SET (KEEP 0.5)")
        assert told(db, "ALTER QUERY q SET (KEEP 0.5)") == "0.5 of the rows is kept from 500 on"


def test_clauses_that_say_the_same_are_the_same() -> None:
    with database() as db:
        db.execute(f"{STREAM} CREATE QUERY q LOSS TOLERANT (0.2: 0.50) CONFIDENCE 90.50 AS {COUNTED}")
        db.execute(f"CREATE QUERY z LOSS TOLERANT (0.20: 0.5) CONFIDENCE 90.5 AS {COUNTED}")
        db.start()
        push(db, 0, 10)
        assert "so it is of z" in told(db, "ALTER QUERY q SET (KEEP 0.5)")


def test_a_query_over_one_that_bears_loss_cannot_bear_loss_again() -> None:
    with database() as db:
        db.execute(f"{STREAM} CREATE QUERY q LOSS TOLERANT AS {COUNTED}")
        with pytest.raises(LanguageError, match="a query that it reads: it bears loss itself"):
            db.execute("CREATE QUERY z LOSS TOLERANT AS SELECT COUNT(*) AS n FROM q [RANGE 10]")


def test_equal_rows_of_two_streams_are_drawn_apart() -> None:
    text = "SELECT SUM(v) AS n FROM (SELECT v FROM s UNION ALL SELECT v FROM t) [RANGE 1000]"
    with database() as db:
        db.execute(f"{STREAM} CREATE STREAM t (k BIGINT, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts")
        db.execute(f"CREATE QUERY q LOSS TOLERANT AS {text}; CREATE QUERY exact AS {text}")
        db.start()
        db.execute("ALTER QUERY q SET (KEEP 0.5)")
        for stream in "st":
            assert db.push(stream, [{"k": 0, "v": 1 + at % 3, "ts": at} for at in range(1000)])
            db.push(stream, {"k": 0, "v": 0, "ts": 3000})
        found, exact = row(db, "q", 999), row(db, "exact", 999)
        assert found["n_low"] <= exact["n"] <= found["n_high"]
        # Of pairs that were kept together the sum would be even.
        assert found["n"] / 2 % 2 == 1 or found["n"] != exact["n"]


def test_columns_that_look_like_bounds_are_none() -> None:
    with database() as db:
        db.execute("CREATE STREAM s (k STRING, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts")
        db.execute(
            "CREATE QUERY q WITHIN 20 PERCENT AS "
            "SELECT k AS a, k AS a_low, k AS a_high, SUM(v) AS n, COUNT(*) AS n_low "
            "FROM s [RANGE 1000] GROUP BY k"
        )
        db.start()
        rows = [{"k": f"k{at % 2}", "v": 1 + at % 5, "ts": at} for at in range(4000)]
        db.push("s", rows[:1000])
        told(db, "ALTER QUERY q SET (KEEP 0.9)")
        db.push("s", rows[1000:])
        (first, *_) = db["q"].snapshot(3998).to_pylist()
        assert len(first) == 3 + 3 + 3
        assert "20 percent are promised" in told(db, "ALTER QUERY q SET (KEEP 0.8)")
        with pytest.raises(LanguageError, match="has promised 20 percent"):
            db.execute("EXPLAIN ALTER QUERY q SET (KEEP 0.01)")


PROMISED = f"{STREAM} CREATE QUERY q WITHIN 10 PERCENT AS SELECT COUNT(*) AS n FROM s [RANGE 1000]"


def test_a_share_goes_by_bounds_of_the_present_one_alone() -> None:
    with database() as db:
        db.execute(PROMISED)
        db.start()
        push(db, 0, 3000)
        assert "is not known before rows are left out" in refused(db, 0.01)
        assert "before rows are left out" in told(db, "ALTER QUERY q SET (KEEP 0.95)")
        for last in (3000, 3005, 3500, 4001):
            push(db, 3000 if last < 3500 else last - 400, last)
            for asked in (0.01, 0.8, 0.899):
                assert "before windows have rows of the present share alone" in refused(db, asked)
        assert "KEEP 0.9, or more" in refused(db, 0.5)
        push(db, 4001, 4500)
        assert "10 percent are promised" in told(db, "EXPLAIN ALTER QUERY q SET (KEEP 0.8)")
        assert re.search(r"about [0-9.]+ percent", refused(db, 0.01))
        assert "is kept from 4500 on; bounds are then" in told(db, "ALTER QUERY q SET (KEEP 0.8)")
        # At once a share is put in the place of another, of which no row has come.
        assert "of the present share alone" in refused(db, 0.5)


def test_without_results_nothing_is_known_of_bounds() -> None:
    with hr.connect(runner="inline", keep_results=False) as db:
        db.execute(PROMISED)
        db.start()
        push(db, 0, 3000)
        told(db, "ALTER QUERY q SET (KEEP 0.95)")
        push(db, 3000, 6000)
        said = refused(db, 0.8)
        assert "is not known since results are not kept, and q has promised 10 percent" in said
        assert "KEEP 0.9, or more" in said
        assert "0.9 of the rows is kept" in told(db, "ALTER QUERY q SET (KEEP 0.9)")


def refused(db: hr.Database, asked: float) -> str:
    with pytest.raises(LanguageError) as found:
        db.execute(f"ALTER QUERY q SET (KEEP {asked})")
    return str(found.value)


def test_a_hint_is_right_for_either_clause() -> None:
    with database() as db:
        db.execute(STREAM)
        for clause in ("WITHIN 5 PERCENT", "LOSS TOLERANT"):
            with pytest.raises(LanguageError, match="no row may be left out of MAX") as found:
                db.execute(f"CREATE QUERY q {clause} AS SELECT MAX(v) AS n FROM s [RANGE 9]")
            assert "leave out LOSS TOLERANT or WITHIN" in str(found.value.hint)
