"""Whatever reaches outside names its test with toxic peers; what is new fails here until it has one."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import headrace
from headrace.language.statements.formats import FILE_FORMATS, FORMATS
from headrace.language.statements.streams import WEB
from headrace.runtime.delivery.kinds import SinkKind

SOURCE: Final = Path(headrace.__file__).parent
UNIT: Final = Path(__file__).parents[2]
NOTHING: Final = ""
"""For what reaches nothing outside: rows are computed, or pushed."""
_TRANSFERS: Final = "runtime/outside/test_broken_transfers.py"
_SINKS: Final = "runtime/outside/test_away_sinks.py"
_GONE: Final = "runtime/outside/test_gone_at_opening.py"
_FILES: Final = f"{_TRANSFERS}::test_a_run_over_a_file_ends_with_all_rows_or_none"
_POLLS: Final = f"{_TRANSFERS}::test_an_answer_that_breaks_off_counts_once_when_it_is_whole"
_REFRESHED: Final = f"{_TRANSFERS}::test_a_refresh_that_breaks_off_changes_nothing"
_OPENED: Final = f"{_GONE}::test_queries_go_on_without_what_they_have_read"
_REGISTRY: Final = "runtime/outside/test_away_registries.py::test_a_registry_that_is_not_well_is_away"
_TABLES: Final = f"{_SINKS}::test_a_table_whose_database_is_away_at_the_start_gets_everything_later"
_FOLDERS: Final = f"{_SINKS}::test_a_folder_that_is_not_mounted_holds_up_nobody"
_TOPICS: Final = (
    "runtime/outside/test_away_topic_sink.py::test_a_topic_whose_broker_is_away_gets_each_epoch_once_in_order"
)
_WEBHOOKS: Final = f"{_SINKS}::test_a_receiver_that_is_away_gets_each_epoch_once_in_order"
_MESSAGES: Final = "runtime/intake/test_topic_feed.py"

SOURCES: Final = {
    **dict.fromkeys(("parquet", "csv", "json", "arrow", "orc", "text"), _FILES),
    "avro": "runtime/outside/test_damaged_files.py::test_a_stream_goes_on_after_damaged_files",
    WEB: _POLLS,
    **dict.fromkeys(("nexmark", "push"), NOTHING),
}
"""By the name of the format."""

RELATIONS: Final = dict.fromkeys(FILE_FORMATS, (_OPENED, _REFRESHED))
"""By the name of the format: when a store is opened, and when it is read again."""

SINKS: Final = {
    **dict.fromkeys((SinkKind.PARQUET, SinkKind.JSON, SinkKind.CSV, SinkKind.ARROW), _FOLDERS),
    SinkKind.KAFKA: _TOPICS,
    SinkKind.WEBHOOK: _WEBHOOKS,
    SinkKind.TABLE: _TABLES,
}

USERS: Final = {
    "runtime/delivery/kinds.py": _TABLES,
    "runtime/delivery/record_forms.py": _TOPICS,
    "runtime/delivery/topic.py": _TOPICS,
    "runtime/delivery/topic_beside.py": _TOPICS,
    "runtime/delivery/webhook.py": _WEBHOOKS,
    "runtime/intake/brokers.py": _MESSAGES,
    "runtime/intake/topic.py": _MESSAGES,
    "runtime/intake/web.py": _POLLS,
    "runtime/intake/web_pages.py": "engine/inputs/test_web_pages.py",
    "runtime/sources/files/remote.py": _FILES,
    "runtime/sources/messages/librdkafka.py": _MESSAGES,
    "runtime/sources/messages/registry.py": _REGISTRY,
}
"""By the module: whatever goes through a part of the door that connects."""

CONNECTING: Final = tuple(f"headrace.runtime.outside.{part}" for part in ("web", "databases", "kafka"))


def test_every_format_names_its_test() -> None:
    assert set(SOURCES) == {*FORMATS, WEB}


def test_every_format_of_a_relation_names_its_tests() -> None:
    assert set(RELATIONS) == set(FILE_FORMATS)


def test_every_kind_of_sink_names_its_test() -> None:
    assert set(SINKS) == set(SinkKind)


def test_every_module_that_connects_names_its_test() -> None:
    found = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if any(name in CONNECTING for name in imported(path))
    }
    assert found == set(USERS)


def imported(path: Path) -> Iterator[str]:
    """The modules that a file imports from."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
            yield from (f"{node.module}.{one.name}" for one in node.names)


def test_the_named_tests_are_there() -> None:
    relations = (name for names in RELATIONS.values() for name in names)
    for named in {*SOURCES.values(), *SINKS.values(), *USERS.values(), *relations} - {NOTHING}:
        file, _, name = named.partition("::")
        tree = ast.parse((UNIT / file).read_text())
        names = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        assert not name or name in names, named
