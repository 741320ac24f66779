"""A day in the life: queries over a stream that keeps its rows come and go, are replaced and paused.

Whatever has happened to it, a query answers at the end as its definitions, each from the instant on from
which it holds. The run is killed in between, also in the middle of what is being done.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from property.a_day import MOST, Day

DEEDS = ("replace", "pause", "ask", "replace", "keep", "resume", "rename", "set", "resume", "replace")


def act(day: Day, deed: str) -> None:
    """Do something, where it can be done."""
    match deed:
        case "replace" if day.going:
            day.replace()
        case "rename":
            day.rename()
        case "pause" | "keep" if len(day.going) > 3:
            day.pause(" KEEPING INPUT" if deed == "keep" else "")
        case "resume" if day.paused:
            day.resume()
        case "set":
            day.cut(day.chance.randrange(1, 9))
        case "ask":
            day.ask()
        case _:
            return
    day.deeds[deed] += 1


def play(day: Day, queries: int, kills: int) -> None:
    """Let queries come and go until all rows have come, and see at the end that all answer as defined.

    Args:
        day: the database, with one query.
        queries: how many there are to be in all.
        kills: how often the run is killed.
    """
    killed = 0
    while day.made < queries or day.pushed < len(day.rows):
        day.push(day.chance.randrange(1, 5))
        while day.made < queries and day.made * len(day.rows) < day.pushed * queries:
            day.add()
            act(day, DEEDS[day.made % len(DEEDS)])
            while len(day.names) > MOST:
                day.drop()
            if killed * queries < day.made * kills:
                killed += 1
                day.kill()
    while day.paused:
        day.resume()
    day.db.heartbeat("bid", 2 * len(day.rows) + 40)
    for name in day.names:
        day.check(name)
    day.db.stop()
    day.db.close()


@pytest.mark.slow("a day of rows")
def test_every_query_answers_as_its_definition(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    day = Day(tmp_path, monkeypatch, 7, 60)
    play(day, 24, 4)
    assert day.deeds["replace"] >= 5, day.deeds


@pytest.mark.kills
def test_over_a_stream_that_keeps_some_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some queries are filled, others lack instants, which they name, and replacements wait for windows."""
    day = Day(tmp_path, monkeypatch, 200, 75, "30")
    play(day, 50, 8)
    assert day.deeds["replace"] >= 5, day.deeds


@pytest.mark.kills
def test_two_hundred_queries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    day = Day(tmp_path, monkeypatch, 11, 300)
    play(day, 200, 25)
    assert min(day.deeds[deed] for deed in DEEDS) >= 8, day.deeds
    assert len([deed for deed in day.deeds if deed.startswith("kill ")]) == 3, day.deeds
