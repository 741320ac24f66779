"""Names and places: no name, record or crafted store makes or removes anything outside the store."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace as hr
from headrace.errors import StoreError
from headrace.runtime.journal.inspect import contents, verify
from headrace.runtime.store.paths import file_name, inside, make_inside, readable_file_name, refuse_links
from headrace.runtime.store.sealed import seal, unseal

HOSTILE = (
    "..",
    ".",
    "../outside",
    "../../outside",
    "a/b",
    "/",
    "x" * 300,
    "ü" * 150,
    "CON",
    ".hidden",
    "-rf",
    "~",
    "%2E%2E",
    "a\nb",
    "*",
)


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder beside the store, with something in it that must stay."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "letter.txt").write_text("dear reader")
    (folder / "offsets").mkdir()
    return folder


def tree(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


# --- names -----------------------------------------------------------------------------------------------


@given(st.lists(st.text(max_size=90), min_size=2, max_size=2, unique=True))
def test_two_names_never_share_a_file_whatever_its_case_and_accents(names: list[str]) -> None:
    files = [file_name(name) for name in names]
    assert files[0].lower() != files[1].lower()
    assert all(file.isascii() and len(file) <= 66 for file in files)
    assert all(inside("/store", f"sinks/{file}-{file}.json").parent == Path("/store/sinks") for file in files)
    assert len({readable_file_name(name) for name in names}) == 2


@pytest.mark.parametrize("name", [*HOSTILE, "", "\0", "\ud800", "x" * 65, "ü" * 22])
def test_a_hostile_name_is_a_plain_file(name: str, tmp_path: Path) -> None:
    for found in (file_name(name), f"{readable_file_name(name)}.csv"):
        (tmp_path / found).write_text("")
        assert found in os.listdir(tmp_path)
    assert file_name(name)[0] != "."


def test_a_plain_name_stays_as_it_is() -> None:
    assert file_name("bid_2") == "bid_2"
    assert file_name("Bid") == "%42id"
    assert readable_file_name("Größe der Straße") == "Größe der Straße"
    assert readable_file_name("a/b.c") == "a%2Fb.c"


@pytest.mark.parametrize(
    "name", ["..", ".", "", "a/../b", "/etc/passwd", "a//b", "a/", ".draft", "a\0", "x" * 201]
)
def test_a_name_that_leads_out_of_a_store_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="has no place for a file"):
        inside(tmp_path, name)


def test_a_symbolic_link_is_refused_wherever_it_is(tmp_path: Path, outside: Path) -> None:
    store = make_inside(tmp_path / "store", "streams").parent
    (store / "streams/s").symlink_to(outside)
    for name in ("streams/s", "streams/s/letter.txt"):
        with pytest.raises(StoreError, match="is a symbolic link"):
            inside(store, name)
    with pytest.raises(StoreError, match="is a symbolic link"):
        refuse_links(store)
    refuse_links(outside)


# --- streams and queries of any name ---------------------------------------------------------------------


@pytest.mark.parametrize("name", [*HOSTILE, "{outside}"])
def test_a_stream_of_any_name_is_pushed_into_and_dropped_and_nothing_else_changes(
    name: str, tmp_path: Path, outside: Path
) -> None:
    name = name.format(outside=outside)
    store = tmp_path / "a/b/store"
    with hr.connect(runner="inline", storage=store) as db:
        db.execute(f"CREATE STREAM `{name}` (x BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts")
        db.execute("CREATE STREAM other (x BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts")
        seen: list[int] = []
        query = db.query(f"SELECT x FROM `{name}`", name=name + "q")
        query.deliver(lambda epoch, _heartbeat, _rows: seen.append(epoch))
        db.query("SELECT x FROM other", name="o")
        db.start()
        assert db.push(name, {"x": 1, "ts": 1}) is True
        assert db.push(name, {"x": 2, "ts": 2}) is True
        assert query.history()["x"].to_pylist() == [1]
        folder = store / "streams" / file_name(name)
        assert folder.is_dir()
        db.execute(f"DROP QUERY `{name}q`; DROP STREAM `{name}`;")
        assert not folder.exists()
        assert seen == [1, 2]
        assert db.push("other", {"x": 1, "ts": 1}) is True
        db.stop()
    assert verify(store).problems == ()
    assert tree(outside) == {"letter.txt", "offsets"}
    assert {path.name for path in tmp_path.iterdir()} == {"a", "outside"}
    assert {path.name for path in tmp_path.joinpath("a").rglob("*")} - tree(store) == {"b", "store"} | {
        path.name for path in store.rglob("*") if path.parent != store
    }
    with hr.connect(runner="inline", storage=store) as db:
        db.execute("CREATE STREAM other (x BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts")
        query = db.query("SELECT x FROM other", name="o")
        db.start()
        assert query.history().num_rows == 0
        db.stop()


def test_what_is_left_of_a_dropped_stream_goes_and_links_stay(tmp_path: Path, outside: Path) -> None:
    """The run was killed between the drop's commit and the removal of the stream's folder."""
    store = tmp_path / "store"
    pushed(store)
    (store / "streams/gone/checkpoint").mkdir(parents=True)
    (store / "streams/link").symlink_to(outside)
    pushed(store)
    assert set(os.listdir(store / "streams")) == {"s", "link"}
    assert tree(outside) == {"letter.txt", "offsets"}


# --- crafted stores --------------------------------------------------------------------------------------


def pushed(store: Path, rows: int = 1) -> None:
    """Open a store, and push into it."""
    with hr.connect(runner="inline", storage=store) as db:
        db.execute("CREATE STREAM s (x BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts")
        db.query("SELECT x, COUNT(*) AS n FROM s [RANGE 5] GROUP BY x", name="q")
        db.start()
        for at in range(rows):
            db.push("s", {"x": 1, "ts": 9 * at})
        db.stop()


def segments(body: Any) -> Iterator[list[Any]]:
    """All places of a record that name a file."""
    if isinstance(body, list):
        if body and isinstance(body[0], str) and body[0].startswith(("segments/", "results/")):
            yield body
        for part in body:
            yield from segments(part)
    elif isinstance(body, dict):
        for part in body.values():
            yield from segments(part)


@pytest.mark.parametrize("where", ["segments", "results"])
@pytest.mark.parametrize(
    "crafted",
    ["../outside/letter.txt", "{outside}/letter.txt", "segments/../../outside/letter.txt", "store.json"],
)
def test_a_record_that_names_a_file_elsewhere_is_refused(
    where: str, crafted: str, tmp_path: Path, outside: Path
) -> None:
    """Its checksum is right: whoever can write to the store has made it."""
    store = tmp_path / "store"
    pushed(store, 3)
    records = ["commits/000000000001.json", "commits/000000000003.json"]
    bodies = {name: unseal((store / name).read_bytes()) for name in records}
    name = next(
        name for name, body in bodies.items() if any(place[0].startswith(where) for place in segments(body))
    )
    for place in segments(bodies[name]):
        if place[0].startswith(where):
            place[0] = crafted.format(outside=outside)
    (store / name).write_bytes(seal(bodies[name]))
    for use in (pushed, contents):
        with pytest.raises(StoreError, match=r"is not one of ours: .* is not a file of"):
            use(store)
    assert name in {problem.file for problem in verify(store).problems}
    assert tree(outside) == {"letter.txt", "offsets"}
    assert (store / "store.json").exists()


@pytest.mark.parametrize("folder", ["segments", "results", "commits", "streams", "streams/s", "sinks"])
def test_a_store_whose_folder_leads_elsewhere_is_refused(folder: str, tmp_path: Path, outside: Path) -> None:
    """With links followed, the sweep of strays would empty the folder, and pushes would write into it."""
    store = tmp_path / "store"
    pushed(store)
    place = store / folder
    if place.exists():
        place.rename(store / "moved")
    place.symlink_to(outside)
    with pytest.raises(StoreError, match="is a symbolic link"):
        pushed(store)
    assert tree(outside) == {"letter.txt", "offsets"}


def test_a_draft_that_is_a_link_is_not_written_through(tmp_path: Path, outside: Path) -> None:
    store = tmp_path / "store"
    store.mkdir()
    (store / f".store.json.{os.getpid()}").symlink_to(outside / "letter.txt")
    pushed(store)
    assert (outside / "letter.txt").read_text() == "dear reader"


@pytest.mark.parametrize(
    ("name", "content"), [("lock", "somebody's own"), ("letter.txt", "dear reader"), ("commits", "")]
)
def test_a_folder_of_somebody_else_is_refused_and_left_as_it_was(
    name: str, content: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(content)
    (tmp_path / ".profile.1").write_text("hidden")
    with pytest.raises(StoreError, match="is not empty and is not a Headrace store"):
        pushed(tmp_path)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        name: content,
        ".profile.1": "hidden",
    }


def test_hidden_files_that_were_there_before_the_store_stay(tmp_path: Path) -> None:
    (tmp_path / ".profile.1").write_text("hidden")
    pushed(tmp_path)
    pushed(tmp_path)
    assert (tmp_path / ".profile.1").read_text() == "hidden"


# --- who may read ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_nobody_but_its_owner_may_look_into_a_store(mask: int, tmp_path: Path) -> None:
    before = os.umask(mask)
    try:
        with hr.connect(runner="inline", storage=tmp_path / "further/store") as db:
            db.execute("CREATE STREAM s (x BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts")
            query = db.query("SELECT x, COUNT(*) AS n FROM s [RANGE 5] GROUP BY x", name="q")
            query.deliver(hr.FileSink(tmp_path / "out"))
            db.start()
            db.push("s", [{"x": 1, "ts": 0}, {"x": 2, "ts": 9}])
            db.push("s", {"x": 1, "ts": 19})
            db.stop()
    finally:
        os.umask(before)
    store = tmp_path / "further/store"
    assert mode(store) == 0o700
    found = {mode(path) for path in store.rglob("*") if path.is_dir()}
    assert found == {0o700}
    assert {mode(path) for path in store.rglob("*") if path.is_file()} == {0o600}
    # What a sink writes is the user's.
    assert {mode(path) for path in (tmp_path / "out").iterdir()} == {0o666 & ~mask}


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)
