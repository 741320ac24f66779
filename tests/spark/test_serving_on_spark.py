"""A server whose queries run on Spark: rows in, changes out, and a kill in between."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from headrace.server.limits import RequestLimits
from unit.server.killing_for_tests import check_a_kill
from unit.server.serving_for_tests import running
from unit.server.sse_for_tests import Received, read_events

pytestmark = pytest.mark.spark

LINES = {"Content-Type": "application/x-ndjson"}
TEXT = """CREATE STREAM r (ts BIGINT, k STRING, v BIGINT) FROM push TIMESTAMP BY ts;
CREATE QUERY total AS SELECT k, SUM(v) AS v FROM r [RANGE 10] GROUP BY k"""


def test_rows_are_answered_and_their_changes_sent(spark: Any, tmp_path: Path) -> None:
    with (
        running(tmp_path, RequestLimits(part_rows=1), runner="spark") as url,
        httpx.Client(base_url=url, timeout=300) as client,
    ):
        assert client.post("/statements", json={"text": TEXT}).status_code == 200
        answers = []
        for ts in (1, 3, 2, 5):
            row = json.dumps({"ts": ts, "k": "a", "v": ts})
            answer = client.post("/streams/r/rows", content=row, headers=LINES).json()
            answers.append((answer["committed"], [one["reason"] for one in answer["dead_letters"]]))
        assert [committed for committed, _ in answers] == [True] * 4
        assert [len(letters) for _, letters in answers] == [0, 0, 1, 0], "the third row is late"
        known = read_events(
            url, "/queries/total/events", lambda body: b'"v":4' in body and body.endswith(b"\n\n")
        )
        rows = Received()
        rows.take(known)
        assert [(row["v"], row["valid_from"], row["valid_to"]) for row in rows.rows] == [(1, 1, 3), (4, 3, 5)]
        history = [json.loads(line) for line in client.get("/queries/total/history").text.splitlines()]
        assert [(row["v"], row["valid_from"], row["valid_to"]) for row in history] == [(1, 1, 3), (4, 3, 5)]


@pytest.mark.kills
def test_a_kill_between_commit_and_send_on_spark(tmp_path: Path) -> None:
    check_a_kill(tmp_path, "spark")
