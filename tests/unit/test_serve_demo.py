"""`make serve-demo`, as somebody runs it: start, look, stop with Ctrl-C."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import headrace as hr

ROOT = Path(__file__).parents[2]


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    words = [sys.executable, str(ROOT / "scripts" / "serve_demo.py"), "--port", "0", "--rate", "500"]
    started = subprocess.Popen(
        [*words, "--storage", str(tmp_path / "store")],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield started
    finally:
        started.kill()
        started.communicate()


def test_the_demo_answers_and_stops_with_its_server(demo: subprocess.Popen[str], tmp_path: Path) -> None:
    assert demo.stdout is not None
    line = demo.stdout.readline()
    assert line.startswith("serving http://127.0.0.1:")
    client = hr.Client(line.split()[1].rstrip(","), timeout=60)
    assert [one.name for one in client.queries] == ["pace", "highest", "hottest", "busy"]
    with client.subscribe("hottest") as changes:
        for change in changes:
            assert change.rows.column_names == [
                "epoch",
                "auction",
                "bids",
                "valid_from",
                "valid_to",
                "change",
            ]
            most = client.history("hottest")
            # The first second is not a whole one, and may have few bids.
            if most.num_rows >= 5:
                break
    assert min(most["bids"].to_pylist()) >= 1
    demo.send_signal(signal.SIGINT)
    assert demo.wait(60) == 0
    with pytest.raises(hr.UserError, match="cannot be reached"):
        client.status()
    # What was committed is there, and nobody holds the store.
    kept = hr.open(tmp_path / "store")["hottest"].history()
    assert kept.num_rows >= most.num_rows
