"""`headrace store`, and `headrace run --storage`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from headrace.cli import app

QUERIES = """CREATE STREAM bid FROM nexmark OPTIONS (events=2000, seed=3, rate=10) TIMESTAMP BY ts;
CREATE QUERY sums AS SELECT auction, COUNT(*) AS n FROM bid [RANGE UNBOUNDED] GROUP BY auction;
CREATE QUERY part AS SELECT 1 / (price % 7) AS x FROM bid;
"""


def headrace(*arguments: object) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    return done.exit_code, done.stdout, done.stderr


@pytest.fixture
def storage(tmp_path: Path) -> Path:
    (tmp_path / "q.sql").write_text(QUERIES)
    code, _, said = run(tmp_path)
    assert code == 0, said
    return tmp_path / "store"


def run(folder: Path) -> tuple[int, str, str]:
    return headrace(
        "run", folder / "q.sql", "--runner", "inline", "--storage", folder / "store", "--epoch-rows", "500"
    )


def test_run_with_storage_goes_on(storage: Path) -> None:
    before = sorted(storage.rglob("*"))
    code, shown, said = run(storage.parent)
    assert code == 0
    assert "4 epochs" in said
    assert "-- sums" in shown
    assert sorted(storage.rglob("*")) == before


def test_a_text_drops_what_it_has_not_only_where_that_is_asked(storage: Path) -> None:
    file = storage.parent / "q.sql"
    file.write_text("\n".join(QUERIES.splitlines()[:2]))
    for option, queries in (("--no-progress", ["sums", "part"]), ("--sync", ["sums"])):
        code, _, said = headrace("run", file, "--runner", "inline", "--storage", storage, option)
        assert code == 0, said
        shown = headrace("store", storage, "--catalog")[1]
        assert re.findall("CREATE QUERY ([a-z]+)", shown) == queries
    code, _, said = headrace("run", file, "--sync")
    assert (code, "--sync is for --storage" in said) == (2, True)


def test_the_catalog_of_a_store_makes_another_one(storage: Path, tmp_path: Path) -> None:
    catalog, other = headrace("store", storage, "--catalog")[1], tmp_path / "other"
    (tmp_path / "catalog.sql").write_text(catalog)
    code, _, said = headrace("run", tmp_path / "catalog.sql", "--runner", "inline", "--storage", other)
    assert code == 0, said
    assert headrace("store", other, "--catalog")[1] == catalog
    answers = [headrace("store", one, "--query", "sums", "--format", "csv") for one in (storage, other)]
    assert answers[0] == answers[1]


def test_store_shows_what_there_is(storage: Path) -> None:
    code, shown, said = headrace("store", storage)
    assert (code, said) == (0, "")
    lines = [re.sub(r"  +", " | ", line) for line in shown.splitlines()]
    assert re.fullmatch(r"layout 9, \d+ buckets?, 4 epochs committed", lines[0])
    assert [line.split(" | ")[:2] for line in lines[1:5]] == [
        ["defined", "name"],
        ["stream", "bid"],
        ["query", "sums"],
        ["query", "part"],
    ]
    del lines[1:5]
    assert lines[1:3] == ["stream | position | heartbeat | producers", "bid | 2,000 | ended"]
    assert lines[3] == "state of operator | buckets | rows | size"
    assert re.fullmatch(r"[0-9a-f]{16} \| \d+ \| [\d,]+ \| [\d.]+ k?B", lines[4])
    assert lines[5] == "results of query | elements | files | size | final below"
    assert re.fullmatch(r"part \| 1,\d\d\d \| \d+ \| [\d.]+ kB \| ended", lines[6])
    assert re.fullmatch(r"sums \| [\d,]+ \| \d+ \| [\d.]+ kB \| ended", lines[7])
    assert re.fullmatch(r"\d+ dead letters", lines[8])


@pytest.mark.parametrize("options", [("--as", "changes"), ("--at", "5"), ("--output", "x.csv")])
def test_options_of_an_answer_need_a_query(storage: Path, options: tuple[str, str]) -> None:
    status, _, said = headrace("store", storage, *options)
    assert (status, "are for --query" in said) == (2, True)


def test_a_folder_that_is_not_there_is_refused_by_that(tmp_path: Path) -> None:
    status, _, said = headrace("store", tmp_path / "none")
    assert (status, said) == (
        2,
        f"headrace: there is no folder {tmp_path}/none\nhint: name the folder of --storage\n",
    )


def test_a_copy_says_as_of_which_epoch_it_is(storage: Path, tmp_path: Path) -> None:
    code, said, _ = headrace("store", storage, "--copy", tmp_path / "copy")
    assert code == 0
    assert re.fullmatch(r".*copy is a copy as of epoch \d+: \d+ files, .*, \d+ of them linked\n", said)
    assert headrace("store", tmp_path / "copy") == headrace("store", storage)
    assert headrace("store", tmp_path / "copy", "--verify")[0] == 0
    for options, says in (
        (("--copy", tmp_path / "copy"), "is not empty"),
        (("--copy", tmp_path / "other", "--as-of", "1"), "cannot be copied as of epoch 1"),
        (("--copy", tmp_path / "other", "--as-of", "today"), "is not the number of an epoch"),
    ):
        code, _, said = headrace("store", storage, *options)
        assert code == 2
        assert says in said
    code, _, said = headrace("store", "--url", "http://localhost:1", "--copy", tmp_path / "other")
    assert (code, "copied where it lies" in said) == (2, True)


def test_verify_tells_that_a_store_is_whole(storage: Path) -> None:
    code, shown, said = headrace("store", storage, "--verify")
    assert (code, said) == (0, "")
    assert re.fullmatch(r"whole: \d+ files, [\d.]+ kB\n", shown)


def test_verify_names_what_is_damaged_or_missing(storage: Path) -> None:
    first, second, third = sorted((storage / "results").iterdir())[:3]
    first.unlink()
    content = bytearray(second.read_bytes())
    content[100] ^= 1
    second.write_bytes(content)
    third.write_bytes(third.read_bytes()[:10])
    code, shown, said = headrace("store", storage, "--verify")
    assert code == 2
    assert f"results/{first.name}: is missing\n" in shown
    assert f"results/{second.name}: is damaged" in shown
    assert f"results/{third.name}: is truncated: it has 10 bytes" in shown
    assert said.startswith("3 problems in ")


@pytest.mark.parametrize("option", [[], ["--verify"]])
def test_what_is_no_store_is_refused(tmp_path: Path, option: list[str]) -> None:
    (tmp_path / "file").write_text("x")
    assert f"{tmp_path}/file is not a folder" in headrace("store", tmp_path / "file", *option)[2]
    code, _, said = headrace("store", tmp_path, *option)
    assert code == 2
    assert f"{tmp_path} is not a Headrace store" in said
