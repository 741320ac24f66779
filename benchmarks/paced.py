"""Rows that come at a steady pace, on Flink: the rows, and how long their answers took."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from latency import EVENT_RATE, Latencies, events_of
from peers import write_columns_of, write_events
from systems import FOLDER


@dataclass(frozen=True)
class Pace:
    """Which rows come when.

    Attributes:
        rate: bids per second.
        every: seconds between two batches.
        warm_up: seconds that are not counted.
        seconds: those that are.
    """

    rate: float
    every: float
    warm_up: float
    seconds: float

    @property
    def events(self) -> int:
        """Of a batch."""
        return events_of(self.rate, self.every)

    @property
    def batches(self) -> int:
        """In all."""
        return round((self.warm_up + self.seconds) / self.every)

    def data(self) -> Path:
        """Where Flink's rows are; they are written where they are missing."""
        folder = FOLDER / "data" / f"{self.events * self.batches}-paced"
        write_events(folder, self.events * self.batches, files=8, rate=EVENT_RATE)
        write_columns_of(folder)
        return folder

    def latencies(self, notes: np.ndarray) -> Latencies:
        """The time that the answers of the counted batches took.

        Args:
            notes: int64[batches, 2], for each batch the nanoseconds to the last row and the number of rows.
        """
        due = np.arange(len(notes)) * self.every
        counted = (notes[:, 1] > 0) & (due >= self.warm_up)
        # At the end of the rows, the rest becomes final.
        counted[self.batches :] = False
        return Latencies.of((notes[:, 0] / 1e9 - due)[counted])


def read_notes(folder: Path) -> np.ndarray:
    """The notes of all instances of Flink's sink, as if they were one: int64[batches, 2]."""
    parts = [np.fromfile(path, "<i8").reshape(-1, 2) for path in folder.glob("*.longs")]
    notes = np.zeros((max(map(len, parts)), 2), np.int64)
    for part in parts:
        notes[: len(part), 0] = np.maximum(notes[: len(part), 0], part[:, 0])
        notes[: len(part), 1] += part[:, 1]
    return notes
