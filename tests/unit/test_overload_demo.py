"""The demo of an overload: it runs to its end, says what bounds were worth, and draws its picture."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow("sends rows for some seconds, more than can be answered")
def test_the_demo_runs_and_draws(tmp_path: Path) -> None:
    picture = tmp_path / "overload.svg"
    words = [sys.executable, str(ROOT / "scripts" / "overload_demo.py"), "--seconds", "6"]
    done = subprocess.run(
        [*words, "--picture", str(picture)], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"the run answers about [0-9,]+ rows a second; 3 times as many will come", done.stdout)
    held = re.search(r"bounds of the trend hold in (\d+) of (\d+) windows", done.stdout)
    assert held is not None, done.stdout
    # Windows that were answered as they came have bounds that are the sum itself.
    assert int(held[2]) > 10
    assert int(held[1]) >= int(held[2]) / 2
    assert picture.read_text().startswith("<svg")
