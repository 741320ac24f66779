"""The same rows are late whatever reads them: files, pushes, epochs of any size, many tasks, restarts."""

from __future__ import annotations

import csv
import json
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

import headrace as hr
from headrace.engine.access.policy import Policy
from headrace.engine.run.execution import Settings
from headrace.reference.lateness import heartbeat_by_bounds, late_by_bounds, late_rows, needed_disorder
from headrace.runtime.driver.settings import RunSettings
from headrace.runtime.sources.rows import rows as source_rows
from headrace.runtime.tasks.inline import InlineRunner
from headrace.time import BEGINNING, MAX_INSTANT
from how_many import examples

SCHEMA = pa.schema([("n", pa.int64()), ("price", pa.int64()), ("ts", pa.int64())])
QUERIES = {
    "taken": "SELECT n, ts FROM s",
    "sums": "SELECT price, COUNT(*) AS rows, SUM(n) AS total FROM s [RANGE 4] GROUP BY price",
}
JUNK = -1
"""The price of a row that a text file says nonsense for."""


@pytest.fixture(scope="module", autouse=True)
def small_batches() -> Iterator[None]:
    """A split comes in several batches."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source_rows, "BATCH_ROWS", 2)
        yield


@dataclass(frozen=True)
class Case:
    """Rows of a stream, and how they are read.

    Attributes:
        times: the timestamp of each row, or None.
        prices: the price of each row, or JUNK.
        files: the row at which each further file begins.
        disorder: what the stream declares.
        epoch_rows, tasks: how the input is cut.
    """

    times: list[int | None]
    prices: list[int]
    files: list[int]
    disorder: int
    epoch_rows: int
    tasks: int

    def parts(self) -> list[list[dict[str, Any]]]:
        """The rows of each file."""
        rows = [
            {"n": number, "price": price, "ts": ts}
            for number, (price, ts) in enumerate(zip(self.prices, self.times, strict=True))
        ]
        bounds = [0, *sorted(min(place, len(rows)) for place in self.files), len(rows)]
        return [rows[first:last] for first, last in pairwise(bounds)]

    def usable(self, *, text: bool) -> list[int | None]:
        """The timestamps of the rows that are not rejected; text files reject junk besides."""
        rejected = (JUNK,) if text else ()
        return [
            None if ts is None or ts > MAX_INSTANT or price in rejected else ts
            for ts, price in zip(self.times, self.prices, strict=True)
        ]

    def database(self, storage: Path | None = None) -> hr.Database:
        settings = Settings(storage, RunSettings(self.epoch_rows, buckets=min(self.tasks, 2)), None)
        return hr.Database(lambda: InlineRunner(self.tasks), settings, Policy.open())


TIMES = st.integers(0, 30) | st.none() | st.sampled_from((2**62, 25))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """About sorted rows, or unsorted ones, with some that are rejected."""
    times = draw(st.lists(TIMES, min_size=1, max_size=12) | st.lists(TIMES, min_size=12, max_size=24))
    if draw(st.booleans()):
        times = sorted(times, key=lambda ts: (ts or 0) + draw(st.integers(0, 6)))
    prices = draw(st.lists(st.sampled_from((1, 2, 1, 2, JUNK)), min_size=len(times), max_size=len(times)))
    files = draw(st.lists(st.integers(0, 24), max_size=2))
    epoch_rows = draw(st.sampled_from((500_000, 8, 3, 1)))
    return Case(
        times, prices, files, draw(st.sampled_from((2, 0, 6, 20))), epoch_rows, draw(st.integers(1, 4))
    )


def write_parquet(rows: list[dict[str, Any]], path: Path) -> None:
    pq.write_table(pa.Table.from_pylist(rows, SCHEMA), path, row_group_size=4)


def write_arrow(rows: list[dict[str, Any]], path: Path) -> None:
    with pa.ipc.new_file(str(path), SCHEMA) as writer:
        writer.write_table(pa.Table.from_pylist(rows, SCHEMA), max_chunksize=3)


def write_csv(rows: list[dict[str, Any]], path: Path) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, SCHEMA.names)
        writer.writeheader()
        writer.writerows({**row, "price": "junk" if row["price"] == JUNK else row["price"]} for row in rows)


def write_json(rows: list[dict[str, Any]], path: Path) -> None:
    lines = ({**row, "price": "junk" if row["price"] == JUNK else row["price"]} for row in rows)
    path.write_text("".join(json.dumps(row) + "\n" for row in lines))


FORMS: dict[str, Callable[[list[dict[str, Any]], Path], None]] = {
    "parquet": write_parquet,
    "arrow": write_arrow,
    "csv": write_csv,
    "json": write_json,
}


def read_files(db: hr.Database, form: str, folder: Path, disorder: int) -> None:
    db.execute(
        f"CREATE STREAM s (n BIGINT, price BIGINT, ts BIGINT) FROM {form} OPTIONS (path '{folder}') "
        f"TIMESTAMP BY ts DISORDER {disorder}"
    )
    for name, text in QUERIES.items():
        db.query(text, name=name)


def late_letters(db: hr.Database) -> list[tuple[int, str]]:
    """The number of each row in the dead letters that is late, and the reason."""
    letters = db.dead_letters().to_pylist()
    found = [(json.loads(letter["row"])["n"], letter["reason"]) for letter in letters if _is_late(letter)]
    return sorted(found)


def _is_late(letter: dict[str, Any]) -> bool:
    return bool(letter["reason"].startswith("late"))


def expected_letters(times: list[int | None], disorder: int) -> list[tuple[int, str]]:
    """By the definition."""
    found = []
    for place in late_rows(times, disorder):
        newest = max(ts for ts in times[:place] if ts is not None)
        found.append((place, f"late: older than the heartbeat {newest - disorder}"))
    return found


def check_counts(summary: hr.Summary, times: list[int | None], disorder: int) -> None:
    late = late_rows(times, disorder)
    (stream,) = summary.streams
    rejected = times.count(None)
    assert (stream.rows, stream.late, stream.rejected) == (
        len(times) - rejected - len(late),
        len(late),
        rejected,
    )
    assert stream.needed_disorder == (str(needed_disorder(times)) if late else None)


def check_answers(db: hr.Database, case: Case, times: list[int | None]) -> None:
    """What was taken is what is not late, and the answers are those over it in order of time."""
    late = set(late_rows(times, case.disorder))
    taken = [(ts, n) for n, ts in enumerate(times) if ts is not None and n not in late]
    named = {query.name: query for query in db.queries}
    found = named["taken"].stream().select(["ts", "n"]).to_pylist()
    assert [(row["ts"], row["n"]) for row in found] == sorted(taken)
    with hr.connect(runner="inline") as sorted_db:
        rows = [{"n": n, "price": case.prices[n], "ts": ts} for ts, n in sorted(taken)]
        sorted_db.stream("s", pa.Table.from_pylist(rows, SCHEMA), timestamp="ts")
        sums = sorted_db.query(QUERIES["sums"])
        sorted_db.run()
        assert named["sums"].history().equals(sums.history())


@pytest.mark.parametrize("form", FORMS)
@examples(6, 51)
@given(case=cases())
def test_files(form: str, case: Case) -> None:
    times = case.usable(text=form in ("csv", "json"))
    with tempfile.TemporaryDirectory() as place:
        for number, rows in enumerate(case.parts()):
            FORMS[form](rows, Path(place, f"{number}.{form}"))
        with case.database() as db:
            read_files(db, form, Path(place), case.disorder)
            summary = db.run()
            event(f"some are late: {summary.late > 0}")
            check_counts(summary, times, case.disorder)
            assert late_letters(db) == expected_letters(times, case.disorder)
            check_answers(db, case, times)


class InterruptionError(Exception):
    """Ends a run between two epochs."""


@examples(6, 51)
@given(cases(), st.integers(1, 6))
def test_a_restart(case: Case, epochs: int) -> None:
    times = case.usable(text=False)

    def interrupt(progress: hr.Progress) -> None:
        if progress.epoch == epochs:
            raise InterruptionError

    with tempfile.TemporaryDirectory() as place:
        folder = Path(place, "input")
        folder.mkdir()
        for number, rows in enumerate(case.parts()):
            write_parquet(rows, folder / f"{number}.parquet")
        with case.database(Path(place, "store")) as db:
            read_files(db, "parquet", folder, case.disorder)
            try:
                db.run(interrupt)
            except InterruptionError:
                event("interrupted")
        with case.database(Path(place, "store")) as db:
            read_files(db, "parquet", folder, case.disorder)
            check_counts(db.run(), times, case.disorder)
            assert late_letters(db) == expected_letters(times, case.disorder)
            check_answers(db, case, times)


@examples(17)
@given(cases())
def test_pushes(case: Case) -> None:
    times = case.usable(text=False)
    with case.database() as db:
        db.execute(
            "CREATE STREAM s (n BIGINT, price BIGINT, ts BIGINT) FROM push "
            f"TIMESTAMP BY ts DISORDER {case.disorder}"
        )
        db.query(QUERIES["taken"], name="taken")
        db.start()
        for rows in case.parts():
            db.push("s", pa.Table.from_pylist(rows, SCHEMA))
        check_counts(db.stop(), times, case.disorder)
        assert late_letters(db) == expected_letters(times, case.disorder)


@examples(10, 30)
@given(
    cases(),
    st.sampled_from((1, 2, 3, 5)),
    st.none() | st.integers(0, 6),
    st.none() | st.tuples(st.integers(1, 4), st.none() | st.integers(0, 3)),
    st.booleans(),
)
def test_numbers_of_rows(
    case: Case, rows: int, disorder: int | None, itself: tuple[int, int | None] | None, pushed: bool
) -> None:
    """What rows promise by their number depends neither on the cut nor on what brings them."""
    times = case.usable(text=False)
    bounds = [(rows, 1)]
    bounds += [] if disorder is None else [(0, disorder + 1)]
    bounds += [] if itself is None else [(itself[0], 0 if itself[1] is None else itself[1] + 1)]
    with tempfile.TemporaryDirectory() as place, case.database() as db:
        in_time = "" if disorder is None else f"DISORDER {disorder}"
        origin = "push" if pushed else f"parquet OPTIONS (path '{place}')"
        for number, part in enumerate(case.parts()):
            write_parquet(part, Path(place, f"{number}.parquet"))
        db.execute(
            f"CREATE STREAM s (n BIGINT, price BIGINT, ts BIGINT) FROM {origin} "
            f"TIMESTAMP BY ts DISORDER {rows} ROWS {in_time}"
        )
        if itself is not None:
            behind = "STRICT" if itself[1] is None else itself[1]
            db.execute(f"CREATE SKEW FROM s TO s ({itself[0]} ROWS, {behind})")
        db.query(QUERIES["taken"], name="taken")
        if pushed:
            db.start()
            for part in case.parts():
                db.push("s", pa.Table.from_pylist(part, SCHEMA))
            known = [ts for ts in times if ts is not None]
            expected = heartbeat_by_bounds(known, bounds)
            assert db["taken"].heartbeat == (BEGINNING if expected is None else expected)
            summary = db.stop()
        else:
            summary = db.run()
        late = late_by_bounds(times, bounds)
        event(f"some are late: {bool(late)}")
        assert [number for number, _ in late_letters(db)] == late
        (stream,) = summary.streams
        assert (stream.late, stream.rejected) == (len(late), times.count(None))
        assert stream.needed_disorder == (str(needed_disorder(times)) if late else None)
