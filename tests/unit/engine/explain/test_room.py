"""EXPLAIN CREATE QUERY says what a query would need of a run's time, and what would need less."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

import headrace as hr
from headrace.algebra.tunings.tunings import shares_in, size_of
from headrace.runtime.driver.facts.published import PublishedRun
from headrace.runtime.driver.shedder.recent import MeasuredLoad, RecentLoad
from headrace.steps import WHOLE

STREAM = "CREATE STREAM s (k BIGINT, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts"
KNOWN = "CREATE QUERY q LOSS TOLERANT AS SELECT COUNT(*) AS n FROM s [RANGE 100]"
JOIN = "SELECT a.v FROM s [RANGE 5000] a JOIN s [RANGE 5000] b ON a.k = b.k"
COUNTED = "SELECT k, COUNT(*) AS n FROM s [RANGE 500] GROUP BY k"
LARGEST = "SELECT k, MAX(v) AS m FROM s [RANGE 500] GROUP BY k"


class Rates:
    """So many rows come in a second, and so much is needed for what bears no loss."""

    rows = 1000.0
    rest = 0.1

    def load(self, run: PublishedRun) -> MeasuredLoad:
        shares = sorted({one for plan in run.queries.plans.values() for one in shares_in(plan)}, key=repr)
        needed = self.rest + sum(0.2 * size_of(one, run.queries.tunings) / WHOLE for one in shares)
        return MeasuredLoad(needed, 0.0, dict.fromkeys(shares, 0.2), {"s": self.rows})


@pytest.fixture
def rates(monkeypatch: pytest.MonkeyPatch) -> Rates:
    found = Rates()
    monkeypatch.setattr(RecentLoad, "load", lambda _, run, bound: found.load(run))
    return found


@pytest.fixture
def db(rates: Rates) -> Iterator[hr.Database]:
    with hr.connect(runner="inline", latency_bound=2, shedder="advise") as made:
        made.execute(f"{STREAM}; {KNOWN}")
        made.start()
        push(made, 0)
        yield made


def push(db: hr.Database, first: int) -> None:
    db.push("s", [{"k": at % 5, "v": at % 7, "ts": at} for at in range(first, first + 500)])


def told(db: hr.Database, query: str) -> list[str]:
    return str(db.execute(f"EXPLAIN CREATE QUERY other AS {query}")[0]).splitlines()


def own(lines: list[str]) -> float:
    found = re.match(r"it would need up to ([0-9.e+]+) % of the run's time", lines[0])
    assert found is not None
    return float(found[1])


def test_where_there_is_room_nothing_is_proposed(db: hr.Database) -> None:
    lines = told(db, COUNTED)
    assert lines[0].endswith("where 30 % are needed now: there is room for it")
    assert 0 < own(lines) < 5
    assert len([line for line in lines if "save" in line]) == 0


def test_needs_grow_with_the_rate(db: hr.Database, rates: Rates) -> None:
    # What is kept is looked at as often, whatever the rate.
    rates.rows = 2_000_000.0
    push(db, 500)
    before = own(told(db, COUNTED))
    rates.rows = 10_000_000.0
    push(db, 1000)
    assert own(told(db, COUNTED)) == pytest.approx(5 * before, rel=0.2)


def test_what_the_rates_cannot_carry_is_said_with_what_would_save_how_much(
    db: hr.Database, rates: Rates
) -> None:
    rates.rest, rates.rows = 0.5, 2_000_000.0
    push(db, 500)
    lines = told(db, COUNTED)
    assert re.search(r"70 % are needed now: (little would be left|rows would have to wait)", lines[0])
    kept = r"the shedder would keep 0\.\d+ of the rows of s LOSS TOLERANT"
    assert any(re.fullmatch(kept, line) for line in lines)
    assert any(
        re.match(r"with LOSS TOLERANT and KEEP 0\.\d+ there would be room|leaving out", line)
        for line in lines
    )
    assert any(re.match(r"half the window would save about \S+ % of the run's time", line) for line in lines)
    saved = [line for line in told(db, JOIN) if line.startswith("half the window")]
    assert float(re.findall(r"about (\S+) %", saved[0])[0]) > 1


def test_rows_of_what_cannot_be_estimated_are_not_left_out(db: hr.Database, rates: Rates) -> None:
    rates.rest, rates.rows = 0.6, 2_000_000.0
    push(db, 500)
    found = [line for line in told(db, LARGEST) if line.startswith("rows of it cannot be left out: ")]
    assert "MAX" in found[0]


def test_a_share_that_is_proposed_leaves_room(db: hr.Database, rates: Rates) -> None:
    rates.rest, rates.rows = 0.1, 3_000_000.0
    push(db, 500)
    lines = told(db, COUNTED)
    share = [
        float(found[1]) for line in lines if (found := re.match(r"with LOSS TOLERANT and KEEP (\S+) ", line))
    ]
    assert share, lines
    assert 0 < share[0] < 1


def test_a_replacement_needs_time_beside_the_queries_that_stay(db: hr.Database, rates: Rates) -> None:
    db.execute(f"CREATE QUERY heavy AS {JOIN}; CREATE QUERY beside AS {COUNTED}")
    rates.rest, rates.rows = 0.6, 20_000.0
    push(db, 500)
    other = COUNTED.replace("COUNT(*) AS n", "SUM(v) AS n")
    freed = {}
    for name in ("heavy", "beside", "new"):
        lines = str(db.execute(f"EXPLAIN CREATE OR REPLACE QUERY {name} AS {other}")[0]).splitlines()
        (line,) = [line for line in lines if "of the run's time, where 80 % are needed now" in line]
        found = re.search(r", (\S+) % for what it replaces: ", line)
        assert (found is None) is (name == "new")
        freed[name] = 0.0 if found is None else float(found[1])
        alone = re.search(r"need up to (\S+) % of", line)
        assert alone is not None
        if float(alone[1]) != freed[name]:
            assert line.endswith("there is room for it") is (float(alone[1]) < freed[name])
    assert freed["heavy"] > 0
    assert freed["beside"] > 0


def test_shares_that_go_with_the_replaced_query_are_not_proposed(db: hr.Database, rates: Rates) -> None:
    rates.rest, rates.rows = 0.75, 100.0
    db.execute("CREATE QUERY other LOSS TOLERANT AS SELECT COUNT(*) AS n FROM s [RANGE 90]")
    push(db, 500)
    kept = "of the rows of s LOSS TOLERANT"
    explained = f"EXPLAIN CREATE OR REPLACE QUERY q AS {COUNTED}"
    assert kept in str(db.execute(explained)[0])
    db.execute("DROP QUERY other")
    assert "% of the run's time" in str(db.execute(explained)[0])
    assert kept not in str(db.execute(explained)[0])


def test_nothing_is_said_of_time_that_was_not_measured() -> None:
    with hr.connect(runner="inline") as db:
        db.execute(f"{STREAM}; {KNOWN}")
        db.start()
        push(db, 0)
        assert not any("of the run's time" in line for line in told(db, COUNTED))


def test_explain_cost_knows_what_a_query_bears() -> None:
    with hr.connect(runner="inline") as db:
        db.stream("t", [{"v": at % 7, "ts": at} for at in range(500)], timestamp="ts")
        asked = "EXPLAIN COST CREATE QUERY q {} AS SELECT COUNT(*) AS n FROM t [RANGE 100]"
        plain, lossy = (str(db.execute(asked.format(clause))[0]) for clause in ("", "LOSS TOLERANT"))
        assert "Shed" not in plain
        assert "Shed t LOSS TOLERANT" in lossy
        kept = [int(re.findall(r"keeps about (\d+) rows in all", text)[0]) for text in (plain, lossy)]
        assert kept[0] == pytest.approx(kept[1], rel=0.1)
