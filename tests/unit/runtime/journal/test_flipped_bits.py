"""No bit of a store's small files changes unnoticed: all have checksums, and `verify` names the file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import headrace as hr
from headrace.errors import StoreError
from headrace.runtime.journal.inspect import verify
from headrace.runtime.store.sealed import seal, unseal
from how_many import how_many

ROWS = pa.table({"k": ["a", "b", "a"] * 4, "v": range(12), "ts": range(12)})
SMALL = ("store.json", "commits/000000000001.json", "commits/000000000003.json", "sinks/q%231-notes.json")


def run(storage: Path) -> list[int]:
    """Run to the end; the epochs that a sink got."""
    seen: list[int] = []
    with hr.connect(runner="inline", storage=storage, epoch_rows=3, buckets=3) as db:
        db.stream("s", ROWS, timestamp="ts")
        query = db.query("SELECT k, SUM(v) AS total FROM s [RANGE UNBOUNDED] GROUP BY k", name="q")
        query.deliver(lambda epoch, _heartbeat, _rows: seen.append(epoch), name="notes")
        db.run()
    return seen


@pytest.fixture
def storage(tmp_path: Path) -> Path:
    run(tmp_path / "store")
    return tmp_path / "store"


def flips(data: bytes) -> Iterator[bytes]:
    """The bytes with each of their bits changed."""
    number = int.from_bytes(data, "big")
    for bit in range(8 * len(data)):
        yield (number ^ (1 << bit)).to_bytes(len(data), "big")


@pytest.mark.parametrize("name", SMALL)
def test_no_bit_of_a_small_file_changes_unnoticed(name: str, storage: Path) -> None:
    data = (storage / name).read_bytes()
    content = unseal(data)
    assert seal(content) == data
    for damaged in flips(data):
        with pytest.raises(ValueError):
            unseal(damaged)
    for length in range(len(data)):
        with pytest.raises(ValueError):
            unseal(data[:length])


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("part", how_many([0.02, 0.6], [0.0, 0.02, 0.3, 0.6, 0.95, 0.999]))
def test_a_store_with_a_flipped_bit_is_refused_and_the_file_is_named(
    name: str, part: float, storage: Path
) -> None:
    whole = (storage / name).read_bytes()
    for bit in (0, 3, 7):
        damaged = bytearray(whole)
        damaged[int(len(whole) * part)] ^= 1 << bit
        (storage / name).write_bytes(damaged)
        with pytest.raises(StoreError, match=f"{name} is damaged"):
            run(storage)
        assert [problem.file for problem in verify(storage).problems][:1] == [name]
        assert str(verify(storage).problems[0]) == f"{name}: is damaged"
    (storage / name).write_bytes(whole)
    assert verify(storage).problems == ()
    assert run(storage) == []


def test_another_number_of_buckets_in_a_store_is_noticed(storage: Path) -> None:
    """One bit more made 3 of 1, and a key had two sums, as 10 and 50 instead of 60."""
    text = (storage / "store.json").read_bytes()
    assert b'"buckets":3' in text
    (storage / "store.json").write_bytes(text.replace(b'"buckets":3', b'"buckets":1'))
    with pytest.raises(StoreError, match=r"store\.json is damaged"):
        run(storage)
    assert str(verify(storage).problems[0]) == "store.json: is damaged"


def test_a_position_of_another_sink_is_refused(storage: Path) -> None:
    position = storage / "sinks/q%231-notes.json"
    position.write_bytes(seal(unseal(position.read_bytes()) | {"query": "other"}))
    with pytest.raises(StoreError, match="is that of another sink"):
        run(storage)


def test_a_record_under_the_name_of_another_one_is_refused(storage: Path) -> None:
    records = storage / "commits"
    (records / "000000000003.json").write_bytes((records / "000000000002.json").read_bytes())
    with pytest.raises(StoreError, match="is not one of ours: it is that of epoch 2"):
        run(storage)
    assert str(verify(storage).problems[0]) == (
        "commits/000000000003.json: is not one of ours: it is that of epoch 2"
    )


def test_what_is_no_record_in_its_folder_is_left_alone(storage: Path) -> None:
    for name in ("notes.txt", "000000000002.json.bak", "999"):
        (storage / "commits" / name).write_text("mine")
    assert run(storage) == []
    assert verify(storage).problems == ()
    assert (storage / "commits/notes.txt").exists()
