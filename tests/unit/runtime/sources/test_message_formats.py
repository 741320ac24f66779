"""What is in messages as rows, by format; what cannot be read is set apart with its offset."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.elements import record_batch
from headrace.errors import AwayError, SourceError
from headrace.runtime.sources.messages import protobuf, registry
from headrace.runtime.sources.messages.formats import CsvMessages, JsonMessages, RawMessages
from headrace.runtime.sources.messages.messages import MessageRows, Messages, rows_of
from headrace.runtime.sources.messages.protobuf import DescribedMessages, RegisteredMessages
from headrace.runtime.sources.rows.contract import Read
from headrace.runtime.sources.text.csv import CsvFormat
from headrace.schema import BIGINT, BINARY, DOUBLE, STRING, TIMESTAMP, Field, Schema
from messages import messages, pieces


@dataclass(frozen=True)
class Fragile:
    """Raises for messages that have an x, as a library may; others are numbers."""

    error: Exception

    def read(self, label: str, given: Messages, wanted: Schema) -> MessageRows:
        values = [given.values[number] or b"" for number in range(len(given))]
        if any(b"x" in value for value in values):
            raise self.error
        rows = record_batch([pa.array([int(value) for value in values], BIGINT)], wanted, len(values))
        return Read(rows), np.arange(len(values))


@given(st.lists(st.sampled_from([b"1", b"22", b"x", b"3x"]), max_size=12))
def test_whatever_a_library_raises_is_a_dead_letter_of_its_message_alone(values: list[bytes]) -> None:
    wanted = Schema((Field("v", BIGINT), Field("_offset", BIGINT)))
    read = rows_of(Fragile(RuntimeError("oh")), messages(values, 10), wanted)
    good = [(int(value), 10 + n) for n, value in enumerate(values) if b"x" not in value]
    assert [tuple(row.values()) for row in read.rows.to_pylist()] == good
    assert [(one.place, one.text, one.reason) for one in read.rejected] == [
        (f"x/3:{10 + n}", value.decode(), "the message cannot be read: RuntimeError: oh")
        for n, value in enumerate(values)
        if b"x" in value
    ]


@pytest.mark.parametrize("error", [AwayError("the registry is away"), ConnectionResetError(), MemoryError()])
def test_what_is_away_makes_no_message_a_dead_letter(error: Exception) -> None:
    with pytest.raises(type(error)):
        rows_of(Fragile(error), messages([b"1", b"x"]), Schema((Field("v", BIGINT),)))


def test_headers_that_are_no_text_are_shown_or_kept_as_bytes() -> None:
    headers = [[("id", b"\x01\xffa"), ("none", None), ("id", b"\xc3\xa4\xff")], []]
    given_messages = replace(messages([b"1", b"2"]), headers=headers)
    form = Fragile(RuntimeError())
    for kind, value in ((STRING, "ä\\xff"), (BINARY, b"\xc3\xa4\xff")):
        wanted = Schema((Field("v", BIGINT), Field("_headers", pa.map_(STRING, kind))))
        read = rows_of(form, given_messages, wanted)
        assert read.rejected == ()
        assert read.rows.column(1).to_pylist() == [[("id", value), ("none", None)], []]


WANTED = Schema((Field("v", BIGINT), Field("t", STRING)))
CSV = CsvMessages(("v", "t"), CsvFormat(",", "", multiline=False))


def found(rows: MessageRows) -> tuple[list[tuple[Any, ...]], list[int], dict[str, str]]:
    """The rows, the numbers of their messages, and what is wrong by place."""
    read, numbers = rows
    values = [tuple(row.values()) for row in read.rows.to_pylist()]
    return values, numbers.tolist(), {one.place: one.reason for one in read.rejected}


@given(st.lists(st.none() | st.binary(max_size=5)))
def test_values_are_a_column_as_they_are(values: list[bytes | None]) -> None:
    assert pieces(values).column().to_pylist() == values
    assert [pieces(values)[number] for number in range(len(values))] == values


def test_messages_of_json_may_have_several_lines() -> None:
    values = [b'{"v": 1}', b'\n{"v":\n2, "t": "a"}\n', b"", b" \n ", None, b'{"v": 5}']
    assert found(JsonMessages().read("x/3", messages(values, 10), WANTED)) == (
        [(1, None), (2, "a"), (5, None)],
        [0, 1, 5],
        {
            "x/3:12": "the message is empty",
            "x/3:13": "the message is empty",
            "x/3:14": "the message has no value",
        },
    )


def test_the_number_of_a_schema_before_json_is_passed_over() -> None:
    values = [b'\0\0\0\0\n{"v": 1}', b'{"v": 2}', b"\0\0\0\0\1", b'\0\0\0\x02\0\n{"v":\n3}', b"\0\0\0\1"]
    rows, numbers, wrong = found(JsonMessages().read("x/3", messages(values), WANTED))
    assert (rows, numbers) == ([(1, None), (2, None), (3, None)], [0, 1, 3])
    assert wrong["x/3:2"] == "the message is empty"
    assert "not one JSON object" in wrong["x/3:4"]


def test_messages_of_csv_are_single_lines() -> None:
    values = [b"1,a\n", b"2,b\n3,c", b'4,"d, e"\r\n', b"5", None, b"x,f", b"7,"]
    assert found(CSV.read("x/3", messages(values), WANTED)) == (
        [(1, "a"), (4, "d, e"), (7, None)],
        [0, 2, 6],
        {
            "x/3:1": "the message has more than one line",
            "x/3:3": "the row has 1 fields, not 2",
            "x/3:4": "the message has no value",
            "x/3:5": "v is not a valid BIGINT: 'x'",
        },
    )


@given(
    st.lists(
        st.sampled_from([b"1,a", b"2,b\n", b" ", b"", None, b"3", b"x,y", b'4,"q"', b'5,"\n"', b"\xff,"])
    )
)
def test_each_message_of_csv_is_one_row_or_one_dead_letter(values: list[bytes | None]) -> None:
    rows, numbers, letters = found(CSV.read("x/3", messages(values, 100), WANTED))
    assert len(rows) == len(numbers)
    places = {f"x/3:{100 + number}" for number in range(len(values)) if number not in numbers}
    assert places == set(letters)
    for number, row in zip(numbers, rows, strict=True):
        assert found(CSV.read("x/3", messages([values[number]]), WANTED))[0] == [row]


def test_raw_messages_are_bytes_or_texts() -> None:
    values = [b"a\nb", b"", None, b"\xff"]
    column = Schema((Field("c", BINARY),))
    assert found(RawMessages().read("x/3", messages(values), column))[0] == [(value,) for value in values]
    column = Schema((Field("c", STRING),))
    assert found(RawMessages().read("x/3", messages(values), column)) == (
        [("a\nb",), ("",), (None,)],
        [0, 1, 2],
        {"x/3:3": "c is not UTF-8 text"},
    )


# --- Protobuf --------------------------------------------------------------------------------------------

KINDS = {"int64": 3, "double": 1, "string": 9, "uint64": 4, "bytes": 12}


def described() -> Any:
    """A file that describes `p.Bid`, whose fields are of all kinds, and `p.Loop`, a part of itself."""
    descriptors = pytest.importorskip("google.protobuf.descriptor_pb2")
    file = descriptors.FileDescriptorProto(name="bid.proto", package="p", syntax="proto3")
    file.dependency.append("google/protobuf/timestamp.proto")
    bid = file.message_type.add(name="Bid")
    for number, (name, kind) in enumerate(
        [("v", "int64"), ("price", "double"), ("t", "string"), ("big", "uint64")], 1
    ):
        bid.field.add(name=name, number=number, type=KINDS[kind], label=1)
    bid.field.add(name="at", number=5, type=11, type_name=".google.protobuf.Timestamp", label=1)
    bid.field.add(name="tags", number=6, type=9, label=3)
    bid.field.add(name="kind", number=7, type=14, type_name=".p.Kind", label=1)
    bid.field.add(name="who", number=8, type=11, type_name=".p.Bid.Who", label=1)
    bid.nested_type.add(name="Who").field.add(name="name", number=1, type=9, label=1)
    bid.field.add(name="counts", number=9, type=11, type_name=".p.Bid.CountsEntry", label=3)
    entry = bid.nested_type.add(name="CountsEntry", options=descriptors.MessageOptions(map_entry=True))
    entry.field.add(name="key", number=1, type=9, label=1)
    entry.field.add(name="value", number=2, type=3, label=1)
    kinds = file.enum_type.add(name="Kind")
    kinds.value.add(name="LOW", number=0)
    kinds.value.add(name="HIGH", number=1)
    file.message_type.add(name="Loop").field.add(name="next", number=1, type=11, type_name=".p.Loop", label=1)
    return file


def form() -> DescribedMessages:
    files = pytest.importorskip("google.protobuf.descriptor_pb2").FileDescriptorSet(file=[described()])
    return DescribedMessages(files.SerializeToString(), "p.Bid")


def bid(**values: Any) -> bytes:
    """A message `p.Bid`."""
    files = pytest.importorskip("google.protobuf.descriptor_pb2").FileDescriptorSet.FromString(form().files)
    pool = protobuf._pool(files.file)
    made = protobuf.protobuf("message_factory").GetMessageClass(pool.FindMessageTypeByName("p.Bid"))
    at, who = values.pop("at", None), values.pop("who", None)
    message = made(**values)
    if at is not None:
        message.at.FromDatetime(at)
    if who is not None:
        message.who.name = who
    data: bytes = message.SerializeToString()
    return data


AT = datetime(2026, 1, 2, 3, 4, 5, 678_900, tzinfo=UTC)
COLUMNS = Schema(
    (
        Field("V", BIGINT),
        Field("price", DOUBLE),
        Field("at", TIMESTAMP),
        Field("tags", pa.list_(STRING)),
        Field("kind", STRING),
        Field("who", pa.struct([pa.field("name", STRING)])),
        Field("counts", pa.map_(STRING, BIGINT)),
        Field("other", BIGINT),
    )
)


def test_messages_of_protobuf_have_columns_of_all_kinds() -> None:
    full = bid(v=1, price=0.5, at=AT, tags=["a", "b"], kind=1, who="w", counts={"b": 2, "a": 1})
    rows, numbers, letters = found(form().read("x/3", messages([full, b"", b"\xff", None]), COLUMNS))
    assert rows == [
        (1, 0.5, AT, ["a", "b"], "HIGH", {"name": "w"}, [("a", 1), ("b", 2)], None),
        # A message that is absent is NULL; a number that is absent is 0, and a list has nothing in it.
        (0, 0.0, None, [], "LOW", None, [], None),
    ]
    assert numbers == [0, 1]
    assert letters == {
        "x/3:2": "the message is not what its p.Bid says",
        "x/3:3": "the message has no value",
    }


def test_large_numbers_are_decimals_and_odd_timestamps_dead_letters() -> None:
    wanted = Schema((Field("v", BIGINT), Field("big", pa.decimal128(20))))
    # Seconds before the year 1, in a field 5 that has a field 1.
    odd = b"\x2a\x0b\x08" + b"\x80" * 9 + b"\x01"
    rows, numbers, letters = found(form().read("x/3", messages([odd, bid(v=2, big=2**64 - 1)]), wanted))
    assert (rows, numbers) == ([(2, 2**64 - 1)], [1])
    assert letters == {"x/3:0": f"a timestamp has {-(2**63)} seconds, which is beyond the years 1 to 9999"}


def test_what_is_not_described_is_refused() -> None:
    with pytest.raises(SourceError, match=r"there is no message p\.Bit, but p\.Bid, p\.Loop"):
        DescribedMessages(form().files, "p.Bit").check(Schema(()))
    with pytest.raises(SourceError, match="not one that protoc writes"):
        DescribedMessages(b"\xff\xff", "p.Bid").check(Schema(()))
    with pytest.raises(SourceError, match=r"v is int64 in p\.Bid, and not TIMESTAMP"):
        form().check(Schema((Field("v", TIMESTAMP),)))


def test_parts_that_hold_themselves_are_left_out_and_wrappers_are_what_they_wrap() -> None:
    descriptors = pytest.importorskip("google.protobuf.descriptor_pb2")
    file = descriptors.FileDescriptorProto(name="o.proto", package="o", syntax="proto3")
    file.dependency.extend(f"google/protobuf/{name}.proto" for name in ("struct", "wrappers"))
    order = file.message_type.add(name="Order")
    kinds = {"id": "Int64Value", "name": "StringValue", "extra": "Struct", "paid": "BoolValue"}
    for number, (name, kind) in enumerate(kinds.items(), 1):
        order.field.add(name=name, number=number, type=11, type_name=f".google.protobuf.{kind}", label=1)
    order.field.add(name="parts", number=9, type=11, type_name=".o.Order", label=3)
    files = descriptors.FileDescriptorSet(file=[file])
    orders = DescribedMessages(files.SerializeToString(), "o.Order")
    wanted = Schema((Field("id", BIGINT), Field("name", STRING), Field("paid", pa.bool_())))
    orders.check(wanted)
    made = protobuf.protobuf("message_factory").GetMessageClass(
        protobuf._pool(files.file).FindMessageTypeByName("o.Order")
    )
    message = made()
    message.id.value, message.name.value = 7, "n"
    message.extra["a"] = {"b": [1, None]}
    message.parts.add().id.value = 8
    rows, _, letters = found(
        orders.read("x/3", messages([message.SerializeToString(), made().SerializeToString()]), wanted)
    )
    assert (rows, letters) == ([(7, "n", None), (None, None, None)], {})
    for name in ("extra", "parts"):
        with pytest.raises(SourceError, match=f"{name} cannot be a column: .* has itself as a part"):
            orders.check(Schema((Field(name, STRING),)))


def test_descriptors_of_a_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    text = base64.b64encode(described().SerializeToString()).decode()
    answers = {
        7: {"schemaType": "PROTOBUF", "schema": text},
        8: {"schema": "{}"},
        9: {"schemaType": "PROTOBUF", "schema": text, "references": [{"name": "a.proto"}]},
    }
    asked = []

    def answer(address: str, number: int, form: str) -> bytes:
        asked.append((address, number, form))
        return json.dumps(answers[number]).encode()

    monkeypatch.setattr(registry, "_answer", answer)
    protobuf._registered.cache_clear()

    def framed(number: int, path: bytes, value: bytes) -> bytes:
        return b"\0" + number.to_bytes(4, "big") + path + value

    who = b"\n\x01w"
    values = [
        framed(7, b"\0", bid(v=1)),
        # The second message within the first one, and one that there is not.
        framed(7, b"\x04\0\0", who),
        framed(7, b"\x02\x08", b""),
        framed(8, b"\0", b""),
        framed(9, b"\0", b""),
        framed(7, b"\xff\xff\xff\xff\xff", b""),
    ]
    wanted = Schema((Field("v", BIGINT), Field("name", STRING)))
    rows, numbers, letters = found(RegisteredMessages("http://r").read("x/3", messages(values), wanted))
    assert (rows, numbers) == ([(1, None), (None, "w")], [0, 1])
    assert list(letters.values()) == [
        "schema 7 has no message 4",
        "schema 8 is not one of Protobuf",
        "schema 9 refers to other schemas, which are not looked up",
        "the message does not say which message of its schema it is",
    ]
    assert asked.count(("http://r", 7, "serialized")) == 3
