"""The crash loop of `tests/crashing.py`, 200 kills: at every fault point and at random moments."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import crashing

KILLS = 200
COUNTS = "1,2,3,5,8"


def test_two_hundred_kills() -> None:
    seed = int.from_bytes(os.urandom(4), "big")
    # A job may end before its killer strikes; enough are given that 200 do.
    options = ["--counts", COUNTS, "--random", "260", "--longest", "1.0", "--seed", str(seed)]
    command = [sys.executable, crashing.__file__, *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"seed {seed}: {done.stderr}"
    found = json.loads(done.stdout)
    kills: dict[str, int] = {}
    for job in found["killed"]:
        assert job["answers"] == found["plain"]["answers"], f"seed {seed}"
        assert job["damage"] == job["strays"] == [], f"seed {seed}"
        for point, count in job["kills"].items():
            kills[point] = kills.get(point, 0) + count
    print(f"seed {seed}: {sum(kills.values())} kills, {len(found['killed'])} jobs finished: {kills}")
    assert sum(kills.values()) >= KILLS
