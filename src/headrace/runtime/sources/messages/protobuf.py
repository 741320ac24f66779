"""Messages of Protobuf, whose descriptors are in a file or in a registry."""

from __future__ import annotations

import base64
import binascii
import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, TypeAlias

import pyarrow as pa

from headrace.errors import SourceError
from headrace.runtime.sources.messages.messages import MessageRows, Messages
from headrace.runtime.sources.messages.registry import UnusableError, head_of, registered
from headrace.runtime.sources.messages.typed import Written, rows_of_records
from headrace.schema import Schema

USER: Final = "FROM kafka with the format protobuf"
_TIMESTAMP: Final = "google.protobuf.Timestamp"
_WRAPPERS: Final = frozenset(
    f"google.protobuf.{name}Value"
    for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)
"""Messages with one value, for values that may be absent."""
_SECONDS: Final = range(-719_162 * 86_400, 2_932_897 * 86_400)
"""The seconds that a timestamp may have: of the years 1 to 9999."""
_SIMPLE: Final = {
    1: pa.float64(),
    2: pa.float32(),
    3: pa.int64(),
    4: pa.uint64(),
    5: pa.int32(),
    6: pa.uint64(),
    7: pa.uint32(),
    8: pa.bool_(),
    9: pa.string(),
    12: pa.binary(),
    13: pa.uint32(),
    15: pa.int32(),
    16: pa.int64(),
    17: pa.int32(),
    18: pa.int64(),
}
"""The types of Arrow's by the numbers that `descriptor.proto` gives to types of fields."""

ProtobufReader: TypeAlias = Callable[[Any], Any]
"""What makes a value of Python's out of one of Protobuf's."""


@dataclass(frozen=True)
class DescribedMessages:
    """Each message is one of a type that is described in a file.

    Attributes:
        files: a `FileDescriptorSet`, as `protoc --include_imports --descriptor_set_out` writes it.
        message: the name of the type, with its package.
    """

    files: bytes = field(repr=False)
    message: str

    def read(self, label: str, messages: Messages, wanted: Schema) -> MessageRows:
        """The rows of some messages; columns that their type does not have are NULL."""
        return rows_of_records(label, messages, wanted, self._decode)

    def check(self, wanted: Schema) -> None:
        """See that the type can be read, and has the columns that are wanted as they are declared.

        Args:
            wanted: the columns; what the type does not have is NULL.

        Raises:
            SourceError: it cannot, or is not in the file.
        """
        hint = "check the options descriptor and message"
        try:
            written = _described(self.files, self.message).written
            hint = "leave the column out, or declare it as it is"
            for column in wanted:
                written.check(column)
        except UnusableError as error:
            raise SourceError(str(error), hint=hint) from None

    def _decode(self, message: bytes | None) -> tuple[Written, list[dict[str, Any]]]:
        if message is None:
            raise UnusableError("the message has no value")
        return _described(self.files, self.message).read(message)


@dataclass(frozen=True)
class RegisteredMessages:
    """Each message is one of a type that is described in a registry.

    Attributes:
        registry: its address; there may be a password in it.
    """

    registry: str = field(repr=False)

    def read(self, label: str, messages: Messages, wanted: Schema) -> MessageRows:
        """The rows of some messages; columns that a message's type does not have are NULL."""
        return rows_of_records(label, messages, wanted, self._decode)

    def _decode(self, message: bytes | None) -> tuple[Written, list[dict[str, Any]]]:
        number, rest = head_of(message)
        path, value = _path_of(rest)
        return _registered(self.registry, number, path).read(value)


@dataclass(frozen=True, eq=False)
class _Type:
    """A type of messages.

    Attributes:
        made: makes an empty message.
        written: its columns.
        values: what makes their values, by name.
    """

    made: Callable[[], Any]
    written: Written
    values: dict[str, ProtobufReader]

    def read(self, data: bytes) -> tuple[Written, list[dict[str, Any]]]:
        message = self.made()
        try:
            message.ParseFromString(data)
        except protobuf("message").DecodeError:
            raise UnusableError(f"the message is not what its {self.written.name} says") from None
        return self.written, [{name: value(message) for name, value in self.values.items()}]


def protobuf(part: str) -> Any:
    """A module of the package protobuf.

    Args:
        part: its name.

    Raises:
        SourceError: the package is not installed.
    """
    try:
        return importlib.import_module(f"google.protobuf.{part}")
    except ImportError:
        raise SourceError(
            f"{USER} needs the package protobuf", hint="pip install 'headrace[protobuf]'"
        ) from None


@lru_cache(maxsize=100)
def _described(files: bytes, message: str) -> _Type:
    """A type that a file describes.

    Raises:
        UnusableError: it is not there, or cannot be read.
    """
    try:
        found = protobuf("descriptor_pb2").FileDescriptorSet.FromString(files)
    except protobuf("message").DecodeError:
        raise UnusableError("the descriptor is not one that protoc writes") from None
    pool = _pool(found.file)
    try:
        descriptor = pool.FindMessageTypeByName(message)
    except KeyError:
        names = [f"{one.package}.{kind.name}".lstrip(".") for one in found.file for kind in one.message_type]
        raise UnusableError(f"there is no message {message}, but {', '.join(names)}") from None
    return _type_of(descriptor, message)


