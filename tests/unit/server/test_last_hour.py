"""The numbers of the last hour: rates between samples, so many as are kept, of what somebody may see."""

from __future__ import annotations

import sys
import time
from array import array
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import httpx
import pytest

from headrace.server import hour
from headrace.server.hour import SAMPLES, PastRates, SampledHour, by_name
from headrace.server.keys import KeyFile, Role
from headrace.time import TimeDomain
from unit.server.serving_for_tests import running


def status(rows: int, changes: int, epoch: int = 0, lag: int | None = None, streams: int = 1) -> Any:
    """The parts of a status that are looked at."""
    query = SimpleNamespace(name="q", changes=changes, lag=lag, domain=TimeDomain.TIMESTAMP)
    integers = SimpleNamespace(name="i", changes=0, lag=10**12, domain=TimeDomain.INTEGER)
    return SimpleNamespace(
        epoch=epoch,
        operators=[SimpleNamespace(seconds=0.5 * epoch)],
        streams=[SimpleNamespace(name=f"s{one}", rows=rows) for one in range(streams)]
        + [SimpleNamespace(name="headrace.epochs", rows=10**9 * rows)],
        queries=[query, integers],
    )


def taken(*found: Any) -> SampledHour:
    """An hour of these statuses, ten seconds apart."""
    left, clock = list(found), count(0, 10)
    kept = SampledHour(lambda: left.pop(0), lambda: next(clock))
    for _ in found:
        kept.take()
    return kept


def test_rates_are_those_between_two_samples() -> None:
    kept = taken(status(100, 7), status(150, 7, 4, lag=2_500_000), None, status(400, 9, 9), status(30, 19, 9))
    # The first of a run has nothing before it; what began anew counts from there.
    assert [one.rows for one in kept.samples] == [5.0, 3.0]
    assert [one.lag for one in kept.samples] == [2.5, None]
    assert [one.epoch for one in kept.samples] == [0.5, None]
    assert by_name([one.queries for one in kept.samples], lambda name: name != "i") == {"q": [0.0, 1.0]}
    assert by_name([one.streams for one in kept.samples], lambda _: True) == {"s0": [5.0, 3.0]}
    assert all(one.memory and one.memory > 10**7 for one in kept.samples)


def test_a_name_has_no_number_where_it_was_not_there() -> None:
    samples = [PastRates(("a",), array("f", [1])), PastRates(("b", "a"), array("f", [2, 3]))]
    assert by_name(samples, lambda _: True) == {"b": [None, 2.0], "a": [1.0, 3.0]}
    assert by_name([], lambda _: True) == {}


def test_an_hour_of_many_names_is_small() -> None:
    kept = taken(*(status(one, one, one, streams=1_000) for one in range(SAMPLES + 50)))
    samples = kept.samples
    assert len(samples) == SAMPLES
    assert samples[-1].streams.names is samples[0].streams.names
    assert sum(map(sys.getsizeof, (one.streams.rates for one in samples))) < 500_000


def test_a_key_sees_the_rates_of_its_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hour, "SECONDS", 0.05)
    file = KeyFile(tmp_path / "keys.json")
    keys = file.add("ann", Role.ADMIN), file.add("only", Role.READ, ("r", "q"))
    text = """CREATE STREAM r (ts BIGINT, v BIGINT) FROM push TIMESTAMP BY ts;
    CREATE STREAM other (ts BIGINT, v BIGINT) FROM push TIMESTAMP BY ts;
    CREATE QUERY q AS SELECT v FROM r; CREATE QUERY unseen AS SELECT v FROM other"""
    with running(tmp_path) as url:
        every, only = (
            httpx.Client(base_url=url, headers={"Authorization": f"Bearer {key}"}, timeout=60) for key in keys
        )
        with every, only:
            assert every.post("/statements", json={"text": text}).is_success
            found, until = every.get("/status/hour").json(), time.monotonic() + 60
            while not found["queries"] and time.monotonic() < until:
                found = every.get("/status/hour").json()
            assert found["queries"].keys() == {"q", "unseen"}
            assert found["streams"].keys() == {"r", "other"}
            assert len(found["rows"]) == len(found["at"]) == len(found["queries"]["q"])
            seen = only.get("/status/hour").json()
            assert (seen["queries"].keys(), seen["streams"].keys()) == ({"q"}, {"r"})
            assert seen["rows"] == seen["memory"] == seen["epoch"] == seen["lag"] == []
            schema = every.get("/openapi.json").json()
            described = schema["paths"]["/status/hour"]["get"]["responses"]["200"]["content"]
            assert described["application/json"]["schema"]["$ref"].endswith("/LastHour")
            assert schema["components"]["schemas"]["LastHour"]["properties"].keys() == found.keys()


def test_a_sample_that_fails_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = list[int]()

    def status() -> None:
        calls.append(1)
        raise RuntimeError("nobody has foreseen this")

    async def some() -> None:
        with anyio.move_on_after(1):
            await SampledHour(status).keep_sampling()

    monkeypatch.setattr("headrace.server.hour.SECONDS", 0.01)
    anyio.run(some)
    assert len(calls) > 2
