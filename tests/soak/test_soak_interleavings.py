"""A thousand orders of pushes, changes, stops and starts, drawn anew every time."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from interleaving import Interleaving, one_after_another

ORDERS = 1_000


def test_calls_of_many_threads_answer_as_in_the_order_of_their_commits(tmp_path: Path) -> None:
    first = int.from_bytes(os.urandom(4), "big")
    for seed in range(first, first + ORDERS):
        run = Interleaving(seed, tmp_path / "together")
        answers, epochs = run.run()
        assert answers == one_after_another(run.texts, epochs, tmp_path / "apart"), f"seed {seed}"
        shutil.rmtree(tmp_path / "together")
        shutil.rmtree(tmp_path / "apart")
