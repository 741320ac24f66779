"""An answer cut to some rows, with the events that go on after it; and the words that fit in a text."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from headrace.server.keys import KeyFile, Role
from unit.server.serving_for_tests import running

TEXT = """CREATE STREAM r (ts BIGINT, v BIGINT) FROM push TIMESTAMP BY ts;
CREATE STREAM d AS SELECT v AS half FROM r [RANGE 3];
CREATE STREAM other (ts BIGINT, secret_column BIGINT) FROM push TIMESTAMP BY ts;
CREATE QUERY q AS SELECT v FROM r [RANGE 3]; CREATE QUERY unread AS SELECT secret_column FROM other [NOW]"""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[httpx.Client, httpx.Client]]:
    """A client that may everything, and one that sees `r` and `q` alone."""
    folder = tmp_path_factory.mktemp("recent")
    file = KeyFile(folder / "keys.json")
    keys = file.add("ann", Role.ADMIN), file.add("only", Role.WRITE, ("r", "q"))
    with running(folder) as url:
        made = [
            httpx.Client(base_url=url, headers={"Authorization": f"Bearer {key}"}, timeout=60) for key in keys
        ]
        assert made[0].post("/statements", json={"text": TEXT}).status_code == 200
        yield made[0], made[1]
        for client in made:
            client.close()


def send(client: httpx.Client, *instants: int) -> None:
    lines = "".join(json.dumps({"ts": ts, "v": ts * 10}) + "\n" for ts in instants)
    sent = {"Content-Type": "application/x-ndjson"}
    assert client.post("/streams/r/rows", content=lines, headers=sent).status_code == 200


def rows_of(client: httpx.Client, path: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in client.get(path).text.splitlines()]


def test_what_is_recent_is_the_answer_and_the_end_of_the_history(
    served: tuple[httpx.Client, httpx.Client],
) -> None:
    client, _ = served
    empty = client.get("/queries/unread/recent?past=5").json()
    assert empty["rows"] == empty["past"] == []
    assert empty["note"]
    send(client, *range(8))
    found = client.get("/queries/q/recent?rows=2&past=3").json()
    now = rows_of(client, "/queries/q/snapshot")
    assert found["rows"] == now[:2]
    assert found["total"] == len(now) == 3
    assert client.get("/queries/q/recent").json()["past"] == []
    # The events go on where the past ends: with it, they are the history as far as that is final.
    whole = client.get("/queries/q/recent?past=100").json()
    assert found["past"] == whole["past"][-3:]
    send(client, 8, 9)
    with client.stream("GET", f"/queries/q/events?since={whole['id']}") as events:
        data = next(line for line in events.iter_lines() if line.startswith("data: "))
    gained = json.loads(data.removeprefix("data: "))["rows"]
    history = contents(rows_of(client, "/queries/q/history"))
    final = max(at for _, at in history)
    known = contents([*whole["past"], *gained])
    assert Counter({point: times for point, times in known.items() if point[1] <= final}) == history


def test_the_past_of_events_is_the_newest_of_them(served: tuple[httpx.Client, httpx.Client]) -> None:
    client, only = served
    made = {"text": "CREATE QUERY big AS SELECT v FROM r WHERE v > 150"}
    assert client.post("/statements", json=made).is_success
    send(client, *range(14, 20))
    assert client.get("/queries/big").json()["events"] is True
    found = client.get("/queries/big/recent?past=2").json()
    assert found["past"] == [{"v": at * 10, "valid_from": at, "valid_to": at + 1} for at in (17, 18)]
    assert rows_of(client, "/queries/big/tail?rows=2") == [{"v": 170, "ts": 17}, {"v": 180, "ts": 18}]
    assert rows_of(client, "/queries/q/tail?rows=1")[0].keys() == {"v", "valid_from", "valid_to"}
    assert only.get("/queries/big/tail").status_code in (403, 404)
    assert len(rows_of(client, f"/queries/big/tail?rows={10**30}")) == 3
    assert len(rows_of(client, f"/queries/q/tail?rows={10**30}")) > 3
    assert client.get("/queries/big/tail?rows=-1").status_code in (400, 422)
    assert client.delete("/queries/big").is_success


def contents(rows: list[dict[str, Any]]) -> Counter[tuple[int, int]]:
    """How often each value is there at each instant: a row may come in several pieces."""
    found: Counter[tuple[int, int]] = Counter()
    for row in rows:
        for at in range(row["valid_from"], row["valid_to"]):
            found[row["v"], at] += row.get("change", 1)
    return +found


@pytest.mark.parametrize("asked", ["rows=-1", "past=100000", "rows=x"])
def test_more_rows_than_there_may_be_are_refused(
    served: tuple[httpx.Client, httpx.Client], asked: str
) -> None:
    assert served[0].get(f"/queries/q/recent?{asked}").status_code in (400, 422)


def test_words_fit_the_place_and_name_only_what_somebody_may_see(
    served: tuple[httpx.Client, httpx.Client],
) -> None:
    every, only = served

    def offered(client: httpx.Client, text: str) -> tuple[int, dict[str, str]]:
        answer = client.post("/completions", json={"text": text, "at": len(text)}).json()
        return answer["start"], {one["text"]: one["what"] for one in answer["candidates"]}

    start, found = offered(every, "SELECT 'ä😀', v FROM o")
    assert (start, found) == (20, {"other": "stream"})
    assert offered(every, "SELECT 1 FROM d WHERE ha")[1]["half"] == "column"
    assert offered(only, "SELECT 1 FROM o")[1] == {}
    assert "secret_column" in offered(every, "SELECT secret")[1]
    assert offered(only, "SELECT secret")[1] == {}
    assert offered(only, "WHY ")[1] == {"q": "query"}


@pytest.mark.parametrize(
    "body", [{"text": "S"}, {"text": "S", "at": 2}, {"text": "S", "at": True}, {"at": 0}]
)
def test_a_place_outside_of_the_text_is_refused(
    served: tuple[httpx.Client, httpx.Client], body: dict[str, Any]
) -> None:
    answer = served[0].post("/completions", json=body)
    assert answer.status_code == 400
    assert answer.json()["error"]["kind"] == "request"
