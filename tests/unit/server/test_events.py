"""Changes as server-sent events: nothing is lost or comes twice, wherever a client is cut off."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

import headrace as hr
from headrace.server.events import ClientPlace, place_of
from headrace.server.limits import RequestLimits
from headrace.server.tails import Tails
from unit.server.serving_for_tests import running
from unit.server.sse_for_tests import Received, read_events

LINES = {"Content-Type": "application/x-ndjson"}
TEXT = (
    "CREATE STREAM r (ts BIGINT, v BIGINT) FROM push TIMESTAMP BY ts; CREATE QUERY q AS SELECT v FROM r [NOW]"
)
EVENTS = "/queries/q/events"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    limits = RequestLimits(part_rows=1, heartbeat=0.05, subscribers=50)
    with (
        running(tmp_path_factory.mktemp("events"), limits, retain_epochs=5) as url,
        httpx.Client(base_url=url, timeout=120) as made,
    ):
        assert made.post("/statements", json={"text": TEXT}).status_code == 200
        yield made


def push(client: httpx.Client, *instants: int) -> None:
    rows = "\n".join(json.dumps({"ts": ts, "v": ts}) for ts in instants)
    assert client.post("/streams/r/rows", content=rows, headers=LINES).json()["committed"]


def last_event_has_come(body: bytes) -> bool:
    """Whether the last row of the second epoch has come, and its event is complete."""
    return b'"v":4' in body and body.endswith(b"\n\n")


@pytest.mark.slow("cuts at each byte")
def test_a_client_that_is_cut_at_any_byte_of_an_epoch_continues(client: httpx.Client) -> None:
    push(client, 1)
    push(client, 2, 3, 4, 5)
    url = str(client.base_url)
    whole = read_events(url, EVENTS, last_event_has_come)
    expected = Received()
    expected.take(whole)
    assert [row["v"] for row in expected.rows] == [1, 2, 3, 4]
    ids = [line.decode() for line in whole.splitlines() if line.startswith(b"id: 1.2.")]
    assert ids == ["id: 1.2.1", "id: 1.2.2", "id: 1.2.3", "id: 1.2.4.end"]
    with httpx.stream("GET", url + EVENTS + "?since=now", timeout=60) as watching:
        assert watching.status_code == 200
        for cut in range(whole.index(b"id: 1.2.1"), len(whole) + 1):
            got = Received()
            got.take(read_events(url, EVENTS, lambda body: False, most=cut))
            if len(got.rows) < len(expected.rows):
                rest = read_events(url, EVENTS, last_event_has_come, got.last_id)
                got.take(rest)
            assert got.rows == expected.rows, cut


def test_epochs_without_changes_move_the_id_on_and_quiet_times_have_comments(client: httpx.Client) -> None:
    push(client, 10)
    push(client, 10)
    url = str(client.base_url)
    body = read_events(url, EVENTS + "?since=now", lambda body: body.count(b": waiting") >= 2)
    assert b"event:" not in body
    everything = Received()
    everything.take(read_events(url, EVENTS, lambda body: b".0.end\n\n" in body))
    assert (everything.last_id or "").endswith(".0.end")


def test_what_is_no_longer_kept_or_was_replaced_is_410_with_where_to_start(client: httpx.Client) -> None:
    for ts in range(20, 30):
        push(client, ts)
    gone = client.get(EVENTS, headers={"Last-Event-ID": "1.2.1"})
    assert gone.status_code == 410
    assert gone.json()["error"]["kind"] == "gone"
    begin = gone.json()["start_from"]
    history = client.get(begin["history"])
    assert history.status_code == client.get(begin["snapshot"]).status_code == 200
    push(client, 30)
    more = Received()
    more.take(
        read_events(str(client.base_url), EVENTS, lambda body: b'"v":29' in body, begin["id"]) + b"\n\n"
    )
    known = [json.loads(line)["v"] for line in history.text.splitlines()]
    assert [*known, *(row["v"] for row in more.rows)][-3:] == [27, 28, 29]
    assert client.get(EVENTS).status_code == 410
    assert client.get(EVENTS, headers={"Last-Event-ID": "9.9.9"}).status_code == 410
    assert client.get(EVENTS, headers={"Last-Event-ID": "1.999.0"}).status_code == 410
    assert client.get(EVENTS, headers={"Last-Event-ID": "x"}).status_code == 400
    assert place_of("4.17.812.end") == ClientPlace(4, 17, 812, True)
    assert str(ClientPlace(4, 17, 5, False)) == "4.17.5"


def test_who_does_not_read_holds_up_nobody_and_too_many_are_refused(client: httpx.Client) -> None:
    parts = urlsplit(str(client.base_url))
    stalled = [socket.create_connection((parts.hostname or "", parts.port or 0)) for _ in range(50)]
    try:
        for one in stalled:
            one.sendall(f"GET {EVENTS}?since=now HTTP/1.1\r\nHost: {parts.netloc}\r\n\r\n".encode())
            assert one.recv(12) == b"HTTP/1.1 200"
        refused = client.get(EVENTS + "?since=now")
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "5")
        for ts in range(100, 110):
            push(client, ts)
        assert "headrace_subscribers 50.0" in client.get("/metrics").text
    finally:
        for one in stalled:
            one.close()


def test_a_query_that_is_dropped_ends_its_events_and_its_next_one_has_other_ids(client: httpx.Client) -> None:
    client.post("/statements", json={"text": "CREATE QUERY d AS SELECT v + 1 AS v FROM r"})
    push(client, 200)
    path = "/queries/d/events"
    with httpx.stream("GET", str(client.base_url) + path, timeout=60) as stream:
        parts = stream.iter_raw()
        body = next(parts)
        client.delete("/queries/d")
        body += b"".join(parts)
    got = Received()
    got.take(body)
    assert got.names == ["end"]
    client.post("/statements", json={"text": "CREATE QUERY d AS SELECT v + 2 AS v FROM r"})
    push(client, 201)
    assert client.get(path, headers={"Last-Event-ID": got.last_id or ""}).status_code == 410


def test_status_is_another_stream(client: httpx.Client) -> None:
    body = read_events(str(client.base_url), "/status/events", lambda body: body.endswith(b"}\n\n"))
    status = json.loads(body.partition(b"data: ")[2])
    assert status["running"] is True
    assert [stream["name"] for stream in status["streams"]] == ["r"]


def test_the_path_of_a_store_is_not_shown(client: httpx.Client, tmp_path: Path) -> None:
    assert str(tmp_path.parent) not in client.get("/status").text


def test_who_begins_now_has_an_id_before_the_first_change(client: httpx.Client) -> None:
    """A client that is cut off between its first request and the first epoch lacks nothing of that epoch."""
    push(client, 300)
    url, got = str(client.base_url), Received()
    got.take(read_events(url, EVENTS + "?since=now", lambda body: body.endswith(b"\n\n")))
    assert (got.rows, got.last_id is None) == ([], False)
    push(client, 301)
    push(client, 302)
    got.take(read_events(url, EVENTS + "?since=now", lambda body: b'"v":301' in body, got.last_id) + b"\n\n")
    assert [row["v"] for row in got.rows] == [300, 301]


def test_a_client_holds_one_event_at_least_and_a_chunk_at_most() -> None:
    """What somebody holds who does not read does not grow with how far behind they are."""
    with hr.connect(runner="inline") as db:
        db.execute(TEXT)
        db.start()
        db.push("r", [{"ts": ts, "v": ts} for ts in range(50_000)])

        async def sizes() -> list[int]:
            kept = db.served.kept(db["q"])
            begin = ClientPlace(kept.start, kept.start - 1, 0, True)
            sent = Tails(db, RequestLimits()).events(db["q"], kept, begin)
            found, rows = list[int](), 0
            async for data in sent:
                found.append(len(data))
                rows += data.count(b'"v":')
                if rows == 49_999:
                    await sent.aclose()  # type: ignore[attr-defined]
            return found

        found = asyncio.run(sizes())
    assert len(found) > 20
    assert max(found) < 256 * 2**10


def test_who_comes_while_the_last_other_client_leaves_is_not_let_go() -> None:
    with hr.connect(runner="inline") as db:
        db.execute(TEXT)
        db.start()
        db.push("r", [{"ts": 1, "v": 1}, {"ts": 2, "v": 2}])

        async def second() -> list[bytes]:
            kept, tails = db.served.kept(db["q"]), Tails(db, RequestLimits())
            begin = ClientPlace(kept.start, kept.start - 1, 0, True)
            one, two = (tails.events(db["q"], kept, begin) for _ in range(2))
            for events in (one, two, one):
                await anext(events)
            await one.aclose()  # type: ignore[attr-defined]
            found = [await anext(two)]
            await two.aclose()  # type: ignore[attr-defined]
            return found

        (found,) = asyncio.run(second())
    assert b"event: changes" in found


def test_many_who_do_not_read_hold_up_no_epoch_and_take_no_memory(tmp_path: Path) -> None:
    text = TEXT.replace("v BIGINT", "v STRING").replace("SELECT v", "SELECT ts, v")
    with running(tmp_path) as url, httpx.Client(base_url=url, timeout=60) as client, ExitStack() as stack:
        assert client.post("/statements", json={"text": text}).status_code == 200
        parts = urlsplit(url)
        for _ in range(200):
            one = stack.enter_context(socket.socket())
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            one.connect((parts.hostname or "", parts.port or 0))
            one.sendall(f"GET {EVENTS}?since=now HTTP/1.1\r\nHost: {parts.netloc}\r\n\r\n".encode())
            assert one.recv(12) == b"HTTP/1.1 200"
        before = resident()
        for epoch in range(30):
            rows = [json.dumps({"ts": epoch, "v": f"{row:04}" * 500}) for row in range(100)]
            answer = client.post("/streams/r/rows", content="\n".join(rows), headers=LINES)
            assert answer.json()["committed"]
        # Six megabytes for each of them would be 1,200 in all.
        assert resident() - before < 300 * 2**20
        assert "headrace_subscribers 200.0" in client.get("/metrics").text


def resident() -> int:
    """The bytes of memory that this process has."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
