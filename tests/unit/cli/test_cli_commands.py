"""`headrace explain`, `headrace nexmark`, and what holds for every command."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import typer
from typer.testing import CliRunner

import headrace as hr
import warm_processes
from headrace.cli import app
from headrace.cli.app import COMMANDS
from headrace.cli.errors import describe, reported
from headrace.cli.progress import readable_bytes
from headrace.errors import LanguageError, Position, UserError
from headrace.runtime.writing.texts import count
from headrace.workloads.nexmark import TABLES, Nexmark, counts, generate
from headrace.workloads.nexmark.queries import nexmark_queries

QUERY = """CREATE STREAM bid FROM nexmark OPTIONS (events=500, seed=3) TIMESTAMP BY ts;
CREATE QUERY dear AS SELECT auction, price FROM bid WHERE price > 1000;
"""


def test_explain_shows_the_plan_that_was_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "q.sql"
    file.write_text(QUERY)
    logical = CliRunner().invoke(app, ["explain", str(file), "--stage", "logical"])
    physical = CliRunner().invoke(app, ["explain", str(file), "--stage", "physical"])
    assert logical.stdout.startswith("-- dear\nProject auction, price")
    assert "level 0" in physical.stdout


def test_explain_places_errors(tmp_path: Path) -> None:
    file = tmp_path / "q.sql"
    file.write_text("SELECT 1 FROM nothing")
    done = CliRunner().invoke(app, ["explain", str(file)])
    assert done.exit_code == 2
    assert done.stderr.startswith(f"{file}:1:15: ")


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_has_a_page(name: str) -> None:
    listed = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "200"})
    assert COMMANDS[name][1] in listed.stdout
    done = CliRunner().invoke(app, [name, "-h"], env={"COLUMNS": "200"})
    assert done.exit_code == 0
    assert f" {name} " in done.stdout.splitlines()[1]


@pytest.mark.parametrize("name", COMMANDS)
def test_help_cuts_nothing_in_80_columns(name: str) -> None:
    wide, narrow = (
        CliRunner().invoke(app, [name, "--help"], env={"COLUMNS": columns}).stdout
        for columns in ("240", "80")
    )
    assert "…" not in narrow
    assert max(map(len, narrow.splitlines())) <= 80
    assert set(re.findall(r"--[a-z-]+", wide)) == set(re.findall(r"--[a-z-]+", narrow))
    assert set(re.findall(r"<\w+\|[^<> ]+>", wide)) == set(re.findall(r"<\w+\|[^<> ]+>", narrow))


def test_the_list_of_commands_loads_none() -> None:
    script = (
        "import sys; from typer.testing import CliRunner; from headrace.cli import app;"
        "assert CliRunner().invoke(app, ['--help']).exit_code == 0;"
        "sys.exit('pyarrow' in sys.modules or 'pyspark' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_explaining_does_not_load_spark(tmp_path: Path) -> None:
    file = tmp_path / "q.sql"
    file.write_text(QUERY)
    script = (
        "import sys; from typer.testing import CliRunner; from headrace.cli import app;"
        f"assert CliRunner().invoke(app, ['explain', {str(file)!r}]).exit_code == 0;"
        "sys.exit('pyspark' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


@pytest.mark.parametrize("format_", ["parquet", "arrow", "csv", "json"])
def test_nexmark_files_hold_what_the_generator_makes(tmp_path: Path, format_: str) -> None:
    out = tmp_path / "it's new"
    options = f"--events 5000 --seed 3 --format {format_} --files 3".split()
    made = CliRunner().invoke(app, ["nexmark", "--out", str(out), "--disorder", "1 second", *options])
    assert made.exit_code == 0, made.stderr
    assert sorted(path.name for path in out.iterdir()) == sorted(TABLES)
    assert len(list((out / "bid").iterdir())) == 3
    spec = Nexmark(5000, 3, disorder_us=1_000_000)
    with hr.connect(runner="inline") as db:
        db.execute(made.stdout)
        for table in TABLES:
            db.execute(f"CREATE QUERY {table}_rows AS SELECT * FROM {table}")
        summary = db.run()
        assert summary.dead_letters == 0
        for query, (table, schema) in zip(db.queries, TABLES.items(), strict=True):
            expected = pq_rows(generate(spec, table, 0, 5000, schema.names).to_pylist())
            names = list(schema.names)
            assert pq_rows(query.history().select(names).to_pylist()) == expected
            assert len(expected) == counts(spec, table)


def pq_rows(rows: list[dict[str, object]]) -> list[str]:
    return sorted(map(repr, rows))


def test_nexmark_writes_parquet_files_in_order_of_arrival(tmp_path: Path) -> None:
    CliRunner().invoke(app, ["nexmark", "--events", "2000", "--out", str(tmp_path / "n"), "--files", "2"])
    first, second = (pq.read_table(file)["ts"].to_pylist() for file in sorted((tmp_path / "n/bid").iterdir()))
    assert first + second == sorted(first + second)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--out", "."], "headrace: . exists already"),
        (["--out", "n", "--disorder", "5"], "headrace: the disorder 5 has no unit"),
        (["--out", "n", "--disorder", "5 moons"], "headrace: unknown unit of time"),
        (["--out", "a file/n"], "headrace: a file/n cannot be written"),
    ],
)
def test_nexmark_refuses_before_it_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a file").touch()
    done = CliRunner().invoke(app, ["nexmark", "--events", "100", *options])
    assert done.exit_code == 2
    assert done.stderr.startswith(message)
    assert [path.name for path in tmp_path.iterdir()] == ["a file"]


def test_nexmark_runs_a_query_of_the_suite() -> None:
    options = "--events 3000 --rate 100 --disorder 1s --runner inline --head 2"
    done = CliRunner().invoke(app, ["nexmark", "--query", "q7", *options.split()])
    assert done.exit_code == 0, done.stderr
    assert done.stdout.splitlines()[0].split() == [
        "auction",
        "price",
        "bidder",
        "ts",
        "extra",
        "valid_from",
        "valid_to",
    ]
    assert "(2 rows)" in done.stdout
    assert "late" not in done.stderr


def test_nexmark_prints_what_it_would_run(tmp_path: Path) -> None:
    options = ["--events", "2000", "--rate", "100", "--disorder", "1s"]
    printed = CliRunner().invoke(app, ["nexmark", "--query", "q11", "--print", *options]).stdout
    (tmp_path / "q.sql").write_text(printed)
    alone = CliRunner().invoke(app, ["run", str(tmp_path / "q.sql"), "--runner", "inline"])
    whole = CliRunner().invoke(app, ["nexmark", "--query", "q11", "--runner", "inline", *options])
    assert alone.stdout == whole.stdout
    assert alone.exit_code == whole.exit_code == 0


def test_nexmark_lists_its_queries() -> None:
    lines = CliRunner().invoke(app, ["nexmark", "--list"]).stdout.splitlines()
    assert lines[0] == "q0   Pass through: every bid."
    assert [line.split()[0] for line in lines] == [query.name for query in nexmark_queries()]
    assert all(len(line) < 120 for line in lines)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "headrace: there is nothing to do\nhint: write --list, or --query q5, or"),
        (["--list", "--query", "q1"], "headrace: only one of --list, --query and --out can be given"),
        (["--query", "q1", "--format", "csv"], "headrace: --format and --files are for --out"),
        (["--query", "q1", "--files", "2"], "headrace: --format and --files are for --out"),
        (["--out", "n", "--events", "1", "--print"], "headrace: --print and --head are for --query"),
        (["--list", "--head", "2"], "headrace: --print and --head are for --query"),
        (["--query", "q99"], "headrace: NEXMark has no query q99\nhint: its queries are q0, "),
        (["--out", "n"], "headrace: the number of events is missing\nhint: add --events"),
        (["--query", "q1", "--disorder", "5"], "headrace: the disorder 5 has no unit"),
    ],
)
def test_nexmark_says_what_is_wrong_with_its_options(options: list[str], message: str) -> None:
    done = CliRunner().invoke(app, ["nexmark", *options])
    assert done.exit_code == 2
    assert done.stderr.startswith(message)


def test_version() -> None:
    assert CliRunner().invoke(app, ["--version"]).stdout == f"headrace {version('headrace')}\n"


def test_an_unknown_option_exits_with_2() -> None:
    assert CliRunner().invoke(app, ["run", "q.sql", "--fromat", "csv"]).exit_code == 2


def test_describe() -> None:
    error = LanguageError("no column x", position=Position(3, 7), hint="did you mean y?")
    assert describe(error, Path("a.sql")) == "a.sql:3:7: no column x\nhint: did you mean y?"
    assert describe(UserError("no"), None) == "headrace: no"


def code_of(error: BaseException) -> int:
    with pytest.raises(typer.Exit) as exit_, reported():
        raise error
    return exit_.value.exit_code


def cancelled_job() -> BaseException:
    """What Spark raises on Ctrl-C: an error of the job, raised while the interrupt was handled."""
    with pytest.raises(RuntimeError) as raised:  # noqa: PT012
        try:
            raise KeyboardInterrupt
        finally:
            raise RuntimeError("job cancelled")
    return raised.value


def test_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    assert code_of(UserError("no")) == 2
    assert "Traceback" not in capsys.readouterr().err
    assert code_of(KeyboardInterrupt()) == 130
    assert code_of(cancelled_job()) == 130
    assert "Traceback" not in capsys.readouterr().err
    assert code_of(ZeroDivisionError("ours")) == 1
    said = capsys.readouterr().err
    assert "Traceback" in said
    assert "please report it" in said


def test_without_java_the_error_says_what_spark_needs(tmp_path: Path) -> None:
    file = tmp_path / "q.sql"
    file.write_text(QUERY)
    for name in ("bash", "dirname"):
        found = shutil.which(name)
        assert found is not None
        (tmp_path / name).symlink_to(found)
    environment = {"PATH": str(tmp_path), "HOME": str(tmp_path)}
    command = [sys.executable, "-c", "from headrace.cli import main; main()", "run", str(file)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert f"{file}: Spark did not start\nhint: it needs Java 17" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_reader_that_stops_is_no_fault(tmp_path: Path) -> None:
    file = tmp_path / "q.sql"
    file.write_text(QUERY.replace("500", "50000").replace("> 1000", "> 0"))
    command = [sys.executable, "-c", "from headrace.cli import main; main()", "run", str(file)]
    with warm_processes.Popen(
        [*command, "--runner", "inline", "--format", "csv"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 128 + signal.SIGPIPE


def test_a_full_disk_is_no_fault_of_headrace(tmp_path: Path) -> None:
    file = tmp_path / "q.sql"
    file.write_text(QUERY)
    command = [sys.executable, "-c", "from headrace.cli import main; main()", "run", str(file)]
    with Path("/dev/full").open("w") as full:
        done = warm_processes.run(
            [*command, "--runner", "inline"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 2
    assert "headrace: the output cannot be written: No space left on device\n" in done.stderr
    assert "Traceback" not in done.stderr


def test_output_may_be_a_pipe(tmp_path: Path) -> None:
    file = tmp_path / "q.sql"
    file.write_text(QUERY)
    command = [sys.executable, "-c", "from headrace.cli import main; main()", "run", str(file)]
    options = ["--runner", "inline", "--output", "/dev/stdout", "--format", "csv"]
    done = warm_processes.run([*command, *options], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.partition("\n")[0]) == (0, "auction,price,valid_from,valid_to")


def test_a_wrong_java_home_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "q.sql"
    file.write_text(QUERY)
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    done = CliRunner().invoke(app, ["run", str(file)])
    assert done.exit_code == 2
    assert done.stderr.startswith(f"{file}: JAVA_HOME is /nowhere, and there is no bin/java in it\nhint: ")


def test_help_shows_arguments_without_braces_and_defaults() -> None:
    shown = CliRunner().invoke(app, ["run", "--help"], terminal_width=200).stdout
    text = " ".join(shown.replace("│", " ").split())
    assert "Usage: headrace run [OPTIONS] [FILE.sql] " in text.replace("root", "headrace")
    assert "{" not in text
    for default in ("500000, growing", "268435456", "all cores", "any number"):
        assert f"[default: ({default})]" in text


def test_numbers_for_people() -> None:
    assert [count(number, "row") for number in (0, 1, 12_345)] == ["0 rows", "1 row", "12,345 rows"]
    sizes = [readable_bytes(number) for number in (0, 999, 1_000, 12_345_678, 5 * 10**15)]
    assert sizes == ["0 B", "999 B", "1.0 kB", "12.3 MB", "5000.0 TB"]


def test_ctrl_c_while_headrace_is_loaded_is_no_traceback() -> None:
    interrupting = """
