"""Messages of a compacted topic as rows that replace those of their keys, or delete them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from headrace.algebra.debezium import UPSERT_OPERATION
from headrace.elements import BoolArray, Int64Array, record_batch
from headrace.runtime.sources.messages.messages import MessageFormat, MessageRows, Messages, rejected
from headrace.runtime.sources.rows.contract import Read, Rejected
from headrace.schema import STRING, Schema


@dataclass(frozen=True)
class UpsertMessages:
    """The key of a message says which row it is of, and its value the rest of it; without one it is deleted.

    Attributes:
        columns: those of the key.
        key: how keys are read.
        value: how values are read.
    """

    columns: tuple[str, ...]
    key: MessageFormat
    value: MessageFormat

    def read(self, label: str, messages: Messages, wanted: Schema) -> MessageRows:
        """The rows of some messages.

        Args:
            label: what the messages are of.
            messages: they, with their keys.
            wanted: the columns of keys and values, and that of the operation.
        """
        assert messages.keys is not None
        of_keys, keyed, wrong = self._keys(label, messages, _some(wanted, self.columns))
        is_there = messages.values.lengths >= 0
        rest = [name for name in wanted.names if name not in (*self.columns, UPSERT_OPERATION)]
        of_values, valued = self._values(label, messages, _some(wanted, rest), is_there)
        known = np.zeros(len(messages), np.bool_)
        known[keyed] = True
        has_value = np.zeros(len(messages), np.bool_)
        has_value[valued] = True
        numbers: Int64Array = np.flatnonzero(known & (has_value | ~is_there))
        rows = {
            **_taken(of_keys.rows, np.searchsorted(keyed, numbers), None),
            **_taken(of_values.rows, np.searchsorted(valued, numbers), ~is_there[numbers]),
        }
        words = np.where(is_there[numbers], "update", "delete")
        rows[UPSERT_OPERATION] = pa.array(words.tolist(), STRING)
        # A message of which both cannot be read is one dead letter.
        twice = {one.place for one in wrong}
        refused = (*wrong, *(one for one in of_values.rejected if one.place not in twice))
        batch = record_batch([rows[name] for name in wanted.names], wanted, len(numbers))
        return Read(batch, refused), numbers

    def _keys(
        self, label: str, messages: Messages, wanted: Schema
    ) -> tuple[Read, Int64Array, tuple[Rejected, ...]]:
        """What keys say, the messages of which they are, and those whose key says nothing."""
        keys = messages.keys
        assert keys is not None
        there = np.flatnonzero(keys.lengths >= 0)
        missing = np.flatnonzero(keys.lengths < 0).tolist()
        read, numbers = self.key.read(label, _chosen(messages, there, keys.take(there)), wanted)
        # As dead letters they are shown by their values, like all others.
        offsets = {f"{label}:{offset}": number for number, offset in enumerate(messages.offsets.tolist())}
        wrong = [
            *(rejected(label, messages, number, "the message has no key") for number in missing),
            *(
                rejected(label, messages, offsets[one.place], f"its key cannot be read: {one.reason}")
                for one in read.rejected
            ),
        ]
        return read, there[numbers], tuple(wrong)

    def _values(
        self, label: str, messages: Messages, wanted: Schema, is_there: BoolArray
    ) -> tuple[Read, Int64Array]:
        """What values say, and the messages of which they are."""
        there = np.flatnonzero(is_there)
        if not len(wanted):
            return Read(record_batch([], wanted, len(there))), there
        read, numbers = self.value.read(label, _chosen(messages, there, messages.values.take(there)), wanted)
        return read, there[numbers]


def _some(schema: Schema, names: tuple[str, ...] | list[str]) -> Schema:
    return Schema(tuple(field for field in schema if field.name in names))


def _chosen(messages: Messages, numbers: Int64Array, values: pa.Array) -> Messages:
    return replace(messages, offsets=messages.offsets[numbers], values=values, keys=None)


def _taken(rows: pa.RecordBatch, places: Int64Array, missing: BoolArray | None) -> dict[str, pa.Array]:
    """Some rows' columns by name, NULL where there is no row."""
    chosen = pa.array(places, pa.int64(), mask=missing)
    return {name: rows.column(place).take(chosen) for place, name in enumerate(rows.schema.names)}
