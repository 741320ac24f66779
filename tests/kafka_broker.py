"""A Kafka broker of a test's own, where Maven, Java and confluent-kafka are installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def kafka_broker(folder: Path) -> Iterator[str]:
    """A broker that runs within the block; its bootstrap server. Without it the test is skipped.

    Args:
        folder: where it keeps its data and its log.
    """
    found = pytest.importorskip("broker", reason="confluent-kafka is not installed", exc_type=ImportError)
    try:
        running = found.running_broker(folder)
        address = running.__enter__()
    except found.NoBrokerError as error:
        pytest.skip(str(error))
    try:
        yield address
    finally:
        running.__exit__(None, None, None)