@lru_cache(maxsize=1_000)
def _registered(registry: str, number: int, path: tuple[int, ...]) -> _Type:
    """A type that a schema of a registry describes.

    Args:
        registry: its address.
        number: of the schema.
        path: which message of the schema, and of those within it.

    Raises:
        SourceError: the registry does not answer.
        UnusableError: it is not there, or cannot be read.
    """
    text, name = registered(registry, number, "PROTOBUF", "serialized"), f"schema {number}"
    try:
        file = protobuf("descriptor_pb2").FileDescriptorProto.FromString(
            base64.b64decode(text, validate=True)
        )
    except (binascii.Error, protobuf("message").DecodeError):
        raise UnusableError(f"{name} is not a descriptor") from None
    file.name = file.name or name
    within = [*_pool([file]).FindFileByName(file.name).message_types_by_name.values()]
    descriptor: Any = None
    for place in path:
        if place >= len(within):
            raise UnusableError(f"{name} has no message {'.'.join(map(str, path))}")
        descriptor = within[place]
        within = descriptor.nested_types
    return _type_of(descriptor, f"{descriptor.full_name} of {name}")


def _pool(files: Any) -> Any:
    """What finds the descriptors of files and of what they need."""
    pool = protobuf("descriptor_pool").DescriptorPool()
    there = {file.name for file in files}
    try:
        for file in files:
            for needed in file.dependency:
                # What belongs to Protobuf itself is in no schema.
                if needed not in there and needed.startswith("google/protobuf/"):
                    part = protobuf(f"{needed.removeprefix('google/protobuf/').removesuffix('.proto')}_pb2")
                    pool.AddSerializedFile(part.DESCRIPTOR.serialized_pb)
            pool.AddSerializedFile(file.SerializeToString())
    except (TypeError, SourceError) as error:
        raise UnusableError(f"the descriptor lacks what it needs: {error}") from None
    return pool


def _type_of(descriptor: Any, name: str) -> _Type:
    made = protobuf("message_factory").GetMessageClass(descriptor)
    columns, values, left_out = [], {}, {}
    for one in descriptor.fields:
        try:
            column, values[one.name] = _part(one, (descriptor.full_name,))
            columns.append(column)
        except UnusableError as error:
            left_out[one.name] = str(error)
    return _Type(made, Written(name, pa.schema(columns), left_out), values)


def _columns(descriptor: Any, within: tuple[str, ...]) -> tuple[list[pa.Field], dict[str, ProtobufReader]]:
    """The parts of a type, and what makes their values of a message.

    Args:
        descriptor: of the type.
        within: the types that it is a part of.

    Raises:
        UnusableError: it is a part of itself.
    """
    if descriptor.full_name in within:
        raise UnusableError(f"{descriptor.full_name} has itself as a part")
    parts = {one.name: _part(one, (*within, descriptor.full_name)) for one in descriptor.fields}
    return [column for column, _ in parts.values()], {name: value for name, (_, value) in parts.items()}


def _part(one: Any, within: tuple[str, ...]) -> tuple[pa.Field, ProtobufReader]:
    """A field as a column, and what makes its value of a message."""
    kind, value = _field(one, within)
    return pa.field(one.name, kind), _reader(one.name, value, one.has_presence)


def _reader(name: str, value: ProtobufReader, has_presence: bool) -> ProtobufReader:
    """What makes the value of a field out of its message; NULL where one that may be absent is."""
    if has_presence:
        return lambda message: value(getattr(message, name)) if message.HasField(name) else None
    return lambda message: value(getattr(message, name))


def _field(one: Any, within: tuple[str, ...]) -> tuple[pa.DataType, ProtobufReader]:
    """The type of a field, and what makes a value of it."""
    if one.message_type is not None and one.message_type.GetOptions().map_entry:
        key, of = (one.message_type.fields_by_name[name] for name in ("key", "value"))
        (key_type, _), (kind, value) = _single(key, within), _single(of, within)
        return pa.map_(key_type, kind), lambda found: [(each, value(found[each])) for each in sorted(found)]
    kind, value = _single(one, within)
    if not one.is_repeated:
        return kind, value
    return pa.list_(kind), lambda found: [value(each) for each in found]


def _single(one: Any, within: tuple[str, ...]) -> tuple[pa.DataType, ProtobufReader]:
    if one.enum_type is not None:
        # A number that the type does not know has no name.
        names = {value.number: value.name for value in one.enum_type.values}
        return pa.string(), lambda number: names.get(number, str(number))
    if one.message_type is None:
        return _SIMPLE[one.type], lambda value: value
    if one.message_type.full_name == _TIMESTAMP:
        return pa.timestamp("us", "UTC"), _instant
    if one.message_type.full_name in _WRAPPERS:
        kind, value = _single(one.message_type.fields_by_name["value"], within)
        return kind, lambda message: value(message.value)
    columns, values = _columns(one.message_type, within)
    return pa.struct(columns), lambda message: {name: value(message) for name, value in values.items()}


def _instant(at: Any) -> int:
    if at.seconds not in _SECONDS:
        raise UnusableError(f"a timestamp has {at.seconds} seconds, which is beyond the years 1 to 9999")
    return int(at.seconds * 1_000_000 + at.nanos // 1_000)


def _path_of(data: bytes) -> tuple[tuple[int, ...], bytes]:
    """Which message of its schema a value is of, and the value.

    Raises:
        UnusableError: that is not there.
    """
    count, rest = _number(data)
    path = []
    for _ in range(count):
        place, rest = _number(rest)
        path.append(place)
    # A single zero is short for the first message.
    return tuple(path) or (0,), rest


def _number(data: bytes) -> tuple[int, bytes]:
    """A number of as many bytes as it needs, and what is behind it."""
    found = 0
    for place, byte in enumerate(data[:5]):
        found |= (byte & 127) << (7 * place)
        if byte < 128:
            number = (found >> 1) ^ -(found & 1)
            if 0 <= number < 1_000:
                return number, data[place + 1 :]
            break
    raise UnusableError("the message does not say which message of its schema it is")
