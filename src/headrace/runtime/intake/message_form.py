"""How the messages of a topic are read, as the options of its stream say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from headrace.algebra.debezium import UPSERT_OPERATION
from headrace.errors import SourceError
from headrace.language.statements.formats import ChangeRecords
from headrace.runtime.outside.trouble import reading
from headrace.runtime.sources.columnar.avro import fastavro
from headrace.runtime.sources.files.files import list_files
from headrace.runtime.sources.messages import avro, protobuf
from headrace.runtime.sources.messages.avro_changes import AvroChanges
from headrace.runtime.sources.messages.formats import ChangeMessages, CsvMessages, JsonMessages, RawMessages
from headrace.runtime.sources.messages.messages import METADATA, MessageFormat
from headrace.runtime.sources.messages.protobuf import DescribedMessages, RegisteredMessages
from headrace.runtime.sources.messages.upserts import UpsertMessages
from headrace.runtime.sources.rows import written_times
from headrace.runtime.sources.rows.options import check_known, missing_of, required
from headrace.runtime.sources.rows.written_times import times_of
from headrace.runtime.sources.text.csv import FORM_OPTIONS, csv_format
from headrace.runtime.sources.text.debezium import RecordSource
from headrace.schema import BINARY, STRING, Field, Schema, sql_type

_OPTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "json": (*written_times.OPTIONS, "missing"),
    "csv": (*FORM_OPTIONS, *written_times.OPTIONS),
    "avro": ("schema_registry",),
    "protobuf": ("schema_registry", "descriptor", "message"),
    "raw": (),
    "debezium": (),
}
"""The formats, and the options of each."""

FORMAT_OPTIONS: Final = tuple(
    dict.fromkeys(("form", "key_format", *(name for names in _OPTIONS.values() for name in names)))
)
"""The options that some format has."""


def form_of(
    options: Mapping[str, str],
    schema: Schema,
    records: ChangeRecords | None,
    base: Path,
    allowed: tuple[Path, ...] | None,
    key: Sequence[str] = (),
) -> MessageFormat:
    """How messages are read.

    Args:
        options: of the stream.
        schema: the columns that are declared.
        records: how change records of Debezium are read; None where messages are rows.
        base: the folder that relative paths are relative to.
        allowed: the folders in which files may be read; None for all.
        key: the columns that are in the keys of messages, of upserts.

    Raises:
        SourceError: there is no such format, or it does not fit the columns.
    """
    if records is ChangeRecords.UPSERT:
        return _upserts(options, schema, base, allowed, key)
    _refuse_keys(options)
    name = options.get("format", "json").lower()
    if name not in _OPTIONS:
        raise SourceError(
            f"messages have no format {name}", hint=f"the formats are {', '.join(list(_OPTIONS)[:-1])}"
        )
    check_known(name, {one: "" for one in options if one in FORMAT_OPTIONS}, _OPTIONS[name])
    beside = [field for field in schema if field.name in METADATA]
    for field in beside:
        if field.type not in METADATA[field.name]:
            raise SourceError(
                f"the column {field.name} is {sql_type(field.type)}",
                hint=f"declare it as {' or '.join(map(sql_type, METADATA[field.name]))}",
            )
    if records is not None:
        return _changes(name, options, schema, records, beside)
    values = tuple(field for field in schema if field.name not in METADATA)
    match name:
        case "csv":
            times = times_of(options, schema)
            return CsvMessages(Schema(values).names, csv_format(options, times, multiline=False))
        case "raw":
            return _raw(values)
        case "avro":
            fastavro(avro.USER)
            return avro.AvroMessages(_registry(options))
        case "protobuf":
            return _protobuf(options, Schema(values), base, allowed)
        case "debezium":
            raise SourceError("the form of changes is a clause", hint="write FORMAT DEBEZIUM")
        case _:
            needed = () if missing_of(options, "some") == "null" else Schema(values).names
            return JsonMessages(times_of(options, schema), needed)


def _refuse_keys(options: Mapping[str, str]) -> None:
    """Refuse options of upserts where messages are something else."""
    for name in ("form", "key_format"):
        if name in options:
            raise SourceError(
                f"the option {name} is '{options[name]}'",
                hint="leave it out; form 'upsert', with KEY (column) before FROM, reads the present row of "
                "each key",
            )


def _changes(
    name: str, options: Mapping[str, str], schema: Schema, records: ChangeRecords, beside: Sequence[Field]
) -> MessageFormat:
    if name not in ("json", "debezium", "avro"):
        raise SourceError(
            f"FORMAT DEBEZIUM reads JSON and Avro, and the format is '{name}'",
            hint="leave it out, or write format 'avro', schema_registry 'https://host:8081'",
        )
    if beside and records is ChangeRecords.BY_ROW:
        raise SourceError(
            f"{beside[0].name} is of the message, so that a row and its correction differ in it",
            hint="leave it out, or write KEY (column) before FROM",
        )
    if name == "avro":
        fastavro(avro.USER)
        return AvroChanges(_registry(options), records)
    return ChangeMessages(RecordSource(schema, (), 0, records))


def _upserts(
    options: Mapping[str, str],
    schema: Schema,
    base: Path,
    allowed: tuple[Path, ...] | None,
    key: Sequence[str],
) -> MessageFormat:
    """How the messages of a compacted topic are read."""
    value_format = options.get("format", "json").lower()
    key_format = options.get("key_format", value_format).lower()
    known = [{*_OPTIONS.get(name, ()), "form", "key_format"} for name in (value_format, key_format)]
    check_known(value_format, {one: "" for one in options if one in FORMAT_OPTIONS}, tuple(set.union(*known)))
    of_key = [field for field in schema if field.name.lower() in [name.lower() for name in key]]
    kept = [field for field in of_key if field.name not in METADATA]
    if kept != of_key and (kept or [field.name for field in of_key] != ["_key"]):
        raise SourceError(
            "the key of upserts is _key alone, or columns that are within it", hint="write KEY (_key)"
        )
    beside = [field for field in schema if field.name in METADATA]
    rest = [f for f in schema if f not in of_key and f.name not in (*METADATA, UPSERT_OPERATION)]

    def form(name: str, fields: Sequence[Field]) -> MessageFormat:
        chosen = {one: text for one, text in options.items() if one in _OPTIONS.get(name, ())}
        return form_of({**chosen, "format": name}, Schema((*fields, *beside)), None, base, allowed)

    keys = form(key_format, kept) if kept else RawMessages()
    values = form(value_format, rest) if rest else RawMessages()
    return UpsertMessages(tuple(field.name for field in kept), keys, values)


def _raw(values: Sequence[Field]) -> MessageFormat:
    if len(values) > 1 or any(field.type not in (STRING, BINARY) for field in values):
        raise SourceError(
            "raw messages are one column of STRING or BINARY",
            hint=f"besides it there may be {', '.join(METADATA)}",
        )
    return RawMessages()


def _registry(options: Mapping[str, str]) -> str:
    registry = required(options, "schema_registry")
    if not registry.startswith(("http://", "https://")):
        raise SourceError("the schema registry is not an address", hint="write 'https://host:8081'")
    return registry


def _protobuf(
    options: Mapping[str, str], values: Schema, base: Path, allowed: tuple[Path, ...] | None
) -> MessageFormat:
    protobuf.protobuf("message")
    if "schema_registry" in options:
        if "descriptor" in options or "message" in options:
            raise SourceError("a registry says what messages are", hint="leave out descriptor and message")
        return RegisteredMessages(_registry(options))
    if "descriptor" not in options:
        raise SourceError(
            "the option descriptor or schema_registry is missing",
            hint="write descriptor 'file', as protoc --include_imports --descriptor_set_out writes it",
        )
    (path, label), *others = list_files(options["descriptor"], base, allowed)
    if others:
        raise SourceError(f"{options['descriptor']} is several files", hint="name one")
    with reading(label, "descriptor"), path.open("rb") as file:
        form = DescribedMessages(file.read(), required(options, "message"))
    form.check(values)
    return form
