"""No statement whatever ends in an error that is not ours, up to its plans and what carries them out."""

from __future__ import annotations

import warnings
from pathlib import Path
from random import Random

import pytest

from how_many import how_many
from mutated_statements import Trier, mutated, seeds

TEXTS = seeds()
AT_ONCE = 150


@pytest.mark.runs
@pytest.mark.parametrize("first", range(0, how_many(4, 40) * AT_ONCE, AT_ONCE))
def test_mutated_statements(first: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Paths in them are below an empty folder.
    monkeypatch.chdir(tmp_path)
    trier = Trier()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(first, first + AT_ONCE):
            text = mutated(Random(seed), TEXTS)
            fault = trier.fault(text)
            assert fault is None, (seed, text)
    trier.close()
