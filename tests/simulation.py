"""Lives of a store by a seed: pushes, files, changes of queries and copies on a disk that fails or dies.

A life is a process. It opens the store, does what its seed says, and is killed at some call of the system, or
one of its calls fails, or neither. After some lives one without faults comes to the end. The answers, what
sinks have and what copies hold must then be those of a run that nothing disturbed.

As a program it is a life, or, without a place, many seeds one after the other:

    python tests/simulation.py [--seeds 100 --first 0]
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sqlite3
import sys
import tempfile
import time
import warnings
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, Final

import headrace as hr
import warm_processes
from faulty_disk import Call, FaultyDisk
from headrace.errors import HeadraceWarning, UserError
from headrace.runtime.journal.inspect import contents, verify
from headrace.runtime.outside.patience import patient

PUSHES: Final = 8
LIVES: Final = 4
PATIENCE: Final = 20.0
LAST: Final = 10_000
"""An instant behind all windows."""

TEXT: Final = """
CREATE STREAM pushed (k STRING, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts DISORDER 5 RETAIN ALL;
CREATE STREAM filed (k STRING, v BIGINT, ts BIGINT) FROM json
  OPTIONS (path '{place}/files', follow 'true', ready 'renamed', poll '20 milliseconds')
  TIMESTAMP BY ts DISORDER 5;
CREATE RELATION names (k STRING, name STRING) KEY (k) FROM csv OPTIONS (path '{place}/names.csv');
CREATE QUERY sums AS SELECT k, COUNT(*) AS n, SUM(v) AS total FROM pushed [RANGE UNBOUNDED] GROUP BY k;
CREATE QUERY pairs AS
  SELECT p.v AS one, f.v AS other, n.name FROM pushed [RANGE 20] p JOIN filed [RANGE 20] f ON p.k = f.k
  JOIN names n ON n.k = p.k;
CREATE SINK files FOR pairs TO json OPTIONS (path '{place}/out');
CREATE SINK present FOR sums TO table OPTIONS (url 'sqlite://{place}/sums.db', table 'sums');
"""
CHANGES: Final = (
    "CREATE QUERY extra AS SELECT k, MAX(v) AS most FROM pushed [RANGE 15] GROUP BY k",
    "CREATE QUERY early CONSISTENCY MIDDLE AS SELECT COUNT(*) AS n FROM filed [RANGE 9]",
    "CREATE QUERY past STARTING AT EARLIEST AS SELECT COUNT(*) AS n FROM pushed [RANGE 30]",
    "CREATE OR REPLACE QUERY extra AS SELECT k, MIN(v) AS most FROM pushed [RANGE 25] GROUP BY k",
    "ALTER QUERY extra PAUSE",
    "ALTER QUERY extra RESUME",
    "ALTER QUERY early RENAME TO extra",
    "DROP QUERY extra",
    "DROP QUERY early",
    "DROP QUERY past",
)
"""Statements about queries whose answers are not compared; some of them are refused, as it happens."""

Answers = dict[str, Any]


@dataclass
class DyingDisk(FaultyDisk):
    """A disk of which one call fails, or is the last of its process.

    Attributes:
        nth: which call, or the first after it that may fail; none if 0.
        kills: whether the process dies there.
        random: says with which error it ends.
    """

    nth: int = 0
    kills: bool = False
    random: Random = field(default_factory=Random)

    def _reached(self, name: str, place: str) -> bool:
        with self._lock:
            self._counts[name, place] += 1
            call = Call(name, place, 1)
            self.calls.append(call)
            if self.failed or not self.nth or len(self.calls) < self.nth:
                return False
            if self.kills:
                os.kill(os.getpid(), signal.SIGKILL)
            if place.startswith("files"):
                # A followed file that is away is read after those that follow it: its rows may be late.
                return False
            self.kind = self.random.choice(call.errors)
            if (name, self.kind) == ("memory_map", "ENOMEM"):
                # A query that finds no memory for its own state ends alone, and for good.
                self.kind = "EIO"
            self.failed = True
            return True


def rows_of(number: int, of: int) -> list[dict[str, Any]]:
    """The rows of a push or of a file, of which the last has one behind all windows."""
    last = LAST if number == of - 1 else 10 * number + 4
    return [
        {"k": "a", "v": 2 * number, "ts": 10 * number},
        {"k": "b", "v": 2 * number + 1, "ts": last},
    ]


class Life:
    """A process' part of the work.

    Args:
        place: where the store, its inputs and sinks are.
        seed: says what it does.
        number: which of the lives it is; `LIVES` is the last one, which nothing disturbs.
    """

    def __init__(self, place: Path, seed: int, number: int) -> None:
        self.place = place
        self.random = Random(f"{seed} {number}")
        self.is_last = number == LIVES
        self.number = number
        disturbed = not self.is_last and self.random.random() < 0.85
        nth = self.random.choice((30, 100, 400, 1200))
        self.disk = DyingDisk(
            place,
            nth=self.random.randrange(1, nth) if disturbed else 0,
            kills=self.random.random() < 0.5,
            random=self.random,
        )

    def live(self) -> Answers | None:
        """Do some of the work, or what is left of it; the answers in the end."""
        with patient(pause=0.002, longest=0.01, opening=1.0), self.disk.spinning(), warnings.catch_warnings():
            warnings.simplefilter("ignore", HeadraceWarning)
            try:
                with hr.connect(runner="inline", storage=self.place / "store", buckets=2) as db:
                    db.execute(TEXT.format(place=self.place))
                    db.start()
                    return self._work(db)
            except UserError:
                if not self.disk.failed:
                    raise
                return None

    def _work(self, db: hr.Database) -> Answers | None:
        for _ in range(1_000 if self.is_last else self.random.randrange(2, 9)):
            if self._noted("acknowledged") == PUSHES and self._noted("filed") == PUSHES:
                break
            self._step(db)
        if not self.is_last:
            db.stop(PATIENCE)
            return None
        self._await(db)
        found = {name: db[name].history().to_pylist() for name in ("sums", "pairs")}
        letters = db.dead_letters().to_pylist()
        assert not letters, f"healthy rows are dead letters: {letters}"
        db.stop(PATIENCE)
        return found

    def _step(self, db: hr.Database) -> None:
        match self.random.choice(("push", "push", "push", "again", "file", "file", "change", "copy")):
            case "push" if self._noted("acknowledged") < PUSHES:
                number = self._noted("acknowledged")
                db.push("pushed", rows_of(number, PUSHES), "p", number, wait=False).result(PATIENCE)
                self._note("acknowledged")
            case "again" if self._noted("acknowledged"):
                number = self.random.randrange(self._noted("acknowledged"))
                taken = db.push("pushed", rows_of(number, PUSHES), "p", number, wait=False).result(PATIENCE)
                assert not taken, "a push counts twice"
            case "file" if self._noted("filed") < PUSHES:
                with self.disk.outside():
                    self._file(self._noted("filed"))
                self._note("filed")
            case "change" if not self.is_last:
                with suppress(UserError):
                    db.execute(self.random.choice(CHANGES))
            case "copy" if not self.is_last:
                with suppress(UserError):
                    hr.copy_store(self.place / "store", self.place / f"copy{self.number}")

    def _await(self, db: hr.Database) -> None:
        deadline = time.monotonic() + PATIENCE
        while db.status.stream("filed").rows < 2 * PUSHES:
            assert db.running, "the run has ended"
            assert time.monotonic() < deadline, f"hangs: {db.status.streams}, {dict(db.problems)}"
            time.sleep(0.002)

    def _noted(self, what: str) -> int:
        with self.disk.outside(), suppress(FileNotFoundError):
            return (self.place / what).stat().st_size
        return 0

    def _note(self, what: str) -> None:
        """Count one more: a byte, so that a kill leaves it or does not."""
        with self.disk.outside(), (self.place / what).open("ab") as file:
            file.write(b".")

    def _file(self, number: int) -> None:
        draft, file = self.place / "files" / ".draft", self.place / "files" / f"{number}.json"
        if not file.exists():
            draft.write_text("".join(f"{json.dumps(row)}\n" for row in rows_of(number, PUSHES)))
            draft.rename(file)


def lay_out(place: Path) -> None:
    """Make what the lives find: a relation, and a folder for files."""
    (place / "files").mkdir(parents=True)
    (place / "names.csv").write_text("k,name\na,Anna\nb,Bert\n")


def delivered(place: Path) -> Answers:
    """What the sinks have."""
    changes: Counter[str] = Counter()
    for path in sorted((place / "out").glob("*.jsonl")):
        for line in path.read_text().splitlines():
            row = json.loads(line)
            change = row.pop("change")
            row.pop("epoch", None)
            changes[json.dumps(row)] += change
    with sqlite3.connect(place / "sums.db") as database:
        rows = database.execute("SELECT k, n, total FROM sums ORDER BY k").fetchall()
    database.close()
    return {"files": sorted(+changes), "repeats": max(changes.values()), "table": rows}


@cache
def undisturbed() -> tuple[Answers, tuple[list[dict[str, Any]], ...]]:
    """The answers of a run that nothing disturbs, and those of `sums` after each number of pushes."""
    place = Path(tempfile.mkdtemp(prefix="headrace-plain-"))
    lay_out(place)
    life, after = Life(place, 0, LIVES), [list[dict[str, Any]]()]
    with hr.connect(runner="inline", storage=place / "store", buckets=2) as db:
        db.execute(TEXT.format(place=place))
        db.start()
        for number in range(PUSHES):
            life._file(number)
            db.push("pushed", rows_of(number, PUSHES), "p", number)
            after.append(db["sums"].history().to_pylist())
        life._await(db)
        found = {name: db[name].history().to_pylist() for name in ("sums", "pairs")}
        db.stop(PATIENCE)
    found |= delivered(place)
    shutil.rmtree(place)
    return found, tuple(after)


def broken_by(seed: int, ends: Counter[str]) -> str:
    """What is wrong after the lives of a seed; empty if nothing is.

    Args:
        seed: what happens.
        ends: how lives have ended, which are counted.
    """
    place = Path(tempfile.mkdtemp(prefix=f"headrace-life-{seed}-"))
    lay_out(place)
    plain, after = undisturbed()
    try:
        for number in range(LIVES + 1):
            command = [sys.executable, __file__, "--place", place, "--seed", seed, "--life", number]
            words = [str(word) for word in command]
            done = warm_processes.run(words, capture_output=True, timeout=120, text=True)
            ends["killed" if done.returncode else done.stderr.strip() or "done"] += 1
            if done.returncode not in ((0,) if number == LIVES else (0, -signal.SIGKILL)):
                return f"life {number}: {done.returncode}: {done.stderr[-2000:]}"
        found = json.loads(done.stdout.splitlines()[-1]) | delivered(place)
        wrong = [name for name in plain if json.dumps(found[name]) != json.dumps(plain[name])]
        if wrong:
            return f"other answers: {[(name, found[name], plain[name]) for name in wrong]}"
        # One that was killed has no store.json.
        copies = [path.parent for path in sorted(place.glob("copy*/store.json"))]
        for store in (place / "store", *copies):
            if problems := verify(store).problems:
                return f"{store.name}: {problems}"
        return next(filter(None, (_wrong_in(copy, after) for copy in copies)), "")
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _wrong_in(copy: Path, after: tuple[list[dict[str, Any]], ...]) -> str:
    """What is wrong with the answer in a copy: it is that of as many pushes as the copy has."""
    point = contents(copy).streams.get("pushed")
    reached = 0 if point is None else point.producers.get("p", -1) + 1
    found = hr.open(copy)["sums"].history().to_pylist() if reached else []
    return "" if found == after[reached] else f"{copy.name} after {reached} pushes: {found}, {after[reached]}"


def main() -> None:
    """Be a life, or try many seeds."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--place", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--life", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    wanted = parser.parse_args()
    if wanted.place is not None:
        life = Life(wanted.place, wanted.seed, wanted.life)
        print(json.dumps(life.live()))
        if life.disk.failed:
            print("a call failed", file=sys.stderr)
        return
    found, ends = Counter[str](), Counter[str]()
    for seed in range(wanted.first, wanted.first + wanted.seeds):
        wrong = broken_by(seed, ends)
        found["broken" if wrong else "equal"] += 1
        if wrong:
            print(f"seed {seed}: {wrong[:3000]}", flush=True)
    print(f"seeds: {dict(found)}, lives: {dict(ends)}")


if __name__ == "__main__":
    main()
