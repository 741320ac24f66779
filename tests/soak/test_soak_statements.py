"""A hundred thousand statements with pieces that were changed, drawn anew every time."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from random import Random

import pytest

from mutated_statements import Trier, mutated, seeds

STATEMENTS = 100_000


def test_mutated_statements(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    first, texts, trier = int.from_bytes(os.urandom(4), "big"), seeds(), Trier()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(first, first + STATEMENTS):
            text = mutated(Random(seed), texts)
            assert trier.fault(text) is None, (seed, text)
    trier.close()