import os, signal, sys
class Finder:
    def find_spec(self, name, path, target=None):
        if name == "headrace.cli":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
from headrace_command import main
main()
"""
    done = subprocess.run([sys.executable, "-c", interrupting], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "headrace: interrupted\n")


@pytest.mark.parametrize("command", [["run", "--runner", "inline"], ["explain"]])
def test_the_text_may_be_an_argument_or_standard_input(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Relative paths in it start from the current folder."""
    (tmp_path / "bids.csv").write_text("ts,price\n1,10\n2,20\n")
    monkeypatch.chdir(tmp_path)
    text = "CREATE STREAM bid FROM csv OPTIONS (path 'bids.csv') TIMESTAMP BY ts;\r\nSELECT price FROM bid"
    (tmp_path / "q.sql").write_text(text)
    expected = CliRunner().invoke(app, [*command, "q.sql"])
    assert expected.exit_code == 0, expected.output
    assert "price" in expected.stdout
    assert CliRunner().invoke(app, [*command, "-e", text]).stdout == expected.stdout
    assert CliRunner().invoke(app, [*command, "-"], input=text).stdout == expected.stdout


@pytest.mark.parametrize(
    ("options", "given", "message"),
    [
        (["-e", "SELECT x FROM s"], None, "-e:1:15: there is no stream s"),
        (["-"], "SELECT x FROM s", "<stdin>:1:15: there is no stream s"),
        (["-"], b"SELECT \xff", "<stdin>: byte 7 is not UTF-8"),
        (["-e", ""], None, "-e: there is no query"),
        ([], None, "headrace: there is no query"),
        (["q.sql", "-e", "SELECT 1"], None, "headrace: there are a file and -e"),
    ],
)
def test_a_wrong_text_is_named(options: list[str], given: str | bytes | None, message: str) -> None:
    done = CliRunner().invoke(app, ["run", "--runner", "inline", *options], input=given)
    assert done.exit_code == 2, done.output
    assert done.stderr.startswith(message)
