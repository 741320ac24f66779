"""What the crash tests kill: a run over split, pushed and (on Spark) streamed input, to be started again.

As a program it forks an attempt per kill from one warm process, since starting Python takes longer than the
work; with `--attempt` it is a single attempt, for Spark, whose processes cannot be forked.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import os
import random
import select
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

import delivering
import headrace as hr
from headrace.runtime.journal.inspect import contents, verify
from headrace.runtime.store import crash_points as faults
from headrace.time import INFINITY
from inside import run_of

PATIENCE = 120.0
"""Seconds after which an attempt counts as hung."""

EVENTS = 6_000
SPLITS = f"""
CREATE STREAM bid FROM nexmark OPTIONS (events={EVENTS}, seed=7, rate=100, disorder='2 seconds')
  TIMESTAMP BY ts DISORDER 2 SECONDS;
CREATE STREAM auction FROM nexmark OPTIONS (events={EVENTS}, seed=7, rate=100, disorder='2 seconds')
  TIMESTAMP BY ts DISORDER 1 SECOND;
CREATE QUERY split_sums AS
  SELECT auction, COUNT(*) AS n, SUM(price) AS total, AVG(price) AS mean
  FROM bid [RANGE 5 SECONDS] GROUP BY auction;
CREATE QUERY split_join AS
  SELECT a.seller, MAX(b.price) AS best FROM bid [RANGE 5 SECONDS] b, auction [RANGE 20 SECONDS] a
  WHERE b.auction = a.id GROUP BY a.seller;
CREATE QUERY failing AS SELECT auction, 1000 / (price % 7) AS part FROM bid;
CREATE QUERY letters AS SELECT reason, query, auction, bidder, price, ts FROM DEAD LETTERS OF bid;
"""
PUSHED = """
CREATE STREAM signal (producer STRING, number BIGINT, auction BIGINT, ts TIMESTAMP) FROM push
  TIMESTAMP BY ts DISORDER 5 SECONDS;
CREATE QUERY pushed AS SELECT producer, number, ts FROM signal;
CREATE QUERY pushed_sums AS
  SELECT producer, COUNT(*) AS n, SUM(number) AS total FROM signal [RANGE UNBOUNDED] GROUP BY producer;
CREATE QUERY pushed_early CONSISTENCY MIDDLE AS
  SELECT MAX(n) AS most FROM (SELECT producer, COUNT(*) AS n FROM signal [RANGE UNBOUNDED] GROUP BY producer);
CREATE QUERY pushed_join AS
  SELECT s.producer, s.number, b.price FROM signal [RANGE 5 SECONDS] s, bid [RANGE 1 SECOND] b
  WHERE s.auction = b.auction;
"""
CHANGED_AT = 10
"""After so many pushes of every producer a query is added and another one dropped."""
EARLY = "SELECT producer, COUNT(*) AS n FROM signal [RANGE UNBOUNDED] GROUP BY producer"
LATE = {
    "late": "SELECT producer, SUM(number) AS total FROM signal [RANGE UNBOUNDED] GROUP BY producer",
    "late_owners": "SELECT COUNT(*) AS owners FROM owner",
}
"""The second of them reads a relation that has been read before."""
RELATED = """
CREATE QUERY graded AS SELECT b.price, g.grade FROM bid b LEFT JOIN grade g ON g.auction = b.auction;
CREATE QUERY owned AS
  SELECT s.number, o.owner FROM signal s
  LEFT JOIN owner FOR SYSTEM_TIME AS OF s.ts o ON o.auction = s.auction;
"""
STREAMED = """
CREATE QUERY streamed AS SELECT k, COUNT(*) AS n, SUM(v) AS total FROM filed [RANGE UNBOUNDED] GROUP BY k;
CREATE QUERY streamed_join AS
  SELECT f.v, s.producer, s.number FROM filed [RANGE 3 SECONDS] f, signal [RANGE 3 SECONDS] s
  WHERE f.k = s.producer;
