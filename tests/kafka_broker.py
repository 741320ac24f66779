"""A Kafka broker of a test's own, where Maven, Java and confluent-kafka are installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest


@contextmanager
def kafka_broker(folder: Path) -> Iterator[str]:
    """A broker that runs within the block; its bootstrap server. Without it the test is skipped.

    Args:
        folder: where it keeps its data and its log.
    """
    with mortal_broker(folder) as broker:
        yield broker.address


@contextmanager
def mortal_broker(folder: Path) -> Iterator[Any]:
    """The same, as what may be killed and started again: `Broker` of `scripts/broker.py`."""
    found = pytest.importorskip("broker", reason="confluent-kafka is not installed", exc_type=ImportError)
    with ExitStack() as stack:
        try:
            broker = stack.enter_context(found.running_broker(folder))
        except found.NoBrokerError as error:
            pytest.skip(str(error))
        yield broker
