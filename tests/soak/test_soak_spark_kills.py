"""Kills on Spark: of the whole driver, of its JVM, of its workers, until the job is done.

`HEADRACE_KILLS` says how many; a job that is done before is followed by another one.
"""

from __future__ import annotations

import json
import os
import random
import select
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import crashing
from headrace.runtime.journal.inspect import verify

pytestmark = pytest.mark.spark

KILLS = int(os.environ.get("HEADRACE_KILLS", "60"))
FILES = 8
PUSHES = 40
LONGEST = 4.0
"""Seconds between two kills of an attempt, at most."""
STARTING = 0.35
"""The share of attempts that are killed while they start, before they have committed anything."""


class Attempt:
    """One start of a job, in a process group of its own."""

    def __init__(self, folder: Path, files: Path) -> None:
        self._commits = folder / "store" / "commits"
        self._before = self._committed()
        self._said = (folder / "said").open("w+")
        options = ["--pushes", str(PUSHES), "--epoch-rows", "1000"]
        self.process = subprocess.Popen(
            [sys.executable, crashing.__file__, "--attempt", str(folder), "--files", str(files), *options],
            stdout=self._said,
            stderr=self._said,
            start_new_session=True,
        )
        self._handle = os.pidfd_open(self.process.pid)

    def ends_within(self, seconds: float) -> bool:
        return bool(select.select([self._handle], [], [], seconds)[0])

    def has_begun(self) -> bool:
        """Wait for the first commit of this attempt; False if it ended before."""
        for _ in range(int(crashing.PATIENCE * 20)):
            if self.ends_within(0.1):
                return False
            if self._committed() > self._before:
                return True
        raise AssertionError(f"an attempt hung: {self.said()}")

    def kill(self, victim: str) -> bool:
        """Kill the driver with all its processes, the JVM, or a worker; False if there is none."""
        if victim == "driver":
            os.killpg(self.process.pid, signal.SIGKILL)
            return True
        found = [
            pid for pid, depth in descendants(self.process.pid) if depth == (1 if victim == "jvm" else 3)
        ]
        if not found:
            return False
        try:
            os.kill(random.choice(found), signal.SIGKILL)
        except ProcessLookupError:
            return False
        return True

    def end(self) -> int:
        """Wait for the end; the exit code."""
        assert self.ends_within(crashing.PATIENCE * 3), f"an attempt hung: {self.said()}"
        os.close(self._handle)
        code = self.process.wait()
        self._text = self.said()
        self._said.close()
        return code

    def said(self) -> str:
        """What it has printed."""
        if self._said.closed:
            return self._text
        self._said.seek(0)
        return self._said.read()

    def _committed(self) -> int:
        return max((int(path.stem) for path in self._commits.glob("[0-9]*")), default=0)


def descendants(pid: int, depth: int = 1) -> Iterator[tuple[int, int]]:
    """The processes below one: the JVM at depth 1, the daemon at 2, its workers at 3."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return
    # A thread of the JVM starts the daemon, so the children of all threads count.
    for thread in Path(f"/proc/{pid}/task").glob("*"):
        if thread.name != str(pid):
            try:
                children += (thread / "children").read_text().split()
            except OSError:
                continue
    for child in map(int, children):
        yield child, depth
        yield from descendants(child, depth + 1)


def disturbed(attempt: Attempt, dice: random.Random, kills: Counter[str]) -> int | None:
    """Let an attempt run and kill some of it; its exit code where nothing ended it but itself."""
    if dice.random() < STARTING:
        if not attempt.ends_within(dice.uniform(0.0, 2 * LONGEST)):
            kills["starting"] += attempt.kill("driver")
            attempt.end()
            return None
    elif attempt.has_begun():
        while not attempt.ends_within(dice.uniform(0.0, LONGEST)):
            victim = dice.choice(["driver", "jvm", "worker", "worker", "worker"])
            killed = attempt.kill(victim)
            kills[victim] += killed
            if killed and victim != "worker":
                attempt.end()
                return None
    return attempt.end()


def test_kills_on_spark(tmp_path: Path) -> None:
    seed = int.from_bytes(os.urandom(4), "big")
    dice, kills = random.Random(seed), Counter[str]()
    files = tmp_path / "files"
    crashing.write_files(files, FILES)
    (tmp_path / "plain").mkdir()
    plain = Attempt(tmp_path / "plain", files)
    assert plain.end() == 0, plain.said()
    expected = json.loads((tmp_path / "plain" / "answers.json").read_text())
    jobs = attempts = 0
    while kills.total() < KILLS:
        jobs += 1
        folder = tmp_path / f"job{jobs}"
        folder.mkdir()
        while not (folder / "answers.json").exists():
            attempts += 1
            attempt = Attempt(folder, files)
            code = disturbed(attempt, dice, kills) if kills.total() < KILLS else attempt.end()
            assert code in (0, None), f"seed {seed}, attempt {attempts}: {attempt.said()}"
            print(f"attempt {attempts}, job {jobs}: {dict(kills)}", flush=True)
        assert json.loads((folder / "answers.json").read_text()) == expected, f"seed {seed}"
        assert verify(folder / "store").problems == (), f"seed {seed}"
        assert crashing.strays(folder / "store") == [], f"seed {seed}"
    print(f"seed {seed}: {kills.total()} kills {dict(kills)}, {attempts} attempts, {jobs} jobs done")
