"""A run over many kinds of inputs and sinks on a disk that fails once: it must come to the same answers.

As a program it lets every call of the system fail with every error, and prints what broke as lines of JSON.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import shutil
import sqlite3
import tempfile
import threading
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final

import headrace as hr
from faulty_disk import Call, FaultyDisk
from headrace.errors import HeadraceError, HeadraceWarning, UserError
from headrace.runtime.journal.inspect import verify
from headrace.runtime.outside.patience import patient

PATIENCE: Final = 10.0
"""Seconds after which a run is taken to hang."""
ATTEMPTS: Final = 3
"""How often a job may be begun that stops once on purpose: once more after the one fault."""
PUSHES: Final = 3
FILES: Final = 2
LAST: Final = 10_000
"""An instant behind all windows."""

TEXT: Final = """
CREATE STREAM pushed (k STRING, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts DISORDER 5;
CREATE STREAM filed (k STRING, v BIGINT, ts BIGINT) FROM json
  OPTIONS (path '{place}/files', follow 'true', ready 'renamed', poll '20 milliseconds')
  TIMESTAMP BY ts DISORDER 5;
CREATE STREAM bounded (k STRING, v BIGINT, ts BIGINT) FROM csv OPTIONS (path '{place}/bounded.csv')
  TIMESTAMP BY ts;
CREATE RELATION names (k STRING, name STRING) KEY (k) FROM csv OPTIONS (path '{place}/names.csv');
CREATE QUERY sums AS SELECT k, COUNT(*) AS n, SUM(v) AS total FROM pushed [RANGE UNBOUNDED] GROUP BY k;
CREATE QUERY pairs AS
  SELECT p.v AS one, f.v AS other, n.name FROM pushed [RANGE 20] p JOIN filed [RANGE 20] f ON p.k = f.k
  JOIN names n ON n.k = p.k;
CREATE QUERY counts AS SELECT COUNT(*) AS n FROM bounded [RANGE 7];
CREATE SINK files FOR pairs TO json OPTIONS (path '{place}/out');
CREATE SINK present FOR sums TO table OPTIONS (url 'sqlite://{place}/sums.db', table 'sums');
"""
WRONG_HINT: Final = ("restore", "copy")
"""What may not be said of a store that is whole."""

Answers = dict[str, Any]


@dataclass
class Job:
    """A run that stops once in the middle, and goes on after any error.

    Attributes:
        place: where its store, inputs and sinks are.
        disk: the disk below that.
        errors: what has ended an attempt.
    """

    place: Path
    disk: FaultyDisk
    errors: list[str] = field(default_factory=list)
    _acknowledged: int = 0
    _filed: int = 0

    def done(self) -> Answers:
        """Do all of it; the answers.

        Raises:
            AssertionError: it does not go on, or an error does not say what is wrong.
        """
        with self.disk.outside():
            self._lay_out()
        found: Answers = {}
        for step in (1, PUSHES):
            while (reached := self._attempt(step)) is None:
                assert len(self.errors) < ATTEMPTS, self.errors
            found |= reached
        with self.disk.outside():
            return found | self._delivered()

    def _attempt(self, until: int) -> Answers | None:
        """Open the store and go on up to a push; None where that ended with an error."""
        try:
            with hr.connect(runner="inline", storage=self.place / "store", buckets=2) as db:
                db.execute(TEXT.format(place=self.place))
                db.start()
                while self._acknowledged < until:
                    self._push(db)
                self._follow(db, self._filed)
                found = self._answers(db) if until == PUSHES else {}
                db.stop(PATIENCE)
                return found
        except UserError as error:
            self._note(error)
            return None

    def _note(self, error: UserError) -> None:
        """Remember what has ended an attempt, if it may."""
        said = f"{type(error).__name__}: {error}"
        self.errors.append(said)
        assert self.disk.failed, f"without a fault: {said}"
        assert not all(word in said for word in WRONG_HINT), f"the store is whole: {said}"

    def _push(self, db: hr.Database) -> None:
        """A file, and the next rows that were not acknowledged."""
        with self.disk.outside():
            self._file()
        number = self._acknowledged
        db.push("pushed", _rows(number, PUSHES), "p", number, wait=False).result(PATIENCE)
        self._acknowledged += 1

    def _follow(self, db: hr.Database, files: int) -> None:
        """Wait until the files and the bounded stream are read."""
        deadline = time.monotonic() + PATIENCE
        while True:
            rows = {stream.name: stream.rows for stream in db.status.streams}
            if (rows.get("filed"), rows.get("bounded")) == (2 * files, 20):
                return
            if not db.running:
                # It says what ended the run.
                db.stop(PATIENCE)
            assert time.monotonic() < deadline, f"hangs: {rows}, {dict(db.problems)}"
            time.sleep(0.002)

    def _answers(self, db: hr.Database) -> Answers:
        letters = db.dead_letters().to_pylist()
        assert not letters, f"healthy rows are dead letters: {letters}"
        return {query.name: query.history().to_pylist() for query in db.queries}

    def _delivered(self) -> Answers:
        """What the sinks have, and whether the store is whole."""
        assert verify(self.place / "store").problems == ()
        files = sorted((self.place / "out").glob("*.jsonl"))
        lines = [line for path in files for line in path.read_text().splitlines()]
        changes: Counter[str] = Counter()
        for line in lines:
            row = json.loads(line)
            change = row.pop("change")
            row.pop("epoch", None)
            changes[json.dumps(row)] += change
        with sqlite3.connect(self.place / "sums.db") as database:
            rows = database.execute("SELECT k, n, total FROM sums ORDER BY k").fetchall()
        database.close()
        return {"files": sorted(+changes), "repeats": max(changes.values()), "table": rows}

    def _lay_out(self) -> None:
        (self.place / "files").mkdir(parents=True)
        rows = "".join(f"{'ab'[v % 2]},{v},{2 * v}\n" for v in range(20))
        (self.place / "bounded.csv").write_text(f"k,v,ts\n{rows}")
        (self.place / "names.csv").write_text("k,name\na,Anna\nb,Bert\n")

    def _file(self) -> None:
        """Write the next file for the stream that follows them, once."""
        if self._filed <= min(self._acknowledged, FILES - 1):
            draft = self.place / "files" / ".draft"
            lines = map(json.dumps, _rows(self._filed, FILES))
            draft.write_text("".join(f"{line}\n" for line in lines))
            draft.rename(self.place / "files" / f"{self._filed}.json")
            self._filed += 1


def _rows(number: int, of: int) -> list[dict[str, Any]]:
    """The rows of a push or of a file, of which the last has one behind all windows."""
    last = LAST if number == of - 1 else 10 * number + 4
    return [
        {"k": "a", "v": 2 * number, "ts": 10 * number},
        {"k": "b", "v": 2 * number + 1, "ts": last},
    ]


@dataclass(frozen=True)
class Case:
    """One call that fails with one error; without one, nothing fails."""

    call: Call | None = None
    kind: str = "EIO"

    @property
    def is_lack_of_memory_for_state(self) -> bool:
        """Whether the state of a query cannot be mapped, for want of memory."""
        call = self.call
        return call is not None and (call.name, self.kind, call.path.split("/")[:2]) == (
            *("memory_map", "ENOMEM"),
            ["store", "segments"],
        )


@dataclass(frozen=True)
class Outcome:
    """What became of a case.

    Attributes:
        case: the case.
        answers: those of its job, if it was done.
        calls: those that it made.
        failed: whether the call came.
        errors: those that ended an attempt.
        broken: what is wrong; empty if nothing is.
    """

    case: Case
    answers: Answers
    calls: tuple[Call, ...]
    failed: bool
    errors: tuple[str, ...]
    broken: str = ""


def outcome_of(case: Case) -> Outcome:
    """Run a job on a disk that fails as a case says."""
    place = Path(tempfile.mkdtemp(prefix="headrace-disk-"))
    disk = FaultyDisk(place, case.call, case.kind)
    job, found, broken = Job(place, disk), {}, []

    def work() -> None:
        try:
            found.update(job.done())
        except BaseException as error:
            broken.append(_told(error))

    with patient(pause=0.002, longest=0.01, opening=1.0), disk.spinning(), warnings.catch_warnings():
        warnings.simplefilter("ignore", HeadraceWarning)
        worker = threading.Thread(target=work, daemon=True)
        worker.start()
        worker.join(6 * PATIENCE)
        if worker.is_alive():
            broken.append("hangs")
    shutil.rmtree(place, ignore_errors=True)
    return Outcome(case, dict(found), tuple(disk.calls), disk.failed, tuple(job.errors), "\n".join(broken))


def _told(error: BaseException) -> str:
    if isinstance(error, (AssertionError, HeadraceError)):
        return f"{type(error).__name__}: {error}"
    return "".join(traceback.format_exception(error)[-8:])


def cases_of(plain: Outcome) -> list[Case]:
    """Every call of a job that nothing disturbed, with every error.

    A query that finds no memory for its own state is left out: it ends alone, and for good (decision 0080).
    """
    every = (Case(call, kind) for call in dict.fromkeys(plain.calls) for kind in call.errors)
    return [case for case in every if not case.is_lack_of_memory_for_state]


def judged(outcome: Outcome, plain: Outcome) -> str:
    """What is wrong with an outcome; empty if it is equal to that of a job that nothing disturbed."""
    if outcome.broken or outcome.answers == plain.answers:
        return outcome.broken
    wrong = [name for name, answer in plain.answers.items() if outcome.answers.get(name) != answer]
    return f"other answers: {wrong}, {[(outcome.answers.get(name), plain.answers[name]) for name in wrong]}"


def swept(cases: Iterable[Case], processes: int = 2) -> Iterator[Outcome]:
    """Run cases side by side."""
    # The first job of each process compiles kernels.
    with multiprocessing.get_context("spawn").Pool(processes, outcome_of, (Case(),)) as pool:
        yield from pool.imap_unordered(outcome_of, cases, chunksize=4)


def main() -> None:
    """Run all cases, or a part of them."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--some", type=int, help="so many cases, drawn by the seed")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--match", default="", help="those whose call has this in it")
    parser.add_argument("--processes", type=int, default=2)
    wanted = parser.parse_args()
    outcome_of(Case())  # Compiles kernels.
    plain = outcome_of(Case())
    assert not plain.broken, plain.broken
    cases = [case for case in cases_of(plain) if wanted.match in f"{case.call} {case.kind}"]
    if wanted.some:
        cases = Random(wanted.seed).sample(cases, min(wanted.some, len(cases)))
    print(f"{len(plain.calls)} calls, {len(cases)} cases", flush=True)
    counted: Counter[str] = Counter()
    for outcome in swept(cases, wanted.processes):
        wrong = judged(outcome, plain)
        counted["broken" if wrong else "ended and went on" if outcome.errors else "went on"] += 1
        counted["failed"] += outcome.failed
        if sum(counted.values()) % 200 < 2:
            print(dict(counted), flush=True)
        if wrong:
            told: Callable[[Any], str] = str
            case = {"call": told(outcome.case.call), "kind": outcome.case.kind}
            print(json.dumps({**case, "broken": wrong, "errors": outcome.errors}), flush=True)
    print(dict(counted))


if __name__ == "__main__":
    main()
