"""A run that its environment ends begins again, and who sends rows meanwhile is told to send them again."""

from __future__ import annotations

import errno
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from headrace.runtime.outside.patience import patient
from headrace.runtime.store.segments import FolderStore
from unit.server.serving_for_tests import running
from waiting import wait_for

TEXT = """CREATE STREAM s (ts BIGINT, v BIGINT) FROM push TIMESTAMP BY ts;
CREATE QUERY q AS SELECT COUNT(*) AS n FROM s [RANGE UNBOUNDED]"""


class Disk:
    """A disk on which no record can be written while it is ill."""

    def __init__(self) -> None:
        self.ill = False
        self.whole = FolderStore.put_if_absent

    def put_if_absent(self, store: FolderStore, name: str, data: bytes) -> bool:
        if self.ill:
            raise OSError(errno.EMFILE, "Too many open files")
        return self.whole(store, name, data)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    disk = Disk()
    monkeypatch.setattr(FolderStore, "put_if_absent", lambda *given: disk.put_if_absent(*given))
    with patient(pause=0.05, longest=0.2):
        yield disk


@pytest.fixture
def client(tmp_path: Path, disk: Disk) -> Iterator[httpx.Client]:
    with running(tmp_path) as url, httpx.Client(base_url=url, timeout=60) as client:
        assert client.post("/statements", json={"text": TEXT}).status_code == 200
        yield client


def pushed(client: httpx.Client, ts: int) -> httpx.Response:
    return client.post("/streams/s/rows", json={"ts": ts, "v": 1}, params={"producer": "p", "sequence": ts})


def state(client: httpx.Client) -> tuple[int, Any]:
    answer = client.get("/readyz")
    return answer.status_code, answer.json()["status"]


def test_a_run_goes_on_when_its_disk_is_well_again(client: httpx.Client, disk: Disk) -> None:
    """Nothing acknowledged is lost, nothing that was sent again counts twice."""
    assert pushed(client, 1).json()["committed"]
    assert state(client) == (200, "running")
    disk.ill = True
    answer = pushed(client, 2)
    assert answer.status_code == 503, answer.text
    assert answer.headers["Retry-After"] == "1"
    wait_for(lambda: state(client)[0] == 503)
    for _ in range(3):
        answer = pushed(client, 2)
        assert answer.status_code == 503, answer.text
    disk.ill = False
    wait_for(lambda: state(client) == (200, "running"), lambda: state(client))
    for ts in (2, 2, 3):
        assert pushed(client, ts).status_code == 200
    rows = client.get("/queries/q/snapshot", params={"at": 2}).text
    assert rows.strip() == '{"n":2}'


def test_rows_that_do_not_fit_are_the_clients_fault_meanwhile_too(client: httpx.Client, disk: Disk) -> None:
    disk.ill = True
    pushed(client, 1)
    answer = client.post("/streams/s/rows", json={"ts": "no time", "v": 1})
    assert answer.status_code == 400
    assert client.post("/streams/other/rows", json={"ts": 1}).status_code == 404
    disk.ill = False


def test_a_server_stops_while_its_run_cannot_begin(tmp_path: Path, disk: Disk) -> None:
    with running(tmp_path) as url, httpx.Client(base_url=url, timeout=60) as client:
        assert client.post("/statements", json={"text": TEXT}).status_code == 200
        disk.ill = True
        pushed(client, 1)
        wait_for(lambda: state(client)[0] == 503)
    assert not [one for one in threading.enumerate() if "headrace run" in one.name]
