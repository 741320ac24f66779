"""Every kind of source and sink names its test with toxic peers; a new kind fails here until it has one."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Final

from headrace.language.statements.formats import FORMATS
from headrace.runtime.delivery.kinds import SinkKind

UNIT: Final = Path(__file__).parents[2]
NOTHING: Final = ""
"""For what reaches nothing outside: rows are computed, or pushed."""
_TRANSFERS: Final = "runtime/outside/test_broken_transfers.py"
_SINKS: Final = "runtime/outside/test_away_sinks.py"
_FILES: Final = f"{_TRANSFERS}::test_a_run_over_a_file_ends_with_all_rows_or_none"
_TABLES: Final = f"{_SINKS}::test_a_table_whose_database_is_away_at_the_start_gets_everything_later"
_FOLDERS: Final = f"{_SINKS}::test_a_folder_that_is_not_mounted_holds_up_nobody"
_WEBHOOKS: Final = f"{_SINKS}::test_a_receiver_that_is_away_gets_each_epoch_once_in_order"

SOURCES: Final = {
    **dict.fromkeys(("parquet", "csv", "json", "arrow", "orc", "text"), _FILES),
    "avro": "runtime/outside/test_damaged_files.py::test_a_stream_goes_on_after_damaged_files",
    **dict.fromkeys(("nexmark", "push"), NOTHING),
}
"""By the name of the format."""

SINKS: Final = {
    **dict.fromkeys((SinkKind.PARQUET, SinkKind.JSON, SinkKind.CSV, SinkKind.ARROW), _FOLDERS),
    SinkKind.KAFKA: "runtime/delivery/test_topic_sink.py",
    SinkKind.WEBHOOK: _WEBHOOKS,
    SinkKind.TABLE: _TABLES,
}


def test_every_format_names_its_test() -> None:
    assert set(SOURCES) == set(FORMATS)


def test_every_kind_of_sink_names_its_test() -> None:
    assert set(SINKS) == set(SinkKind)


def test_the_named_tests_are_there() -> None:
    for named in {*SOURCES.values(), *SINKS.values()} - {NOTHING}:
        file, _, name = named.partition("::")
        tree = ast.parse((UNIT / file).read_text())
        names = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        assert not name or name in names, named
