"""The numbers of a producer belong to the name of the key that sends them."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest

import headrace as hr
from headrace.errors import UserError
from headrace.server.keys import KeyFile, Role
from unit.server.serving_for_tests import running

TEXT = """CREATE STREAM r (ts BIGINT, v BIGINT) FROM push TIMESTAMP BY ts;
CREATE QUERY q AS SELECT v FROM r [NOW]"""
LINES = {"Content-Type": "application/x-ndjson"}


def test_no_key_reaches_the_numbers_of_another_one(tmp_path: Path) -> None:
    file = KeyFile(tmp_path / "keys.json")
    admin = file.add("admin", Role.ADMIN)
    ann, bob = file.add("ann", Role.WRITE), file.add("bob", Role.WRITE)

    def push(url: str, key: str, value: int, sequence: int) -> dict[str, object]:
        answer = httpx.post(
            f"{url}/streams/r/rows?producer=pi&sequence={sequence}",
            content=f'{{"ts": {value}, "v": {value}}}',
            headers={**LINES, "Authorization": f"Bearer {key}"},
            timeout=60,
        )
        found: dict[str, object] = answer.json()
        return found

    with running(tmp_path) as url:
        sent = {"Authorization": f"Bearer {admin}"}
        httpx.post(f"{url}/statements", json={"text": TEXT}, headers=sent, timeout=60).raise_for_status()
        assert push(url, ann, 1, 1)["committed"]
        assert "repeat" not in push(url, bob, 2, 2**63 - 1)
        assert "repeat" not in push(url, ann, 3, 2)
        assert push(url, ann, 3, 2)["repeat"]
        file.drop("ann")
        exchanged = file.add("ann", Role.WRITE)
        assert push(url, exchanged, 3, 2)["repeat"]
        assert "repeat" not in push(url, exchanged, 4, 3)
        assert push(url, ann, 5, 4)["error"]["kind"] == "unauthorized"  # type: ignore[index]
        assert "64 bits" in str(push(url, bob, 6, 10**26))
    with running(tmp_path) as url:
        assert push(url, exchanged, 4, 3)["repeat"]
        history = httpx.get(
            f"{url}/queries/q/changes", headers={"Authorization": f"Bearer {bob}"}, timeout=60
        )
        assert sorted(row["v"] for row in map(json.loads, history.text.splitlines())) == [1, 2, 3]


def test_a_number_that_leaves_out_many_is_noted(caplog: pytest.LogCaptureFixture) -> None:
    with hr.connect(runner="inline") as db:
        db.execute(TEXT)
        db.start()
        db.push("r", {"ts": 1, "v": 1}, producer="pi", sequence=1)
        db.push("r", {"ts": 2, "v": 1}, producer="pi", sequence=10**9)
        assert "producer pi" not in caplog.text
        db.push("r", {"ts": 3, "v": 1}, producer="pi", sequence=10**16)
        assert "producer pi went from the sequence 1,000,000,000 to 10,000,000,000,000,000" in caplog.text
        with pytest.raises(UserError, match="more than 64 bits"):
            db.push("r", {"ts": 4, "v": 1}, producer="pi", sequence=2**63)
