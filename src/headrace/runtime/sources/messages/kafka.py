"""The library for Kafka, which the extra `kafka` installs; loaded where it is used first."""

from __future__ import annotations

import importlib
from typing import Any

from headrace.errors import UserError


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
