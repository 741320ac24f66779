"""`make kafka-demo`, as somebody runs it: bids in one topic, answers in the other, and Ctrl-C."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kafka_broker import kafka_broker

SCRIPT = Path(__file__).parents[2] / "scripts" / "kafka_demo.py"


@pytest.mark.slow("starts a broker and a demo as a user would")
def test_the_demo_shows_both_topics_and_stops(tmp_path: Path) -> None:
    with kafka_broker(tmp_path):
        pass  # Skipped where there is no broker.
    words = [sys.executable, str(SCRIPT), "--rate", "500"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, start_new_session=True) as demo:
        try:
            assert demo.stdout is not None
            lines = iter(demo.stdout.readline, "")
            next(line for line in lines if line.startswith("bids:") and line.strip() != "bids: 0 messages")
            bid = json.loads(next(lines))
            assert bid["price"] > 0
            next(line for line in lines if line.startswith("dearest:") and not line.startswith("dearest: 0"))
            answer = json.loads(next(lines))
            assert answer["bids"] >= 1
            demo.send_signal(signal.SIGINT)
            assert [*lines][-1] == "stopped\n"
            assert demo.wait(60) == 0
        finally:
            demo.kill()
