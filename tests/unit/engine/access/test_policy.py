"""What SQL of others may reach: each promise of docs/security.md about policies."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace as hr
from headrace.engine.run.core import Core
from headrace.errors import LanguageError, SourceError, UserError
from headrace.language.statements.catalog import (
    Comment,
    Describe,
    PauseQuery,
    RenameQuery,
    ResumeQuery,
    SetKeep,
    SetOption,
    SetPriority,
    SetWindow,
    ShowCreate,
)
from headrace.language.statements.formats import FILE_FORMATS
from headrace.language.statements.sinks import CreateSink, DropSink
from headrace.language.statements.statements import (
    AskWhy,
    Conditional,
    CreateQuery,
    CreateStreamAs,
    DropQuery,
    DropRelation,
    DropStream,
    Explain,
    ExplainAlter,
    ExplainAnalyze,
    ExplainCost,
    ExplainReplace,
    ExplainShared,
    RefreshRelation,
    Reoptimize,
    Replay,
    Select,
    SetConsistency,
    SetDialect,
    Show,
    Statement,
)
from headrace.language.statements.streams import (
    AddColumns,
    AlterStream,
    CreateRelation,
    CreateSkew,
    CreateStream,
)
from headrace.runtime.sources.files.files import list_files

CLOSED = hr.Policy.closed()
SECRET = "root:x:0:0:sesame"
PUSHED = "CREATE STREAM mine (ts BIGINT, v BIGINT) FROM push TIMESTAMP BY ts"


@pytest.fixture
def db(tmp_path: Path) -> Iterator[hr.Database]:
    """A database of an operator, with a stream, a query and functions; its own SQL is not restricted."""
    with hr.connect(runner="inline", storage=tmp_path / "store") as made:
        made.stream("s", pa.table({"ts": [1, 2], "v": [10, 20]}), timestamp="ts")
        made.function("twice", lambda v: v, arguments=["BIGINT"], returns="BIGINT")
        made.function("secret", lambda v: v, arguments=["BIGINT"], returns="BIGINT")
        made.execute("CREATE STREAM d AS SELECT ts, secret(v) AS v FROM s")
        made.query("SELECT v FROM s", name="theirs")
        yield made


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """An allowed folder `in` beside a file that nobody may read, and links between them."""
    (tmp_path / "in" / "sub").mkdir(parents=True)
    (tmp_path / "in" / "a.csv").write_text("ts,v\n1,10\n")
    (tmp_path / "in" / "sub" / "b.csv").write_text("ts,v\n2,20\n")
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "secret.csv").write_text(SECRET)
    (tmp_path / "secret.csv").write_text(SECRET)
    (tmp_path / "in" / "secret").symlink_to("../secret.csv")
    (tmp_path / "in" / "sub" / "out").symlink_to(tmp_path)
    (tmp_path / "in" / "again").symlink_to("a.csv")
    (tmp_path / "in" / "loop").symlink_to("loop")
    return tmp_path


def create(path: str | Path, form: str = "csv") -> str:
    return f"CREATE STREAM mine FROM {form} OPTIONS (path '{path}') TIMESTAMP BY ts"


@pytest.mark.parametrize("form", [*FILE_FORMATS, "nexmark", "rate", "socket", "kafka", "xml", "`org.x.Y`"])
def test_closed_sql_creates_pushed_streams_alone(db: hr.Database, disk: Path, form: str) -> None:
    with pytest.raises(
        hr.PolicyError, match=r"1:1: streams may not be created FROM .*allowed are: push"
    ) as caught:
        db.execute(create(disk / "secret.csv", form), policy=CLOSED)
    assert SECRET not in str(caught.value)
    assert "mine" not in db.streams
    db.execute(PUSHED, policy=CLOSED)
    assert "mine" in db.streams


def test_closed_sql_asks_the_streams_that_there_are(db: hr.Database) -> None:
    results = db.execute("SELECT v FROM s; EXPLAIN SELECT v FROM d; SHOW STREAMS", policy=CLOSED)
    db.query("SELECT SUM(v) AS v FROM s [RANGE 1]", policy=CLOSED)
    db.execute("CREATE STREAM e AS SELECT v FROM s; CREATE QUERY q AS SELECT v FROM e", policy=CLOSED)
    db.run()
    assert isinstance(results[0], hr.Query)
    assert results[0].history().num_rows == 2


@pytest.mark.parametrize(
    "text",
    [
        *("DROP STREAM d", "DROP QUERY theirs", "SET dialect = 'cql'", "ALTER STREAM s DISORDER 1"),
        *("COMMENT ON QUERY theirs IS 'mine'", "ALTER QUERY theirs PAUSE"),
        "ALTER QUERY theirs RENAME TO mine",
        *("ALTER QUERY theirs SET (WEIGHT 2)", "ALTER QUERY theirs SET (LATENCY 1 SECOND)"),
        "CREATE OR REPLACE QUERY theirs AS SELECT v + 1 AS v FROM s",
    ],
)
def test_closed_sql_changes_nothing_that_others_defined(db: hr.Database, text: str) -> None:
    with pytest.raises(hr.PolicyError, match=f"1:1: {text[:8]}.* is not allowed"):
        db.execute(text, policy=CLOSED)
    db.execute(text, policy=hr.Policy.closed(may_change=True))


@pytest.mark.parametrize(
    "text",
    [
        *("SELECT v FROM s", "CREATE QUERY q AS SELECT v FROM s", "CREATE STREAM e AS SELECT v FROM s"),
        *(PUSHED, "CREATE RELATION k KEY (v) FROM csv OPTIONS (path 'a.csv')"),
    ],
)
def test_sql_that_only_asks_defines_nothing(db: hr.Database, text: str) -> None:
    asks = hr.Policy.closed(formats=["push", "csv"], may_define=False)
    with pytest.raises(hr.PolicyError, match=r"1:1: .* is not allowed"):
        db.execute(text, policy=asks)
    assert [query.name for query in db.queries] == ["theirs"]
    assert len(db.execute("SHOW STREAMS; EXPLAIN SELECT v FROM s", policy=asks)) == 2


@pytest.mark.parametrize(
    "text",
    [
        *("WHY theirs", "EXPLAIN ANALYZE theirs", "EXPLAIN SHARED", "SHOW CREATE QUERY theirs"),
        "EXPLAIN REPLACE theirs AS SELECT v + 1 AS v FROM s",
    ],
)
def test_closed_sql_does_not_see_how_the_queries_of_others_run(db: hr.Database, text: str) -> None:
    db.run()
    with pytest.raises(hr.PolicyError, match=r"1:1: .* is not allowed"):
        db.execute(text, policy=CLOSED)
    assert "theirs" in str(db.execute(text, policy=hr.Policy.closed(may_change=True))[0])
    assert "all final" in str(db.execute("EXPLAIN ANALYZE SELECT v FROM s", policy=CLOSED)[0])


def test_every_kind_of_statement_has_been_judged() -> None:
    reads = {CreateStream, CreateRelation}
    writes = {CreateSink}
    changes = {
        AddColumns,
        AlterStream,
        RefreshRelation,
        Reoptimize,
        CreateSkew,
        DropStream,
        DropRelation,
        DropQuery,
    }
    changes |= {DropSink, SetKeep, SetPriority, SetWindow}
    changes |= {SetConsistency, SetDialect, Replay, Comment, PauseQuery, RenameQuery, ResumeQuery, SetOption}
    asks = {CreateStreamAs, CreateQuery, Select, Explain, ExplainCost, Show, ShowCreate, Describe}
    looks = {ExplainAlter, ExplainAnalyze, ExplainReplace, ExplainShared, AskWhy}
    # It may reach what the statement may that it carries out: `test_conditional_statements.py`.
    inner = {Conditional}
    assert set(get_args(Statement)) == inner | reads | writes | changes | asks | looks, (
        "what may a new one reach under a policy?"
    )


def test_functions_that_are_not_allowed_do_not_exist(db: hr.Database) -> None:
    policy = hr.Policy.closed(functions=["Twice"])
    db.query("SELECT twice(v) AS v FROM s", policy=policy)
    db.query("SELECT v FROM d", policy=policy)
    for text in (
        "SELECT secret(v) AS v FROM s",
        "EXPLAIN SELECT secret(v) AS v FROM s",
        "CREATE STREAM x AS SELECT secret(v) AS v FROM s",
        "CREATE QUERY x AS SELECT v FROM s WHERE EXISTS (SELECT secret(v) AS v FROM s)",
    ):
        with pytest.raises(LanguageError, match=r"(?i)secret"):
            db.execute(text, policy=policy)
    shown = db.execute("SHOW FUNCTIONS", policy=policy)[0]
    assert "twice" in str(shown)
    assert "secret" not in str(shown)
    assert "secret" in str(db.execute("SHOW FUNCTIONS")[0])


def test_a_connection_is_closed_for_all_sql_that_is_given_no_policy(disk: Path) -> None:
    with hr.connect(runner="inline", policy=CLOSED) as db:
        with pytest.raises(hr.PolicyError):
            db.execute(create("in/a.csv"), base=disk)
        db.execute(create("in/a.csv"), base=disk, policy=hr.Policy.open())
        db.function("twice", lambda v: v, arguments=["BIGINT"], returns="BIGINT")
        with pytest.raises(LanguageError):
            db.query("SELECT twice(v) AS v FROM mine")
        with pytest.raises(LanguageError):
            db.query("CREATE QUERY q AS SELECT twice(v) AS v FROM mine")
        db.query("SELECT twice(v) AS v FROM mine", policy=hr.Policy.open())


def test_a_name_is_not_taken_for_a_list_of_letters() -> None:
    for name in ("folders", "formats", "options", "functions", "sinks", "outputs"):
        arguments: dict[str, Any] = {name: "/srv/shared"}
        with pytest.raises(UserError, match=f"{name} is '/srv/shared', not a list"):
            hr.Policy.closed(**arguments)
    arguments = {"folders": Path("/srv")}
    with pytest.raises(UserError, match="folders is '/srv', not a list"):
        hr.Policy.closed(**arguments)


# --- files -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FILE_FORMATS)
@pytest.mark.parametrize(
    "path",
    [
        "../secret.csv",
        "secret",
        "sub/out/secret.csv",
        "sub/out",
        "../inner/secret.csv",
        "..",
        "../none",
        "loop/x",
    ],
)
def test_files_outside_of_the_allowed_folders_are_refused(
    db: hr.Database, disk: Path, form: str, path: str
) -> None:
    policy = hr.Policy.closed(folders=[disk / "in"], formats=FILE_FORMATS)
    for name in (path, str(disk / "in" / path)):
        with pytest.raises(UserError) as caught:
            db.execute(create(name, form), base=disk / "in", policy=policy)
        assert isinstance(caught.value, hr.PolicyError) or "loop" in path
        assert SECRET not in str(caught.value)


def test_whether_a_refused_file_exists_is_not_said(db: hr.Database, disk: Path) -> None:
    def answer(name: str) -> str:
        with pytest.raises(hr.PolicyError) as caught:
            db.execute(create(disk / name), policy=hr.Policy.closed(folders=[disk / "in"], formats=["csv"]))
        return str(caught.value).replace(name, "NAME")

    assert answer("secret.csv") == answer("missing.csv") == answer("secret.csv/x") == answer("inner")


def test_a_link_out_of_a_folder_refuses_the_folder(db: hr.Database, disk: Path) -> None:
    policy = hr.Policy.closed(folders=[disk / "in"], formats=["csv"])
    with pytest.raises(hr.PolicyError, match="in/secret may not be read"):
        db.execute(create("in"), base=disk, policy=policy)
    (disk / "in" / "secret").unlink()
    for target in ("secret.csv", "missing.csv", "inner"):
        (disk / "in" / "link").unlink(missing_ok=True)
        (disk / "in" / "link").symlink_to(disk / target)
        with pytest.raises(hr.PolicyError, match="in/link may not be read"):
            db.execute(create("in"), base=disk, policy=policy)
    (disk / "in" / "link").unlink()
    (disk / "in" / "loop").unlink()
    db.execute(create("in"), base=disk, policy=policy)


def test_what_was_checked_is_what_is_read(disk: Path) -> None:
    policy = hr.Policy.closed(folders=[disk / "in"], formats=["csv"])
    with hr.connect(runner="inline", policy=policy) as db:
        db.execute(create("in/again"), base=disk)
        (disk / "in" / "again").unlink()
        (disk / "in" / "again").symlink_to("../other.csv")
        (disk / "other.csv").write_text("ts,v\n1,99\n")
        query = db.query("SELECT v FROM mine")
        db.run()
        assert query.history()["v"].to_pylist() == [10]


def test_a_folder_that_is_a_link_is_the_folder_it_led_to(db: hr.Database, disk: Path) -> None:
    (disk / "alias").symlink_to(disk / "in")
    policy = hr.Policy.closed(folders=[disk / "alias"], formats=["csv"])
    (disk / "alias").unlink()
    (disk / "alias").symlink_to(disk / "inner")
    with pytest.raises(hr.PolicyError):
        db.execute(create("alias/secret.csv"), base=disk, policy=policy)
    db.execute(create("in/sub/b.csv"), base=disk, policy=policy)


@given(parts=st.lists(st.sampled_from(["", ".", "..", "in", "a", "b", "f", "up", "down", "abs"]), max_size=7))
def test_no_spelling_of_a_path_leads_out(tmp_path_factory: pytest.TempPathFactory, parts: list[str]) -> None:
    root = tmp_path_factory.getbasetemp() / "spelled"
    if not root.exists():
        for folder in (root / "in" / "a", root / "b", root / "in" / "b"):
            folder.mkdir(parents=True)
            (folder / "f").write_text(folder.name)
            (folder / "up").symlink_to("..")
            (folder / "down").symlink_to(root / "in" / "b")
            (folder / "abs").symlink_to(root / "b")
    allowed, path = root / "in", "/".join(parts)
    real = Path(os.path.realpath(allowed / path))
    inside = real.is_relative_to(allowed)
    try:
        found = list_files(path, allowed, (allowed,))
    except hr.PolicyError:
        assert not inside or any(
            not Path(os.path.realpath(e)).is_relative_to(allowed) for e in real.iterdir()
        )
    except SourceError:
        assert inside, "what is not allowed is refused before anybody looks whether it exists"
    else:
        assert inside
        places = [Path(str(file)) for file, _ in found]
        assert all(file.is_relative_to(allowed) and os.path.realpath(file) == str(file) for file in places)


@pytest.mark.parametrize("path", ["a\0b", "x" * 300, "y/" * 3000])
@pytest.mark.parametrize("policy", [hr.Policy.open(), hr.Policy.closed(folders=["/"], formats=["csv"])])
def test_paths_that_no_system_takes(db: hr.Database, path: str, policy: hr.Policy) -> None:
    with pytest.raises(SourceError):
        db.execute(create(path), policy=policy)


# --- Spark's formats -------------------------------------------------------------------------------------


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, str]]]:
    """What reaches Spark: the formats and options; nothing is read."""
    calls: list[tuple[str, dict[str, str]]] = []

    def read_stream(core: Core, source: str, options: Mapping[str, str], schema: Any) -> Any:
        calls.append((source, dict(options)))
        raise UserError("reached")

    monkeypatch.setattr(Core, "read_stream", read_stream)
    return calls


def test_spark_gets_no_option_that_is_not_allowed(db: hr.Database, asked: list[Any]) -> None:
    policy = hr.Policy.closed(formats=["rate", "KAFKA"], options=["rowsPerSecond"])
    text = "CREATE STREAM mine FROM {} OPTIONS ({}) TIMESTAMP BY timestamp"
    for options in (
        "sourceArchiveDir '/x'",
        "cleanSource 'off'",
        "kafka.bootstrap.servers 'x:1'",
        "rowsPerSecond 1, numPartitions 2",
        "path '/'",
        "path 's3a://bucket/x'",
    ):
        with pytest.raises(hr.PolicyError, match="may not be"):
            db.execute(text.format("rate", options), policy=policy)
    # Spark's connector, and our own source with a setting of a library that reads a file.
    for options in ("kafka.bootstrap.servers 'x:1'", "brokers 'x:1', topic 't', ssl.ca.location '/etc/x'"):
        with pytest.raises(hr.PolicyError, match="may not be"):
            db.execute(text.format("kafka", options), policy=policy)
    assert asked == []
    with pytest.raises(UserError, match="reached"):
        db.execute(text.format("RATE", "RowsPerSecond 5"), policy=policy)
    assert asked == [("rate", {"rowspersecond": "5"})]


def test_spark_gets_the_path_that_was_checked(db: hr.Database, disk: Path, asked: list[Any]) -> None:
    policy = hr.Policy.closed(folders=[disk / "in"], formats=["xml"])
    for path in (
        "..", "sub/out", "file:///", f"file:{disk}", f"//{disk}/in", "hdfs://x/in/../../..", "*", "s?b",
        "{sub,..}", "[s]ub", "\\sub", "../in*",
    ):  # fmt: skip
        with contextlib.suppress(UserError):
            db.execute(create(path, "xml"), base=disk / "in", policy=policy)
    assert {Path(options["path"]).parts[:2] for _, options in asked} <= {disk.parts[:2]}
    assert all(Path(options["path"]).is_relative_to(disk / "in") for _, options in asked)
    assert all(not set(options["path"]) & set("*?[]{}\\") for _, options in asked)
    asked.clear()
    with pytest.raises(UserError, match="reached"):
        db.execute(create("../in/./sub", "xml"), base=disk / "in", policy=policy)
    assert asked == [("xml", {"path": str(disk / "in" / "sub")})]


@pytest.mark.parametrize(
    "policy", [hr.Policy.open(), hr.Policy.closed(formats=["xml"], options=["cleanSource"])]
)
@pytest.mark.parametrize("value", ["delete", "ARCHIVE", "Delete", ""])
def test_no_sql_deletes_what_it_reads(
    db: hr.Database, asked: list[Any], policy: hr.Policy, value: str
) -> None:
    text = "CREATE STREAM mine FROM xml OPTIONS (CLEANsource '{}') TIMESTAMP BY ts"
    with pytest.raises(hr.PolicyError, match="cleanSource would delete or move the files"):
        db.execute(text.format(value), policy=policy)
    assert asked == []
    with pytest.raises(UserError, match="reached"):
        db.execute(text.format("OFF"), policy=policy)


def test_open_sql_is_the_operators(db: hr.Database, disk: Path, asked: list[Any]) -> None:
    with pytest.raises(SourceError, match="in/secret: no row can be read"):
        db.execute(create("in/secret"), base=disk)
    with pytest.raises(UserError, match="reached"):
        db.execute("CREATE STREAM k FROM kafka OPTIONS (subscribe 't', path 's3a://b/*') TIMESTAMP BY ts")
    assert asked == [("kafka", {"subscribe": "t", "path": "s3a://b/*"})]
