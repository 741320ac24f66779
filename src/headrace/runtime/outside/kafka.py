"""The library for Kafka, which the extra `kafka` installs; loaded where it is used first."""

from __future__ import annotations

import importlib
from typing import Any, Final

from headrace.errors import UserError

BESIDE: Final = "-headrace-later"
"""How the name of the topic ends that has what a sink was said of later instants."""

_AWAY: Final = (
    *("_TRANSPORT", "_ALL_BROKERS_DOWN", "_TIMED_OUT", "_RESOLVE", "_WAIT_COORD", "_TIMED_OUT_QUEUE"),
    *("LEADER_NOT_AVAILABLE", "NOT_LEADER_FOR_PARTITION", "REQUEST_TIMED_OUT", "BROKER_NOT_AVAILABLE"),
    *("COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS", "NOT_COORDINATOR", "NETWORK_EXCEPTION"),
    *("NOT_ENOUGH_REPLICAS", "CONCURRENT_TRANSACTIONS", "_STATE"),
)
"""What Kafka's errors are called that pass."""


def is_away_of_kafka(error: Any) -> bool:
    """Whether an error of Kafka's says that its brokers cannot answer for now.

    Args:
        error: a `KafkaError`.
    """
    return error.name() in _AWAY or bool(error.retriable())


def confluent_kafka(user: str, part: str = "") -> Any:
    """The package confluent-kafka, or a module of it.

    Args:
        user: what needs it, for the error.
        part: the module, such as `admin`.

    Raises:
        UserError: it is not installed.
    """
    try:
        return importlib.import_module(f"confluent_kafka.{part}" if part else "confluent_kafka")
    except ModuleNotFoundError as error:
        raise UserError(
            f"{user} needs the package confluent-kafka", hint="pip install 'headrace[kafka]'"
        ) from error
