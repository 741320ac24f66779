"""A query that is paused KEEPING INPUT and resumed answers as one that was never paused."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import Phase, given
from hypothesis import strategies as st

import headrace as hr
import headrace.runtime.driver.epoch.committed as driver
import headrace.runtime.store.segments as segments
from headrace.errors import LanguageError, UserError
from how_many import examples

STREAMS = """
    CREATE STREAM bid (item BIGINT, price BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts DISORDER 4 RETAIN 12;
    CREATE STREAM sale (item BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts DISORDER 4 RETAIN 12;
"""
QUERIES = {
    "counted": "SELECT item, COUNT(*) AS n, SUM(price) AS total FROM bid [RANGE 7] GROUP BY item",
    "sold": "SELECT b.item, b.price FROM bid [RANGE 6] b JOIN sale [RANGE 5] s ON b.item = s.item",
    "last": "SELECT MAX(price) AS top FROM bid [ROWS 2]",
    "plain": "SELECT item, price FROM bid WHERE price > 3",
}


def history(query: Any) -> list[tuple[object, ...]]:
    """The rows of a history, each cut into instants."""
    return sorted(
        (*(value for name, value in row.items() if name not in ("valid_from", "valid_to")), instant)
        for row in query.history().to_pylist()
        for instant in range(row["valid_from"], row["valid_to"] or 150)
    )


ROW = st.tuples(
    st.sampled_from(["bid", "bid", "sale"]), st.integers(0, 2), st.integers(0, 9), st.integers(-6, 2)
)


@examples(2, 6, phases=[Phase.generate])
@given(
    st.lists(ROW, min_size=12, max_size=30),
    st.sampled_from(list(QUERIES)),
    st.integers(3, 8),
    st.integers(0, 12),
    st.booleans(),
    st.booleans(),
)
def test_as_one_that_was_never_paused(
    rows: list[tuple[str, int, int, int]], name: str, first: int, long: int, restarts: bool, alone: bool
) -> None:
    with TemporaryDirectory() as folder, ExitStack() as stack:
        known = stack.enter_context(hr.connect(runner="inline"))
        known.execute(f"{STREAMS}; CREATE QUERY q AS {QUERIES[name]}; {OTHERS}")
        known.start()
        db = hr.connect(runner="inline", storage=Path(folder) / "store")
        db.execute(f"{STREAMS}; CREATE QUERY q AS {QUERIES[name]}; {'' if alone else OTHERS}")
        db.start()
        for place, (stream, item, price, behind) in enumerate(rows):
            if place == first:
                db.execute("ALTER QUERY q PAUSE KEEPING INPUT")
            if restarts and place == first + long // 2:
                db.stop()
                db.close()
                db = hr.connect(runner="inline", storage=Path(folder) / "store")
                db.start()
            if place == first + long + 1:
                (said,) = db.execute("ALTER QUERY q RESUME")
                assert "lacks no instant" in str(said)
            at = max(3 * place + behind, 0)
            row = {"item": item, "price": price, "ts": at}
            one = row if stream == "bid" else {"item": item, "ts": row["ts"]}
            for each in (known, db):
                if stream == "bid" or name == "sold" or not (alone and each is db):
                    each.push(stream, one)
        if len(rows) <= first + long + 1:
            db.execute("ALTER QUERY q RESUME")
        for each in (known, db):
            for stream in ("bid", "sale"):
                if stream == "bid" or name == "sold" or not (alone and each is db):
                    each.heartbeat(stream, 150)
        assert history(db["q"]) == history(known["q"])
        db.close()


OTHERS = "CREATE QUERY bids AS SELECT item FROM bid; CREATE QUERY sales AS SELECT item FROM sale"


def begun(folder: Path) -> hr.Database:
    db = hr.connect(runner="inline", storage=folder / "store")
    db.execute(f"{STREAMS}; CREATE QUERY counted AS {QUERIES['counted']}")
    db.start()
    for ts in (1, 5, 3, 9, 14):
        db.push("bid", {"item": ts % 2, "price": ts, "ts": ts})
    return db


class Killed(BaseException):
    """What ends a run in the middle of a step, as a kill does."""


@pytest.mark.parametrize(
    ("module", "point", "counts"),
    [
        (segments, "segment.written", False),
        (driver, "change.begun", False),
        (segments, "commit.linked", True),
        (driver, "change.done", True),
    ],
)
def test_a_kill_while_it_catches_up_leaves_it_paused_or_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: Any, point: str, counts: bool
) -> None:
    def cut(name: str) -> None:
        if name == point:
            raise Killed

    with begun(tmp_path) as db:
        db.execute("ALTER QUERY counted PAUSE KEEPING INPUT")
        db.push("bid", {"item": 1, "price": 4, "ts": 20})
        with monkeypatch.context() as patch:
            patch.setattr(module, "reach", cut)
            with pytest.raises(UserError, match="Killed"):
                db.execute("ALTER QUERY counted RESUME")
            with pytest.raises(Killed):
                db.stop()
    with hr.connect(runner="inline", storage=tmp_path / "store") as db, begun(tmp_path / "known") as known:
        if not counts:
            # Given before the start, it is brought to the present by it.
            db.execute("ALTER QUERY counted RESUME")
        db.start()
        known.push("bid", {"item": 1, "price": 4, "ts": 20})
        for each in (db, known):
            each.push("bid", {"item": 0, "price": 4, "ts": 40})
        assert history(db["counted"]) == history(known["counted"])


def test_rows_are_let_go_of_again_after_it(tmp_path: Path) -> None:
    with begun(tmp_path) as db:
        db.execute("ALTER QUERY counted PAUSE KEEPING INPUT")
        for ts in range(20, 80, 5):
            db.push("bid", {"item": 1, "price": 4, "ts": ts})
        assert db.rows("bid").num_rows == 5 + 12
        db.execute("ALTER QUERY counted RESUME")
        db.push("bid", {"item": 1, "price": 4, "ts": 90})
        assert db.rows("bid").num_rows < 8


def test_what_it_needs_is_said(tmp_path: Path) -> None:
    with begun(tmp_path) as db:
        db.execute("ALTER STREAM bid RETAIN 1")
        for ts in range(15, 32):
            db.push("bid", {"item": 1, "price": 4, "ts": ts})
        with pytest.raises(UserError, match="depend on rows of bid that are no longer kept"):
            db.execute("ALTER QUERY counted PAUSE KEEPING INPUT")
        assert [query.name for query in db.status.queries] == ["counted"]


def test_a_run_has_to_go_on(tmp_path: Path) -> None:
    begun(tmp_path).close()
    with (
        hr.connect(runner="inline", storage=tmp_path / "store") as db,
        pytest.raises(LanguageError, match="no endless run is going on"),
    ):
        db.execute("ALTER QUERY counted PAUSE KEEPING INPUT")
