"""Sinks as a resource: listed, shown as far as the key allows, and dropped by administrators."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

import headrace as hr
from headrace.server.keys import KeyFile, Role
from unit.server.serving_for_tests import running

BEGIN = """
CREATE STREAM r (ts BIGINT, v BIGINT) FROM push TIMESTAMP BY ts;
CREATE QUERY q AS SELECT v FROM r; CREATE QUERY hidden AS SELECT v FROM r;
"""
LINES = {"Content-Type": "application/x-ndjson"}


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """A server whose operator has defined two sinks, one of them for a query that not all may see."""
    with hr.connect(runner="inline", storage=tmp_path / "store") as db:
        db.execute(BEGIN)
        for query in ("q", "hidden"):
            db.execute(f"CREATE SINK of_{query} FOR {query} TO json OPTIONS (path '{tmp_path}/{query}')")
        db.start()
    with running(tmp_path) as found:
        yield found


def test_a_server_with_a_sink_that_fails_stops_as_it_should(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADRACE_SECRET_PLACE", "http://127.0.0.1:1/sesame")
    monkeypatch.setenv("HEADRACE_SECRET_KEY", "Bearer sesame")
    with hr.connect(runner="inline", storage=tmp_path / "store") as db:
        db.execute(BEGIN)
        options = "url SECRET 'place', authorization SECRET 'key', pause 60"
        db.execute(f"CREATE SINK lost FOR q TO webhook OPTIONS ({options})")
        db.start()
    with running(tmp_path) as url, httpx.Client(base_url=url, timeout=60) as one:
        rows = '{"ts": 1, "v": 1}\n{"ts": 2, "v": 1}'
        assert one.post("/streams/r/rows", content=rows, headers=LINES).status_code == 200
        assert one.get("/readyz").status_code == 200
        shown = [one.get(path).text for path in ("/sinks", "/sinks/lost", "/catalog", "/status", "/metrics")]
        text = "SHOW SINKS; SHOW CREATE SINK lost; DESCRIBE SINK lost; EXPLAIN SELECT v FROM r"
        shown.append(one.post("/statements", json={"text": text}).text)
    assert "it was given up after" in caplog.text
    assert "Application shutdown failed" not in caplog.text
    assert sum("SECRET 'place'" in text for text in shown) >= 4
    assert [text for text in (*shown, caplog.text) if "sesame" in text] == []


def client(url: str, key: str) -> httpx.Client:
    return httpx.Client(base_url=url, headers={"Authorization": f"Bearer {key}"}, timeout=60)


def test_sinks_are_listed_shown_and_dropped(url: str, tmp_path: Path) -> None:
    keys = KeyFile(tmp_path / "keys.json")
    admin, only = (keys.add(name, role, names) for name, role, names in (
        ("a", Role.ADMIN, None), ("only", Role.WRITE, ("r", "q")),
    ))  # fmt: skip
    with client(url, admin) as one, client(url, only) as other:
        rows = '{"ts": 1, "v": 1}\n{"ts": 2, "v": 1}'
        assert one.post("/streams/r/rows", content=rows, headers=LINES).status_code == 200
        assert [sink["name"] for sink in one.get("/sinks").json()["sinks"]] == ["of_q", "of_hidden"]
        found = one.get("/sinks/OF_q").json()
        assert (found["query"], found["kind"], found["place"]) == ("q", "json", f"{tmp_path}/q")
        assert found["epoch"] + found["behind"] == one.get("/status").json()["epoch"]
        (seen,) = other.get("/sinks").json()["sinks"]
        assert (seen["name"], seen["place"]) == ("of_q", "")
        assert other.get("/sinks/of_hidden").status_code == 404
        assert other.delete("/sinks/of_q").status_code == 403
        text = f"CREATE SINK mine FOR q TO json OPTIONS (path '{tmp_path}/mine')"
        assert one.post("/statements", json={"text": text}).status_code == 403, "not even an administrator"
        assert one.post("/statements", json={"text": "SHOW SINKS"}).json()["results"][0]["text"].count("of_")
        offered = one.post("/completions", json={"text": "DROP SINK ", "at": 10}).json()["candidates"]
        assert {candidate["text"] for candidate in offered} == {"of_q", "of_hidden", "IF EXISTS"}
        refused = one.delete("/queries/q")
        assert (refused.status_code, "the sink of_q" in refused.text) == (400, True)
        assert one.delete("/queries/q", params={"cascade": True}).status_code == 200
        assert one.delete("/sinks/of_hidden").status_code == 200
        assert one.delete("/sinks/of_hidden").status_code == 404
        assert one.get("/sinks").json() == {"sinks": []}
    assert len([*(tmp_path / "q").glob("*.jsonl")]) == 1
