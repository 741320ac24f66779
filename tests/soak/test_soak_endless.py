"""An endless run of 10,000 epochs: memory and the number of files stay flat."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from headrace.runtime.journal.records import CHECKPOINT_EVERY
from soak import endless

EPOCHS = 10_000


def test_memory_and_files_stay_flat(tmp_path: Path) -> None:
    command = [sys.executable, endless.__file__, str(tmp_path / "store"), str(EPOCHS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    samples = [json.loads(line) for line in done.stdout.splitlines()]
    print("\n".join(map(str, samples)))
    assert samples[-1]["epochs"] >= EPOCHS
    # Records back to a checkpoint, results of the epochs that are kept, and the runs of state.
    assert max(sample["files"] for sample in samples) <= CHECKPOINT_EVERY + 3 * endless.RETAIN + 20
    late = samples[len(samples) // 2 :]
    grown = late[-1]["resident_mb"] - late[0]["resident_mb"]
    assert grown <= 10, f"{grown} MB more after the second half of the epochs than before it"
