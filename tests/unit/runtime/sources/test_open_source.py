"""Paths, options and the timestamp, which all formats treat alike."""

import os
from pathlib import Path

import pyarrow as pa
import pytest

from headrace.engine.inputs.inputs import origin_of
from headrace.errors import PolicyError, SourceError
from headrace.runtime.sources import SplitSource, open_source
from headrace.runtime.sources.files.files import list_files, overlaps
from headrace.schema import BIGINT, Field, Schema


def open_csv(base: Path, **options: str) -> SplitSource:
    return open_source("csv", options, None, "t", "s", base)


def test_a_folder_is_read_in_the_order_of_its_names(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    (folder / "sub").mkdir(parents=True)
    for name in ("b", "a10", "a9", ".hidden", "_SUCCESS", "B"):
        (folder / name).write_text("t\n1\n")
    labels = [label for _, label in list_files("in/", tmp_path, None)]
    assert labels == ["in/B", "in/a10", "in/a9", "in/b"]
    assert list_files(str(folder / "b"), Path("/elsewhere"), None) == ((folder / "b", str(folder / "b")),)


def test_paths_that_lead_nowhere(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=f"none.csv: no such file or folder .*{tmp_path}"):
        open_csv(tmp_path, path="none.csv")
    (tmp_path / "empty").mkdir()
    with pytest.raises(SourceError, match="empty: the folder holds no files"):
        open_csv(tmp_path, path="empty")
    with pytest.raises(SourceError, match="/dev/null: neither a file nor a folder"):
        open_csv(tmp_path, path="/dev/null")
    with pytest.raises(SourceError, match="the option path is missing"):
        open_csv(tmp_path)


def test_what_is_not_a_file_is_not_passed_over(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a").write_text("t\n1\n")
    (folder / "b").symlink_to("nowhere")
    with pytest.raises(SourceError, match="in: b is a link to nothing"):
        open_csv(tmp_path, path="in")
    (folder / "b").rename(folder / "_b")
    os.mkfifo(folder / "c")
    with pytest.raises(SourceError, match="in: c is not an ordinary file"):
        open_csv(tmp_path, path="in")
    (folder / "c").rename(folder / ".c")
    odd = Path(os.fsdecode(os.fsencode(folder) + b"/d\xff.csv"))
    odd.write_text("t\n1\n")
    with pytest.raises(SourceError, match=r"in: the name d\\xff.csv is not UTF-8"):
        open_csv(tmp_path, path="in")
    odd.unlink()
    assert open_csv(tmp_path, path="in").size == 4
    with pytest.raises(SourceError, match="too long"):
        open_csv(tmp_path, path="x" * 300)


def test_options_are_checked(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("t\n1\n")
    with pytest.raises(SourceError, match="csv has no option headers"):
        open_csv(tmp_path, path="f", headers="true")
    with pytest.raises(SourceError, match="the option header is 'yes'"):
        open_csv(tmp_path, path="f", header="yes")
    for form in ("parquet", "arrow", "json", "nexmark"):
        with pytest.raises(SourceError, match=f"the format {form} has no option zzz"):
            open_source(form, {"zzz": ""}, None, "t", "bid", tmp_path)
    with pytest.raises(SourceError, match="there is no format xml"):
        open_source("xml", {}, None, "t", "s", tmp_path)


def test_the_timestamp_must_be_a_column(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("t,name\n1,x\n")
    with pytest.raises(SourceError, match="no column tt to time the stream by"):
        open_source("csv", {"path": "f"}, None, "tt", "s", tmp_path)
    declared = Schema((Field("t", BIGINT),))
    assert open_source("csv", {"path": "f"}, declared, "T", "s", tmp_path).schema == declared


def test_overlaps() -> None:
    assert list(overlaps([3, 0, 2], 0, 5)) == [(0, 0, 3), (2, 0, 2)]
    assert list(overlaps([3, 0, 2], 2, 4)) == [(0, 2, 3), (2, 0, 1)]
    assert list(overlaps([3, 0, 2], 3, 3)) == []
    assert list(overlaps([3, 0, 2], 4, 99)) == [(2, 1, 2)]
    assert list(overlaps([], 0, 5)) == []


def test_errors_carry_nothing_of_arrow_alone(tmp_path: Path) -> None:
    (tmp_path / "f").mkdir()
    (tmp_path / "f" / "x").write_bytes(b"PAR1")
    with pytest.raises(SourceError) as caught:
        open_source("parquet", {"path": "f"}, None, "t", "s", tmp_path)
    assert isinstance(caught.value.__cause__, pa.ArrowException | OSError)
    assert caught.value.message.startswith("f/x: ")


def test_a_pattern_names_files_and_the_files_of_folders_in_order(tmp_path: Path) -> None:
    for name in ("d2/b.csv", "d2/a.csv", "d1/c.csv", "d1/_c.csv", "d1/c.txt", "e/a.csv", "_d/a.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("t\n1\n")

    def found(path: str) -> list[str]:
        return [label for _, label in list_files(path, tmp_path, None)]

    assert found("d*/*.csv") == ["d1/c.csv", "d2/a.csv", "d2/b.csv"]
    assert found("d?") == ["d1/c.csv", "d1/c.txt", "d2/a.csv", "d2/b.csv"]
    assert found("[!e]*/a.csv") == ["d2/a.csv"]
    assert found("_d/*") == ["_d/a.csv"]
    assert found(f"{tmp_path}/e/*") == [f"{tmp_path}/e/a.csv"]
    with pytest.raises(SourceError, match="no file or folder has such a name"):
        found("x*/*.csv")
    with pytest.raises(SourceError, match=r"write \*/ for each folder"):
        found("**/*.csv")
    (tmp_path / "d[12]").write_text("t\n1\n")
    assert found("d[12]") == ["d[12]"]
    (tmp_path / "d2" / "z.csv").symlink_to("nowhere")
    with pytest.raises(SourceError, match=r"d2/z\.csv: a link to nothing"):
        found("d2/*.csv")


def test_a_pattern_does_not_look_behind_links_that_lead_out(tmp_path: Path) -> None:
    allowed = tmp_path / "in"
    (allowed / "a").mkdir(parents=True)
    (allowed / "a" / "f.csv").write_text("t\n1\n")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "f.csv").write_text("t\n1\n")
    labels = [label for _, label in list_files("in/*/f.csv", tmp_path, (allowed,))]
    assert labels == ["in/a/f.csv"]
    for path in ("*/f.csv", "in/../o*/f.csv", "in/*/../../out/*", str(tmp_path / "o*")):
        with pytest.raises(PolicyError):
            list_files(path, tmp_path, (allowed,))
    (allowed / "b").symlink_to(tmp_path / "out")
    (allowed / "a" / "g.csv").symlink_to(tmp_path / "out" / "f.csv")
    for path in ("in/*/f.csv", "in/*/none.csv", "in/b*", "in/b/*", "in/a/g*"):
        with pytest.raises(PolicyError):
            list_files(path, tmp_path, (allowed,))


def test_the_home_folder_and_urls_of_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "a b.csv").write_text("t\n1\n")
    for path in ("~/a b.csv", f"file://{tmp_path}/a%20b.csv", f"file://localhost{tmp_path}/a b.csv"):
        assert open_csv(Path("/elsewhere"), path=path).paths == (tmp_path / "a b.csv",)
    assert open_csv(Path("/elsewhere"), path="~").paths == (tmp_path / "a b.csv",)
    assert origin_of("csv", {"path": "~/a.csv"}, Path("/x")) == f"csv path='{tmp_path}/a.csv'"
    with pytest.raises(SourceError, match="host is another machine"):
        open_csv(tmp_path, path="file://host/a.csv")
    with pytest.raises(PolicyError):
        list_files("~", tmp_path, (tmp_path / "in",))


def test_options_of_csv_as_spark_calls_them(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text("t;v\n1;none\n2;3\n")
    source = open_csv(tmp_path, path="f.csv", sep=";", nullvalue="none")
    rows = [row for read in source.read(0, source.size, ("t", "v")) for row in read.rows.to_pylist()]
    assert rows == [{"t": 1, "v": None}, {"t": 2, "v": 3}]
    with pytest.raises(SourceError, match="the option delimiter is given twice, also as sep"):
        open_csv(tmp_path, path="f.csv", sep=";", delimiter=",")


@pytest.mark.parametrize(("mark", "written"), [(";", ";"), ("\t", "\\t"), ("|", "|")])
@pytest.mark.parametrize("declared", [None, Schema((Field("t", BIGINT),))])
def test_another_delimiter_is_proposed_and_works(
    mark: str, written: str, declared: Schema | None, tmp_path: Path
) -> None:
    (tmp_path / "f.csv").write_text(f"t{mark}item\n1{mark}vase\n")
    with pytest.raises(SourceError) as raised:
        open_source("csv", {"path": "f.csv"}, declared, "t", "s", tmp_path)
    assert raised.value.hint == f"if {written} separates the columns, add the option delimiter '{written}'"
    source = open_source("csv", {"path": "f.csv", "delimiter": written}, declared, "t", "s", tmp_path)
    assert [read.rows["t"].to_pylist() for read in source.read(0, source.size, ("t",))] == [[1]]
