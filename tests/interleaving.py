"""Pushes, changes of queries, stops and starts by several threads, and the same calls one after the other.

A seed decides what each thread does and the order in which the calls begin; they run side by side, so that
what happens first differs from run to run. What the store committed then says in which order they counted.
The same calls made by one thread in that order must answer the same.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import headrace as hr
from headrace.errors import UserError
from headrace.lowering.query_id import first_name
from headrace.runtime.results.carried import written
from inside import reader_of

PATIENCE = 60.0
"""Seconds after which a call is taken to hang."""

STREAM = "CREATE STREAM s (k STRING, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts DISORDER 30"
EVERY = "SELECT v FROM s"
"""The query `every`, which runs all the time: it shows when each row was committed."""

TEXTS = (
    "SELECT k, COUNT(*) AS n, MAX(v) AS most FROM s [RANGE 40] GROUP BY k",
    "SELECT a.v AS one, b.v AS other FROM s [RANGE 15] a JOIN s [RANGE 30] b ON a.k = b.k",
    "SELECT k, v FROM s [PARTITION BY k ROWS 2]",
    "ISTREAM(SELECT DISTINCT k FROM s [RANGE 20])",
)
LAST = {"k": "z", "v": -1, "ts": 100_000}
"""A row behind which all others are final."""

Answers = dict[str, list[dict[str, Any]]]


@dataclass(frozen=True)
class Epoch:
    """What an epoch committed: rows, or queries that came and went."""

    rows: tuple[dict[str, Any], ...]
    added: tuple[str, ...]
    dropped: tuple[str, ...]


@dataclass
class Interleaving:
    """One run of the calls that a seed decides."""

    seed: int
    storage: Path
    texts: dict[str, str] = field(default_factory=dict)
    rows: dict[int, dict[str, Any]] = field(default_factory=dict)
    _errors: list[BaseException] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self) -> tuple[Answers, list[Epoch]]:
        """The answers at the end, and what was committed in which order.

        Raises:
            AssertionError: a call hangs, or a row is lost or taken twice.
        """
        random = Random(self.seed)
        with database(self.storage) as db:
            db.start()
            actors = [Pusher(db, self, f"p{number}") for number in range(2)]
            calls = {
                "first": actors[0].push,
                "second": actors[1].push,
                "changer": Changer(db, self, Random(random.random())).change,
                "stopper": Stopper(db).turn,
            }
            turns = random.choices(list(calls), weights=(4, 4, 3, 2), k=24)
            self._in_turns(calls, turns)
            if not db.running:
                db.start()
            for actor in actors:
                actor.finish()
            db.push("s", LAST)
            epochs = committed(db, self.rows)
            late: list[int] = [json.loads(row)["v"] for row in db.dead_letters()["row"].to_pylist()]
            db.stop()
            taken: list[int] = [row["v"] for epoch in epochs for row in epoch.rows]
            assert sorted([*taken, *late]) == sorted([*self.rows, -1]), "each row once"
            return answers_of(db), epochs

    def _in_turns(self, calls: dict[str, Callable[[], None]], turns: list[str]) -> None:
        """Begin the calls in order, each in its thread; nobody waits for a call to return but its thread."""
        turnstile = Turnstile(turns)

        def work(name: str) -> None:
            try:
                for _ in range(turns.count(name)):
                    turnstile.wait_for(name)
                    calls[name]()
            except BaseException as error:
                self._errors.append(error)
                turnstile.open()

        threads = [threading.Thread(target=work, args=(name,), name=name, daemon=True) for name in calls]
        with switching_often():
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(PATIENCE)
        if self._errors:
            raise self._errors[0]
        hanging = [thread.name for thread in threads if thread.is_alive()]
        assert not hanging, f"hangs with seed {self.seed}: {hanging}"

    def new_row(self) -> dict[str, Any]:
        """A row that no other call pushes, somewhat newer than the last one."""
        with self._lock:
            v = len(self.rows)
            self.rows[v] = {"k": "abc"[v % 3], "v": v, "ts": 10 * v + self.seed % 7}
            return self.rows[v]


class Turnstile:
    """Lets callers pass in a given order."""

    def __init__(self, turns: list[str]) -> None:
        self._turns = list(reversed(turns))
        self._changed = threading.Condition()

    def wait_for(self, name: str) -> None:
        """Wait for the next turn of a caller, and take it."""
        with self._changed:
            passed = self._changed.wait_for(
                lambda: not self._turns or self._turns[-1] == name, timeout=PATIENCE
            )
            assert passed, f"{name} has waited too long for its turn"
            if self._turns:
                self._turns.pop()
            self._changed.notify_all()

    def open(self) -> None:
        """Let everyone pass."""
        with self._changed:
            self._turns.clear()
            self._changed.notify_all()


@dataclass
class Pusher:
    """A producer that repeats what was not acknowledged, and its last push as if that had not been."""

    db: hr.Database
    plan: Interleaving
    name: str
    _open: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    _pushed: int = 0
    _last: tuple[int, dict[str, Any]] | None = None

    def push(self) -> None:
        """Push one or two new rows, behind those that are open."""
        for _ in range(1 + self._pushed % 2):
            self._pushed += 1
            self._open.append((self._pushed, self.plan.new_row()))
        self._push_open()

    def _push_open(self) -> bool:
        futures = []
        repeated = [self._last] if self._last is not None else []
        try:
            for sequence, row in (*repeated, *self._open):
                futures.append(self.db.push("s", row, producer=self.name, sequence=sequence, wait=False))
            for future in futures:
                assert not isinstance(future, bool)
                future.result(PATIENCE)
        except UserError as error:
            if not any(part in error.message for part in ("not started", "stopped")):
                raise
            return False
        self._last = self._open[-1] if self._open else self._last
        self._open.clear()
        return True

    def finish(self) -> None:
        """Push what is open; the database runs."""
        assert self._push_open()


@dataclass
class Changer:
    """Adds queries and drops those that it has added."""

    db: hr.Database
    plan: Interleaving
    random: Random
    _mine: list[str] = field(default_factory=list)
    _made: int = 0

    def change(self) -> None:
        """One change; it may be refused by a database that is being stopped."""
        try:
            if self._mine and self.random.random() < 0.4:
                name = self.random.choice(self._mine)
                self.db.drop(name)
                self._mine.remove(name)
            else:
                self._made += 1
                name = f"q{self._made}"
                self.plan.texts[name] = self.random.choice(TEXTS)
                self.db.query(self.plan.texts[name], name=name)
                self._mine.append(name)
        except UserError as error:
            if "the database was stopped" not in error.message:
                raise


@dataclass
class Stopper:
    """Stops the database and starts it again, by turns."""

    db: hr.Database

    def turn(self) -> None:
        if self.db.running:
            self.db.stop()
        else:
            self.db.start()


def one_after_another(texts: dict[str, str], epochs: list[Epoch], storage: Path) -> Answers:
    """The answers to the calls of one thread, in the order in which they were committed."""
    with database(storage) as db:
        db.start()
        for epoch in epochs:
            for name in epoch.dropped:
                db.drop(name)
            for name in epoch.added:
                db.query(texts[name], name=name)
            if epoch.rows:
                db.push("s", list(epoch.rows))
        db.stop()
        return answers_of(db)


def database(storage: Path) -> hr.Database:
    """One that answers `every`."""
    db = hr.connect(runner="inline", storage=storage)
    db.execute(STREAM)
    db.query(EVERY, name="every")
    return db


def answers_of(db: hr.Database) -> Answers:
    """The histories of all queries."""
    return {query.name: query.history().to_pylist() for query in db.queries}


def committed(db: hr.Database, rows: dict[int, dict[str, Any]]) -> list[Epoch]:
    """What each epoch committed, by the query `every` and by which queries it has heartbeats of."""
    every = reader_of(db, db.queries[0])
    found: list[Epoch] = []
    before = {"every"}
    for part in every.epochs:
        now = set(map(first_name, part.heartbeats))
        values = [
            v
            for batch in written(every.query, every.store, part)[0]
            for v in batch.payload.column(0).to_pylist()
        ]
        found.append(
            Epoch(
                tuple(LAST if v == LAST["v"] else rows[v] for v in values),
                tuple(sorted(now - before)),
                tuple(sorted(before - now)),
            )
        )
        before = now
    return found


@contextmanager
def switching_often() -> Iterator[None]:
    """Let the interpreter change threads a hundred times as often as it does."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(before / 100)
    try:
        yield
    finally:
        sys.setswitchinterval(before)
