"""ALTER QUERY ... RENAME TO."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import headrace as hr
from headrace.errors import LanguageError
from headrace.runtime.journal.inspect import verify

BEGIN = """
CREATE STREAM s (v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts;
CREATE QUERY old AS SELECT MAX(v) AS top FROM s [RANGE 5];
CREATE QUERY beside AS SELECT MAX(v) AS top FROM s [RANGE 5];
"""


def pushed(db: hr.Database, *instants: int) -> None:
    db.push("s", [{"v": ts % 7, "ts": ts} for ts in instants])


def taking(found: list[int]) -> Callable[[int, int, pa.Table], None]:
    """A sink that remembers the epoch of each row."""

    def take(epoch: int, heartbeat: int, table: pa.Table) -> None:
        found.extend([epoch] * table.num_rows)

    return take


def test_a_renamed_query_goes_on_with_all_that_it_has(tmp_path: Path) -> None:
    taken, again = list[int](), list[int]()
    with hr.connect(runner="inline", storage=tmp_path, retain_epochs=100) as db:
        db.execute(BEGIN)
        query = db["old"]
        query.deliver(taking(taken), name="Board")
        query.deliver(taking([]), name="gone")
        db.start()
        db.execute("COMMENT ON QUERY old IS 'the largest'")
        pushed(db, *range(10))
        followed = query.subscribe()
        first = next(followed)
        db.execute("ALTER QUERY old RENAME TO new")
        pushed(db, *range(10, 30))
        assert db["new"] is query
        assert query.history() == db["beside"].history()
        with pytest.raises(hr.UserError, match="there is no query old"):
            _ = db["old"]
        db.query("SELECT MIN(v) AS least FROM s [RANGE 5]", "old")
        pushed(db, *range(30, 40))
        db.stop()
        epochs = [first.epoch, *(change.epoch for change in followed)]
        assert epochs == [*range(1, db.status.epoch + 1)]
        assert "QUERY new: the largest" in str(db.execute("DESCRIBE new")[0])
    stored = hr.open(tmp_path)
    assert stored["new"].history() == stored["beside"].history()
    assert stored["old"].schema.names == ("least",)
    assert verify(tmp_path).problems == ()
    positions = {"old%231-%42oard.json", "old%231-gone.json"}
    assert {file.name for file in (tmp_path / "sinks").iterdir()} == positions
    with hr.connect(runner="inline", storage=tmp_path, retain_epochs=100) as db:
        db["new"].deliver(taking(again), name="Board")
        db.start()
        assert not db.differences
        pushed(db, *range(40, 50))
        assert db["new"].history() == db["beside"].history()
        db.execute("ALTER QUERY new RENAME TO newer")
        db.stop()
        epochs = db["newer"].changes()["epoch"].to_pylist()
    assert {file.name for file in (tmp_path / "sinks").iterdir()} == positions
    assert verify(tmp_path).problems == ()
    assert again
    assert taken + again == epochs


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("ALTER QUERY old RENAME TO Beside", "there is a query Beside already"),
        ("ALTER QUERY older RENAME TO new", "there is no query older"),
    ],
)
def test_names_that_cannot_be_given(statement: str, message: str) -> None:
    with hr.connect(runner="inline") as db:
        db.execute(BEGIN)
        for _ in range(2):
            with pytest.raises(LanguageError, match=message):
                db.execute(statement)
            if not db.running:
                db.start()
        db.execute("ALTER QUERY old RENAME TO OLD")
        assert db["old"].name == "OLD"


def test_a_store_hears_of_a_new_name_from_a_run_alone(tmp_path: Path) -> None:
    with hr.connect(runner="inline", storage=tmp_path) as db:
        db.execute(BEGIN)
        db.execute("ALTER QUERY old RENAME TO first; ALTER QUERY first RENAME TO old")
        db.start()
        db.execute("ALTER QUERY old PAUSE; ALTER QUERY old RENAME TO resting; ALTER QUERY resting RESUME")
    with hr.connect(runner="inline", storage=tmp_path) as db:
        with pytest.raises(LanguageError, match="no run is going on that could rename it"):
            db.execute("ALTER QUERY resting RENAME TO new")
        assert "CREATE QUERY resting" in str(db.execute("SHOW CREATE QUERY resting")[0])
        db.start()
        db.execute("ALTER QUERY resting PAUSE")
    with hr.connect(runner="inline", storage=tmp_path) as db:
        # A paused query is the store's as well.
        with pytest.raises(LanguageError, match="no run is going on that could rename it"):
            db.execute("ALTER QUERY resting RENAME TO new")
        db.start()
