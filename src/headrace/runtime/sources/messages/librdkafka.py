"""Messages of Kafka as columns, by the library in C that confluent-kafka brings along.

confluent-kafka makes an object of each message, which takes longer than to parse it. So messages are fetched
through the C interface of its librdkafka, the header `rdkafka.h`, and copied by a kernel: a vector of
pointers becomes the bytes of all values one after the other.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import POINTER, c_char_p, c_int, c_int32, c_int64, c_size_t, c_ssize_t, c_void_p
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np

from headrace.elements import Int64Array
from headrace.errors import SourceError, UserError
from headrace.runtime.outside.kafka import confluent_kafka
from headrace.runtime.sources.messages.memory import KEY, VALUE, copy, look, measure, release, select, times
from headrace.runtime.sources.messages.messages import Beside, Header, Messages, Pieces

_CONSUMER: Final = 1
_ERROR_BYTES: Final = 512


@dataclass(frozen=True)
class ReachedOffsets:
    """What the messages that have come say.

    Attributes:
        offset: of the message that comes next at the earliest.
        rows: how many messages there are so far.
        size: the bytes of their values.
        is_gone: whether the offset that was asked for is not there.
    """

    offset: int
    rows: int
    size: int
    is_gone: bool


class Reader:
    """A connected consumer of partitions, one at a time.

    Args:
        user: what needs it, for errors.
        settings: those of librdkafka.

    Raises:
        SourceError: a setting is wrong.
        UserError: confluent-kafka is not installed.
    """

    def __init__(self, user: str, settings: Sequence[tuple[str, str]]) -> None:
        self._library = _library(user)
        error = ctypes.create_string_buffer(_ERROR_BYTES)
        chosen = self._library.rd_kafka_conf_new()
        for name, value in settings:
            if self._library.rd_kafka_conf_set(chosen, name.encode(), value.encode(), error, _ERROR_BYTES):
                self._library.rd_kafka_conf_destroy(chosen)
                raise SourceError(f"the brokers cannot be reached in this way: {error.value.decode()}")
        self._client = self._library.rd_kafka_new(_CONSUMER, chosen, error, _ERROR_BYTES)
        if not self._client:
            self._library.rd_kafka_conf_destroy(chosen)
            raise SourceError(f"the brokers cannot be reached in this way: {error.value.decode()}")
        self._library.rd_kafka_poll_set_consumer(self._client)
        self._queue = self._library.rd_kafka_queue_get_consumer(self._client)
        self._waiting = np.zeros(0, np.int64)
        self._count = 0

    def assign(self, topic: str, partition: int, offset: int) -> None:
        """Read a partition from an offset on; what has come of another one is thrown away."""
        self._release()
        chosen = self._library.rd_kafka_topic_partition_list_new(1)
        name = topic.encode()
        self._library.rd_kafka_topic_partition_list_add(chosen, name, partition)
        self._library.rd_kafka_topic_partition_list_set_offset(chosen, name, partition, offset)
        self._library.rd_kafka_assign(self._client, chosen)
        self._library.rd_kafka_topic_partition_list_destroy(chosen)

    def unassign(self) -> None:
        """Read nothing more for now."""
        self._release()
        self._library.rd_kafka_assign(self._client, None)

    def await_some(self, most: int, seconds: float, since: ReachedOffsets) -> ReachedOffsets:
        """Wait until messages have come, and keep them.

        Args:
            most: how many are taken at most.
            seconds: how long to wait for the first.
            since: what those that were kept before say.
        """
        if self._count + most > len(self._waiting):
            self._waiting = np.concatenate((self._waiting[: self._count], np.zeros(4 * most, np.int64)))
        place = self._waiting.ctypes.data + self._waiting.itemsize * self._count
        take = self._library.rd_kafka_consume_batch_queue
        # To ask for more than one means to wait until so many have come.
        come = take(self._queue, 0, place, most) or take(self._queue, int(1_000 * seconds), place, 1)
        if come <= 0:
            return since
        found = np.empty(4, np.int64)
        look(self._waiting, self._count, self._count + come, since.offset, found)
        self._count += come
        offset, rows, size, is_gone = found.tolist()
        return ReachedOffsets(offset, since.rows + rows, since.size + size, bool(is_gone))

    def messages(self, topic: str, partition: int, end: int, beside: Beside) -> Messages:
        """The messages that were kept, which are let go.

        Args:
            topic, partition: of which they are.
            end: the offset at which those end that are wanted.
            beside: what is wanted besides their values.
        """
        pointers = self._waiting[: self._count]
        try:
            offsets = np.empty(self._count, np.int64)
            # Of those that remain, the pointers come first.
            rows = select(pointers, end, offsets)
            chosen = pointers[:rows]
            return Messages(
                topic,
                partition,
                offsets[:rows],
                _pieces(chosen, VALUE),
                _pieces(chosen, KEY) if "_key" in beside else None,
                self._times(chosen) if "_timestamp" in beside else None,
                [self._headers(one) for one in chosen.tolist()] if "_headers" in beside else None,
            )
        finally:
            self._release()

    def close(self) -> None:
        """Disconnect."""
        self._release()
        self._library.rd_kafka_queue_destroy(self._queue)
        self._library.rd_kafka_destroy(self._client)

    def _release(self) -> None:
        destroy = ctypes.cast(self._library.rd_kafka_message_destroy, c_void_p).value
        assert destroy is not None
        release(destroy, self._waiting, self._count)
        self._count = 0

    def _times(self, pointers: Int64Array) -> Int64Array:
        function = ctypes.cast(self._library.rd_kafka_message_timestamp, c_void_p).value
        assert function is not None
        found = np.empty(len(pointers), np.int64)
        times(function, pointers, np.empty(1, np.int64), found)
        return found

    def _headers(self, pointer: int) -> list[Header]:
        headers = c_void_p()
        if self._library.rd_kafka_message_headers(pointer, ctypes.byref(headers)):
            return []
        name, value, size = c_char_p(), c_void_p(), c_size_t()
        found: list[Header] = []
        while not self._library.rd_kafka_header_get_all(
            headers, len(found), ctypes.byref(name), ctypes.byref(value), ctypes.byref(size)
        ):
            data = None if value.value is None else ctypes.string_at(value.value, size.value)
            found.append(((name.value or b"").decode("utf-8", "replace"), data))
        return found


@lru_cache(maxsize=1)
def _library(user: str) -> Any:
    """The library, with the types of what is used of it."""
    # A search in the module of confluent-kafka finds what is in the libraries that it was linked to.
    found = ctypes.CDLL(confluent_kafka(user, "cimpl").__file__)
    for name, (result, arguments) in _FUNCTIONS.items():
        function = getattr(found, name, None)
        if function is None:
            raise UserError(
                f"{user} cannot use this build of confluent-kafka: it does not show {name} of librdkafka",
                hint="install confluent-kafka from PyPI",
            )
        function.restype, function.argtypes = result, arguments
    return found


_FUNCTIONS: Final[dict[str, tuple[Any, list[Any]]]] = {
    "rd_kafka_conf_new": (c_void_p, []),
    "rd_kafka_conf_set": (c_int, [c_void_p, c_char_p, c_char_p, c_char_p, c_size_t]),
    "rd_kafka_conf_destroy": (None, [c_void_p]),
    "rd_kafka_new": (c_void_p, [c_int, c_void_p, c_char_p, c_size_t]),
    "rd_kafka_destroy": (None, [c_void_p]),
    "rd_kafka_poll_set_consumer": (c_int, [c_void_p]),
    "rd_kafka_queue_get_consumer": (c_void_p, [c_void_p]),
    "rd_kafka_queue_destroy": (None, [c_void_p]),
    "rd_kafka_assign": (c_int, [c_void_p, c_void_p]),
    "rd_kafka_topic_partition_list_new": (c_void_p, [c_int]),
    "rd_kafka_topic_partition_list_add": (c_void_p, [c_void_p, c_char_p, c_int32]),
    "rd_kafka_topic_partition_list_set_offset": (c_int, [c_void_p, c_char_p, c_int32, c_int64]),
    "rd_kafka_topic_partition_list_destroy": (None, [c_void_p]),
    "rd_kafka_consume_batch_queue": (c_ssize_t, [c_void_p, c_int, c_void_p, c_size_t]),
    "rd_kafka_message_destroy": (None, [c_void_p]),
    "rd_kafka_message_timestamp": (c_int64, [c_void_p, c_void_p]),
    "rd_kafka_message_headers": (c_int, [c_void_p, POINTER(c_void_p)]),
    "rd_kafka_header_get_all": (
        c_int,
        [c_void_p, c_size_t, POINTER(c_char_p), POINTER(c_void_p), POINTER(c_size_t)],
    ),
}


def _pieces(pointers: Int64Array, word: int) -> Pieces:
    lengths = np.empty(len(pointers), np.int64)
    size = measure(pointers, word, lengths)
    begins, data = np.empty(len(pointers), np.int64), np.empty(size, np.uint8)
    copy(pointers, word, lengths, begins, data)
    return Pieces(data, begins, lengths)
