"""`headrace run`: what is printed where, what is written, and the exit codes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from headrace.cli import app

BIDS = "ts,auction,price\n1,7,10\n3,8,20\n4,7,15\n9,7,12\n"
STREAM = (
    "CREATE STREAM bid (ts BIGINT, auction BIGINT, price BIGINT)\n"
    "FROM csv OPTIONS (path 'bids.csv') TIMESTAMP BY ts;\n"
)
COUNTS = "SELECT auction, COUNT(*) AS n FROM bid WINDOW(RANGE 5) GROUP BY auction;\n"
PUSHED = "CREATE STREAM s (k STRING, ts BIGINT) FROM push TIMESTAMP BY ts; SELECT k FROM s;"
DEAR = "CREATE QUERY dear AS SELECT auction, price FROM bid WHERE price > 10;\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "bids.csv").write_text(BIDS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(text: str, *options: str) -> Result:
    Path("q.sql").write_text(text)
    return CliRunner().invoke(app, ["run", "q.sql", "--runner", "inline", *options])


def test_history_is_printed_and_the_summary_goes_to_standard_error(folder: Path) -> None:
    done = run(STREAM + COUNTS, "--format", "csv")
    assert done.exit_code == 0
    assert done.stdout.splitlines() == [
        "auction,n,valid_from,valid_to",
        "7,1,1,4",
        "8,1,3,8",
        "7,2,4,6",
        "7,1,6,14",
    ]
    assert done.stderr.startswith("4 rows in ")


def test_rows_that_hold_for_ever_have_no_end(folder: Path) -> None:
    done = run(STREAM + "SELECT auction FROM bid WINDOW(RANGE UNBOUNDED) WHERE price > 15;")
    assert [line.rstrip() for line in done.stdout.splitlines()[:3]] == [
        "auction  valid_from  valid_to",
        "-------  ----------  --------",
        "      8           3",
    ]


def test_ends_stand_below_their_heading(folder: Path) -> None:
    done = run(STREAM + DEAR, "--as", "changes")
    assert done.stdout.splitlines()[2] == "    1        8     20           3         4       1"


def test_changes_add_up_to_the_history(folder: Path) -> None:
    done = run(STREAM + COUNTS, "--as", "changes", "--format", "jsonl", "--epoch-rows", "1")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert {row["epoch"] for row in rows} > {rows[0]["epoch"]}
    assert {row["change"] for row in rows} == {1, -1}
    content = [0] * 20
    for row in rows:
        for instant in range(row["valid_from"], row["valid_to"] or 20):
            content[instant] += row["change"] * row["n"]
    assert content == [0, 1, 1, 2, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0]


def test_stream_shows_instants(folder: Path) -> None:
    done = run(STREAM + DEAR, "--as", "stream", "--format", "csv")
    assert done.stdout.splitlines() == ["auction,price,ts", "8,20,3", "7,15,4", "7,12,9"]


def test_several_queries_stand_under_their_names(folder: Path) -> None:
    done = run(STREAM + COUNTS + DEAR)
    assert [line for line in done.stdout.splitlines() if line.startswith("--") and line[3] != "-"] == [
        "-- query_1",
        "-- dear",
    ]


def test_head_cuts_each_answer_and_says_so(folder: Path) -> None:
    done = run(STREAM + DEAR, "--head", "1")
    assert done.stdout.splitlines()[2].split() == ["8", "20", "3", "4"]
    assert "... and 2 rows more" in done.stderr


def test_one_answer_becomes_a_file(folder: Path) -> None:
    done = run(STREAM + DEAR, "--format", "parquet", "--output", "dear.parquet")
    assert (done.exit_code, done.stdout) == (0, "")
    assert pq.read_table("dear.parquet").to_pydict() == {
        "auction": [8, 7, 7],
        "price": [20, 15, 12],
        "valid_from": [3, 4, 9],
        "valid_to": [4, 5, 10],
    }


@pytest.mark.parametrize(
    ("name", "options", "begins"),
    [
        ("o.parquet", [], b"PAR1"),
        ("o.jsonl", [], b'{"auction":8,'),
        ("o.CSV", [], b"auction,price,"),
        ("o.txt", [], b"auction  price  "),
        ("o", [], b"auction  price  "),
        ("o.dat", ["--format", "csv"], b"auction,price,"),
    ],
)
def test_the_format_follows_from_the_ending(
    folder: Path, name: str, options: list[str], begins: bytes
) -> None:
    assert run(STREAM + DEAR, "--output", name, *options).exit_code == 0
    assert Path(name).read_bytes().startswith(begins)


def test_a_query_in_place_of_a_file_is_told_where_it_goes(folder: Path) -> None:
    done = CliRunner().invoke(app, ["run", "SELECT 1"])
    assert (done.exit_code, done.stderr) == (
        2,
        "SELECT 1: there is no such file\nhint: for the text of a query write -e 'SELECT 1'\n",
    )


def test_several_answers_as_json_lines_name_their_query(folder: Path) -> None:
    done = run(STREAM + COUNTS + DEAR, "--format", "jsonl", "--head", "1")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(row["query"], row["valid_from"]) for row in rows] == [("query_1", 1), ("dear", 3)]


def test_a_file_may_begin_with_a_byte_order_mark(folder: Path) -> None:
    assert run("\ufeff" + STREAM + DEAR, "--format", "csv").exit_code == 0


@pytest.mark.parametrize("options", [["--strict"], ["--max-dead-letters", "1"]])
def test_a_strict_run_ends_at_dead_letters(folder: Path, options: list[str]) -> None:
    (folder / "bids.csv").write_text(BIDS + "x,7,1\n10,7,dear\n")
    done = run(STREAM + DEAR, *options, "--dead-letters", "dead.jsonl", "--output", "dear.csv")
    assert done.exit_code == 2
    assert done.stderr.startswith("q.sql: 2 rows could not take part, where ")
    assert "the first: bid: ts is not a valid BIGINT: 'x' (bids.csv:6)\nhint: " in done.stderr
    assert len(Path("dead.jsonl").read_text().splitlines()) == 2
    assert not Path("dear.csv").exists()
    assert run(STREAM + DEAR, "--max-dead-letters", "2", "--output", "dear.csv").exit_code == 0


@pytest.mark.parametrize(("share", "code"), [("40%", 0), ("39.5 %", 2), ("0%", 2), ("100%", 0)])
def test_a_share_of_dead_letters_ends_a_run_with_an_error_once_all_is_answered(
    folder: Path, share: str, code: int
) -> None:
    (folder / "bids.csv").write_text("\n".join(BIDS.splitlines()[:4]) + "\nx,7,1\n10,7,dear\n")
    done = run(STREAM + DEAR, "--max-dead-letters", share, "--output", "dear.csv")
    assert done.exit_code == code, done.stderr
    assert Path("dear.csv").exists()
    assert ("40.0% of the rows could not take part" in done.stderr) == (code == 2)
    assert "\nwarning: bid: 0 late rows, 2 rejected\n" in done.stderr


@pytest.mark.parametrize("value", ["x", "-1", "101%", "%", "1e3"])
def test_a_share_that_is_none_is_refused(folder: Path, value: str) -> None:
    done = run(STREAM + DEAR, f"--max-dead-letters={value}")
    assert (done.exit_code, done.stderr) == (
        2,
        f"headrace: --max-dead-letters {value} is neither\n"
        "hint: write a number of rows, or a share of them such as 5%\n",
    )


def test_a_strict_run_that_goes_on_is_still_refused(folder: Path) -> None:
    (folder / "bids.csv").write_text(BIDS + "x,7,1\n")
    for _ in range(2):
        assert run(STREAM + DEAR, "--strict", "--storage", "store").exit_code == 2
    assert run(STREAM + DEAR, "--storage", "store").exit_code == 0


def test_the_row_that_makes_all_later_ones_late_is_named(folder: Path) -> None:
    lines = [f"2024-05-01 09:{minute:02}:00,{minute}\n" for minute in range(30)]
    lines[3] = lines[3].replace("2024", "2126")
    lines[20] = "2024-05-01 09:19:00,no number\n"
    (folder / "bids.csv").write_text("ts,price\n" + "".join(lines))
    stream = (
        "CREATE STREAM bid (ts TIMESTAMP, price BIGINT) FROM csv OPTIONS (path 'bids.csv') "
        "TIMESTAMP BY ts DISORDER 5 MINUTES;"
    )
    for epoch_rows in ("1", "7", "1000"):
        done = run(stream + "SELECT price FROM bid;", "--epoch-rows", epoch_rows)
        assert "bid: 25 late rows, 1 rejected; with DISORDER " in done.stderr
        assert "\n  25 came after the row of 2126-05-01T09:03:00Z, which made them late\n" in done.stderr


@pytest.mark.parametrize(
    ("rows", "line"),
    [("", "the inputs have no rows"), ("x,7,1\nx,8,1\n", "  no row of bid could be used")],
)
def test_an_input_without_usable_rows_is_said(folder: Path, rows: str, line: str) -> None:
    (folder / "bids.csv").write_text(BIDS.splitlines()[0] + "\n" + rows)
    done = run(STREAM + DEAR)
    assert done.exit_code == 0
    assert line in done.stderr.splitlines()


def test_the_summary_of_few_rows_is_short(folder: Path) -> None:
    (folder / "bids.csv").write_text(BIDS.splitlines()[0] + "\n2,7,99\n")
    done = run(STREAM + "SELECT price FROM bid;")
    assert re.fullmatch(r"1 row in \d\.\d\d s, 1 epoch\n", done.stderr)


def test_several_answers_become_a_folder(folder: Path) -> None:
    done = run(STREAM + COUNTS + DEAR, "--format", "arrow", "--output", "out")
    assert done.exit_code == 0
    assert sorted(path.name for path in (folder / "out").iterdir()) == ["dear.arrow", "query_1.arrow"]
    assert pyarrow.feather.read_table("out/dear.arrow").num_rows == 3


def test_null_computes_and_writes_nothing(folder: Path) -> None:
    done = run(STREAM + DEAR, "--format", "null")
    assert (done.exit_code, done.stdout) == (0, "")
    assert "dear: 3 elements" in done.stderr
    assert sorted(path.name for path in folder.iterdir()) == ["bids.csv", "q.sql"]


def test_rows_that_could_not_take_part_are_written_with_the_reason(folder: Path) -> None:
    (folder / "bids.csv").write_text(BIDS + "x,7,1\n2,7,99\n")
    done = run(STREAM + DEAR, "--dead-letters", "dead.jsonl", "--epoch-rows", "1")
    letters = [json.loads(line) for line in Path("dead.jsonl").read_text().splitlines()]
    assert [letter["stream"] for letter in letters] == ["bid", "bid"]
    assert all(letter["reason"] for letter in letters)
    assert "bid: 1 late row, 1 rejected; with DISORDER 7 none would be late\n" in done.stderr
    assert "2 dead letters: in dead.jsonl" in done.stderr
    assert done.exit_code == 0


@pytest.mark.parametrize("epoch_rows", ["1", "2", "3", "500000"])
def test_which_rows_are_late_does_not_depend_on_the_cut(folder: Path, epoch_rows: str) -> None:
    """The example of the tutorial: the last row but one is ten minutes behind, and two are allowed."""
    (folder / "rooms.csv").write_text(
        "ts,item,price\n"
        "2024-05-01 09:00:00,vase,10\n"
        "2024-05-01 09:03:00,vase,15\n"
        "2024-05-01 09:02:00,clock,40\n"
        "2024-05-01 09:07:00,vase,eighteen\n"
        "2024-05-01 09:11:00,clock,45\n"
        "2024-05-01 09:01:00,vase,12\n"
        "2024-05-01 09:12:00,vase,16\n"
    )
    done = run(
        "CREATE STREAM bid (ts TIMESTAMP, item STRING, price BIGINT) FROM csv OPTIONS (path 'rooms.csv')\n"
        "TIMESTAMP BY ts DISORDER 2 MINUTES;\nSELECT price FROM bid;\n",
        *("--as", "stream", "--format", "csv", "--epoch-rows", epoch_rows, "--dead-letters", "dead.jsonl"),
    )
    prices = [line.partition(",")[0] for line in done.stdout.splitlines()[1:]]
    assert prices == ["10", "40", "15", "45", "16"]
    letters = [json.loads(line) for line in Path("dead.jsonl").read_text().splitlines()]
    late = "late: older than the heartbeat 2024-05-01T09:09:00Z"
    assert sorted(letter["reason"] for letter in letters) == [late, "price is not a valid BIGINT: 'eighteen'"]
    assert "bid: 1 late row, 1 rejected; with DISORDER 10 MINUTES none would be late\n" in done.stderr


def test_columns_that_are_left_out_are_named(folder: Path) -> None:
    (folder / "bids.json").write_text('{"ts": 1, "price": 11, "tags": []}\n')
    stream = "CREATE STREAM bid FROM json OPTIONS (path 'bids.json') TIMESTAMP BY ts;\n"
    done = run(stream + "SELECT price FROM bid;", "--format", "csv")
    assert done.exit_code == 0
    assert done.stderr.startswith("headrace: warning: bids.json: left out, since")
    assert done.stderr.count("tags (empty lists or objects)") == 1


def test_explain_in_a_file_is_printed(folder: Path) -> None:
    done = run(STREAM + "EXPLAIN LOGICAL SELECT price FROM bid WHERE price > 10;")
    assert done.exit_code == 0
    assert "Filter price > 10" in done.stdout
    assert done.stderr == ""


def test_explain_and_show_beside_a_query_go_to_standard_error(folder: Path) -> None:
    asked = "SHOW STREAMS; EXPLAIN LOGICAL SELECT price FROM bid;\n"
    done = run(STREAM + asked + DEAR, "--format", "jsonl")
    assert [json.loads(line)["price"] for line in done.stdout.splitlines()] == [20, 15, 12]
    assert "timed_by" in done.stderr
    assert "Project price" in done.stderr


def test_what_a_query_without_windows_does_is_said_once(folder: Path) -> None:
    text = STREAM + "SELECT COUNT(*) AS n FROM bid;\nSELECT COUNT(DISTINCT price) AS n FROM bid;\n"
    done = run(text, "--head", "0")
    grows = "bid has no window: what is remembered of it grows for as long as the query runs"
    note = f"q.sql:4:40: note: {grows}\nhint: "
    assert done.stderr.startswith(note)
    assert done.stderr.count("note: ") == 1
    assert done.exit_code == 0
    explained = CliRunner().invoke(app, ["explain", "q.sql"])
    assert explained.stderr.startswith(note)
    assert "note: " not in run(STREAM + COUNTS + DEAR).stderr


def test_a_query_that_fails_leaves_the_others_their_answers(folder: Path) -> None:
    most = 2**63 - 1
    total = f"CREATE QUERY total AS SELECT SUM({most}) AS s FROM bid WINDOW(RANGE 5);\n"
    done = run(STREAM + total + DEAR, "--format", "csv", "--output", "out")
    assert done.exit_code == 2
    assert "\nq.sql: total failed: " in done.stderr
    assert [path.name for path in (folder / "out").iterdir()] == ["dear.csv"]


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (STREAM + "SELECT prize FROM bid;", [], "q.sql:3:8: "),
        (STREAM.replace("bids", "none") + DEAR, [], "q.sql:1:1: "),
        (STREAM, [], "q.sql: there is no query"),
        (STREAM + DEAR, ["--format", "parquet"], "headrace: parquet cannot be printed"),
        (STREAM + DEAR + COUNTS, ["--format", "csv"], "headrace: 2 answers cannot be printed as one csv"),
        (STREAM + DEAR, ["--output", "o.doc"], "headrace: o.doc does not say its format"),
        (
            STREAM + DEAR,
            ["--output", "o.CSV", "--format", "jsonl"],
            "headrace: o.CSV ends in .CSV, and",
        ),
        (
            STREAM + DEAR + COUNTS,
            ["--output", "o.csv"],
            "headrace: o.csv is the name of a file",
        ),
        (
            STREAM + DEAR,
            ["--strict", "--max-dead-letters", "3"],
            "headrace: --strict is ",
        ),
        (PUSHED, [], "headrace: the rows of s are pushed by a program, and headrace run has none"),
        (STREAM + DEAR, ["--format", "null", "--output", "x"], "headrace: --format null writes nothing"),
        (STREAM + DEAR, ["--output", "."], "headrace: . is a folder"),
        (STREAM + DEAR, ["--output", "no/where.csv"], "headrace: there is no folder no"),
        (STREAM + DEAR + COUNTS, ["--output", "bids.csv"], "headrace: bids.csv is a file"),
        (STREAM + DEAR, ["--dead-letters", "dead.doc"], "headrace: dead.doc does not say its format"),
        (STREAM + DEAR, ["--dead-letters", "."], "headrace: . is a folder"),
        (STREAM + DEAR, ["--master", "local[2]"], "headrace: --master is for --runner spark"),
        (STREAM + COUNTS, ["--as", "stream"], "headrace: query_1 is not a stream"),
    ],
)
def test_users_errors_exit_with_2_and_leave_nothing(
    folder: Path, text: str, options: list[str], message: str
) -> None:
    done = run(text, *options)
    assert done.exit_code == 2
    assert done.stderr.startswith(message)
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert sorted(path.name for path in folder.iterdir()) == ["bids.csv", "q.sql"]


def test_errors_carry_a_hint(folder: Path) -> None:
    assert "\nhint: " in run(STREAM + "SELECT prize FROM bid;").stderr


@pytest.mark.parametrize("content", [None, b"\xff\xfe"])
def test_a_file_that_cannot_be_read(folder: Path, content: bytes | None) -> None:
    if content is not None:
        Path("bad.sql").write_bytes(content)
    done = CliRunner().invoke(app, ["run", "bad.sql", "--runner", "inline"])
    assert done.exit_code == 2
    assert done.stderr.startswith("bad.sql: ")


def test_answers_are_replaced_whole(folder: Path) -> None:
    Path("dear.csv").write_text("old")
    assert run(STREAM + DEAR, "--format", "csv", "--output", "dear.csv").exit_code == 0
    assert Path("dear.csv").read_text().startswith("auction,price,valid_from,valid_to\n")


def test_the_summary_names_queries_whose_state_grows(folder: Path) -> None:
    latest = "CREATE QUERY latest AS SELECT * FROM bid [PARTITION BY auction ROWS 1];"
    done = run(STREAM + COUNTS + latest)
    assert "state that grows without bound: latest" in done.stderr.splitlines()
    assert "state that grows" not in run(STREAM + COUNTS).stderr


def test_the_profile_goes_to_standard_error(folder: Path) -> None:
    done = run(STREAM + COUNTS, "--profile")
    assert "Aggregate" in done.stderr
    assert "the longest tasks" in " ".join(done.stderr.split())
    assert "the longest tasks" not in " ".join(run(STREAM + COUNTS).stderr.split())


@pytest.mark.parametrize("columns", [60, 80, 150])
def test_the_profile_has_a_line_per_operator_and_fits_the_terminal(
    folder: Path, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = run(STREAM + COUNTS, "--profile").stderr.splitlines()
    table = lines[lines.index(next(line for line in lines if "What the operators did" in line)) :]
    assert max(map(len, table)) <= columns
    operators = [line.split("│")[1].split()[0] for line in table if line.startswith("│")]
    assert operators == [f"#{number}" for number in range(len(operators))]
    assert len(operators) > 1


def test_rstream_shows_a_window_at_its_granules(folder: Path) -> None:
    done = run(
        STREAM + "RSTREAM(SELECT COUNT(*) AS n FROM bid [RANGE 8] GRANULARITY(5));",
        "--as",
        "stream",
        "--format",
        "csv",
    )
    # The bids are at 1, 3, 4 and 9: there are 1, 3 and 4 at 5; 3, 4 and 9 at 10; and 9 at 15.
    assert done.stdout.splitlines() == ["n,ts", "3,5", "3,10", "1,15"]


def test_values_of_parameters(folder: Path) -> None:
    text = DEAR.replace("10", ":least")
    done = run(STREAM + text, "-D", "least=10")
    assert done.stdout == run(STREAM + DEAR).stdout
    wrong = run(STREAM + text, "-D", "last=10")
    assert wrong.exit_code == 2
    assert "did you mean last?" in wrong.stderr