"""
PRODUCERS = ("anna", "bert")
BEGIN = datetime(2024, 1, 1, tzinfo=UTC)
GRADES = pa.table({"auction": range(1000, 1200), "grade": [number % 7 for number in range(200)]})
OWNERS = pa.Table.from_pylist(
    [
        {
            "op": "insert" if number < 9 else "delete" if number % 5 == 0 else "update",
            "auction": 1000 + number % 9,
            "owner": f"owner {number}",
            "ts": BEGIN + timedelta(seconds=number // 9 * 5),
            "version": number,
        }
        for number in range(90)
    ]
)
"""Changes of nine rows, some of which are deleted and come again."""
FILED = pa.schema([("k", pa.string()), ("v", pa.int64()), ("ts", pa.timestamp("us", "UTC"))])


@dataclass(frozen=True)
class Job:
    """One run that is to be finished, whatever happens.

    Attributes:
        storage: the durable store.
        notes: a folder where producers note what was acknowledged, and the answers are left.
        pushes: how many pushes each producer makes.
        epoch_rows: about how many rows an epoch takes.
        retain: of how many epochs results are kept; of all if None.
        files: a folder of Parquet files that Spark streams, or None without Spark.
    """

    storage: Path
    notes: Path
    pushes: int = 20
    epoch_rows: int = 150
    retain: int | None = None
    files: Path | None = None

    @property
    def answers(self) -> Path:
        return self.notes / "answers.json"


def rows_of(producer: str, sequence: int) -> list[dict[str, Any]]:
    """What a producer pushes as its n-th push: 3 rows, a little out of order."""
    return [
        {
            "producer": producer,
            "number": sequence * 3 + part,
            "auction": 1000 + (sequence * 3 + part) % 9,
            "ts": BEGIN
            + timedelta(seconds=sequence * 2 - part, milliseconds=len(producer) + ord(producer[0])),
        }
        for part in range(3)
    ]


def attempt(job: Job) -> None:
    """Do what is left of a job, and leave the answers."""
    session = _session() if job.files else None
    options: dict[str, Any] = {"spark": session} if session else {"runner": "inline", "buckets": 3}
    with hr.connect(
        storage=job.storage, epoch_rows=job.epoch_rows, retain_epochs=job.retain, **options
    ) as db:
        db.execute(SPLITS + PUSHED)
        db.relation("grade", GRADES, key="auction")
        db.relation("owner", OWNERS, "auction", changes_by="op", timestamp="ts", version="version")
        if job.retain is None:
            # Their answers are not compared where few results are kept, and cost as much as all others.
            db.execute(RELATED)
        known = _known(job)
        for name, text in {"early": EARLY, **LATE}.items():
            if name in known:
                db.query(text, name=name)
        if session is not None:
            reader = session.readStream.schema("k STRING, v BIGINT, ts TIMESTAMP")
            frame = reader.option("maxFilesPerTrigger", 1).parquet(str(job.files))
            db.stream("filed", frame, timestamp="ts", disorder="10 seconds")
            db.execute(STREAMED)
        delivering.attach(db, job.notes, _spark_sinks() if session else None)
        db.start()
        assert not db.differences, "the store has the queries that its last commit has"
        _push(db, job)
        for name in ("split_sums", "letters"):
            _finish(db, name, lambda heartbeat: heartbeat == INFINITY)
        if job.files:
            _finish(db, "streamed", lambda _: _rows_read(db, "filed") == filed_rows(job.files))
        summary = db.stop()
        found: dict[str, Any] = _results(db) if job.retain is None else {}
        found |= delivering.check(db, job.notes, session)
        # A reading of a relation is called after the epoch of its start, which kills move.
        read = (part for part in summary.streams if " since " not in part.name)
        found["read"] = {part.name: [part.rows, part.late, part.rejected] for part in read}
        found["emitted"] = {name: summary.emitted[name] for name in ("failing", "pushed")}
    job.answers.with_suffix(".draft").write_text(json.dumps(found, sort_keys=True))
    job.answers.with_suffix(".draft").rename(job.answers)


def _results(db: hr.Database) -> dict[str, Any]:
    """Digests of all histories, and of the dead letters in an order that does not depend on epochs."""
    letters = db.dead_letters().drop_columns(["epoch", "place"])
    letters = letters.sort_by([(name, "ascending") for name in letters.schema.names])
    # What became of dead letters is timed by the clock.
    timed = db["letters"].stream()
    timed = timed.select(["reason", "query", "auction", "bidder", "price", "ts"])
    timed = timed.sort_by([(name, "ascending") for name in timed.schema.names])
    found = {query.name: _digest(query.history()) for query in db.queries if query.name != "letters"}
    return found | {"dead letters": _digest(letters), "letters": _digest(timed)}


def _push(db: hr.Database, job: Job) -> None:
    """Push what was not acknowledged yet, a few at a time, and note every acknowledgement."""
    noted = {producer: _noted(job, producer) for producer in PRODUCERS}
    # In the same pairs as an undisturbed job: the plan changes between two of them.
    begin = min(noted.values()) // 2 * 2
    for first in range(begin, job.pushes, 2):
        if first >= CHANGED_AT:
            _change(db)
        flying: list[tuple[str, int, Future[bool]]] = []
        for sequence in range(first, min(first + 2, job.pushes)):
            for producer in PRODUCERS:
                done = db.push("signal", rows_of(producer, sequence), producer, sequence, wait=False)
                assert isinstance(done, Future)
                flying.append((producer, sequence, done))
        for producer, sequence, done in flying:
            taken = done.result(timeout=PATIENCE)
            assert not (taken and sequence < noted[producer]), "an acknowledged push was taken again"
            (job.notes / producer).write_text(str(sequence + 1))


def _known(job: Job) -> set[str]:
    """The queries that a store has after its last commit, or those that a job begins with."""
    if not (job.storage / "commits").exists():
        return {"early"}
    return set(contents(job.storage).description.queries)


def _change(db: hr.Database) -> None:
    """Add the late queries and drop the early one, if an attempt before has not."""
    names = {query.name for query in db.queries}
    for name, text in LATE.items():
        if name not in names:
            db.query(text, name=name)
    if "early" in names:
        db.drop("early")


def _noted(job: Job, producer: str) -> int:
    note = job.notes / producer
    text = note.read_text() if note.exists() else ""
    return int(text or 0)


def _finish(db: hr.Database, name: str, done: Any) -> None:
    query = next(query for query in db.queries if query.name == name)
    for change in query.subscribe():
        if done(change.heartbeat):
            return
    raise AssertionError(f"{name} ended early")


def _rows_read(db: hr.Database, stream: str) -> int:
    seen = run_of(db).totals.arrivals.get(stream)
    return seen.rows if seen is not None else 0


def _digest(table: pa.Table) -> str:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    return f"{table.num_rows} rows {hashlib.sha256(sink.getvalue()).hexdigest()}"


def write_files(folder: Path, count: int) -> None:
    """The files that Spark streams, one per batch."""
    pq = importlib.import_module("pyarrow.parquet")
    folder.mkdir()
    started = int(time.time()) - count
    for number in range(count):
        rows = [
            {
                "k": PRODUCERS[part % 2],
                "v": number * 10 + part,
                "ts": BEGIN + timedelta(seconds=number * 5 + part),
            }
            for part in range(10)
        ]
        path = folder / f"{number:03}.parquet"
        pq.write_table(pa.Table.from_pylist(rows, FILED), path)
        # Spark reads files in order of their age.
        os.utime(path, (started + number, started + number))


def filed_rows(folder: Path | None) -> int:
    return 10 * len(list(folder.glob("*.parquet"))) if folder else 0


def _session() -> Any:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    sql = importlib.import_module("pyspark.sql")
    builder = sql.SparkSession.builder.master("local[2]").appName("headrace crash test")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
    }.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


def _spark_sinks() -> Any:
    return importlib.import_module("headrace.runtime.spark.sinks")


@dataclass
class Outcome:
    """What became of a job that was killed again and again.

    Attributes:
        kills: per fault point, or `random`, how many attempts were killed there.
        attempts: how many there were.
        answers: those of the attempt that finished.
        damage: what a check of the store found wrong.
        strays: files of the store that nothing names.
    """

    kills: dict[str, int] = field(default_factory=dict)
    attempts: int = 0
    answers: dict[str, Any] = field(default_factory=dict)
    damage: list[str] = field(default_factory=list)
    strays: list[str] = field(default_factory=list)


def crash_loop(job: Job, killers: Sequence[str]) -> Outcome:
    """Attempt a job in forked processes, each with the next killer, until it is done.

    Args:
        killers: `point:n` to die at a fault point, `random:seconds` to be killed after that time.
    """
    outcome, left = Outcome(), list(killers)
    while not job.answers.exists():
        killer = left.pop(0) if left else ""
        status = _fork(job, killer)
        outcome.attempts += 1
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL and killer:
            name = killer.partition(":")[0]
            outcome.kills[name] = outcome.kills.get(name, 0) + 1
        elif status:
            raise AssertionError(f"attempt {outcome.attempts} with '{killer}' ended with status {status}")
    outcome.answers = json.loads(job.answers.read_text())
    outcome.damage = [str(problem) for problem in verify(job.storage).problems]
    outcome.strays = strays(job.storage)
    return outcome


def strays(storage: Path) -> list[str]:
    """Files among segments, results and commits that no commit names, drafts included."""
    inspect = importlib.import_module("headrace.runtime.journal.inspect")
    named = inspect.named_files(storage)
    found = (path for folder in ("segments", "results", "commits") for path in (storage / folder).iterdir())
    return sorted(name for path in found if (name := str(path.relative_to(storage))) not in named)


def _fork(job: Job, killer: str) -> int:
    """Run an attempt in a child; its exit status."""
    name, _, value = killer.partition(":")
    child = os.fork()
    if child == 0:
        try:
            if name in faults.POINTS:
                os.environ["HEADRACE_FAULT"] = killer
                importlib.reload(faults)
            attempt(job)
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
            os._exit(3)
        os._exit(0)
    handle = os.pidfd_open(child)
    patience = float(value) if name == "random" else PATIENCE
    if not select.select([handle], [], [], patience)[0]:
        os.kill(child, signal.SIGKILL)
        if name != "random":
            raise AssertionError(f"an attempt with '{killer}' hung")
    os.close(handle)
    return os.waitpid(child, 0)[1]


def random_killers(count: int, seed: int, longest: float) -> list[str]:
    """Killers at random moments of an attempt of so many seconds."""
    dice = random.Random(seed)
    return [f"random:{dice.uniform(0.0, longest):.3f}" for _ in range(count)]


def every_point(counts: Sequence[int]) -> list[str]:
    """Killers at every fault point for the n-th time, for some n."""
    return [f"{point}:{number}" for number in counts for point in faults.POINTS]


def jobs(folder: Path, pushes: int, epoch_rows: int, retain: int | None = None) -> Iterator[Job]:
    """Jobs that differ in nothing but their folders."""
    for number in range(1_000):
        place = folder / str(number)
        place.mkdir(parents=True)
        yield Job(place / "store", place, pushes, epoch_rows, retain)


def main() -> None:
    """An undisturbed job, then killed ones until all killers are used; prints what became of them as JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--counts", default="1", help="n of every point, separated by commas; empty for none")
    parser.add_argument("--random", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--longest", type=float, default=1.0, help="seconds until a random kill at most")
    parser.add_argument("--pushes", type=int, default=20)
    parser.add_argument("--epoch-rows", type=int, default=150)
    parser.add_argument("--retain", type=int, help="of how many epochs results are kept")
    parser.add_argument("--attempt", type=Path, metavar="FOLDER", help="one attempt of the job in a folder")
    parser.add_argument("--files", type=Path, help="Parquet files that Spark streams, for an attempt")
    wanted = parser.parse_args()
    if wanted.attempt:
        place, files = wanted.attempt, wanted.files
        attempt(Job(place / "store", place, wanted.pushes, wanted.epoch_rows, wanted.retain, files))
        return
    counts = [int(part) for part in wanted.counts.split(",") if part]
    killers = every_point(counts) + random_killers(wanted.random, wanted.seed, wanted.longest)
    folder = Path(tempfile.mkdtemp(prefix="headrace-crash-"))
    try:
        source = jobs(folder, wanted.pushes, wanted.epoch_rows, wanted.retain)
        _warm_up()
        plain = crash_loop(next(source), [])
        outcomes = []
        while killers:
            outcome = crash_loop(next(source), killers)
            killers = killers[outcome.attempts :]
            outcomes.append(vars(outcome))
        print(json.dumps({"plain": vars(plain), "killed": outcomes}))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _warm_up() -> None:
    """Load the compiled kernels, so that no child has to."""
    with hr.connect(runner="inline") as db:
        db.execute(SPLITS)
        db.run()


if __name__ == "__main__":
    main()
