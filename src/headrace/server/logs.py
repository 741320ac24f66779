"""Logs as JSON, one object a line, on standard error."""

from __future__ import annotations

import json
import logging
import sys
from typing import Final

from headrace.time import TimeDomain, format_instant

_FIELDS: Final = ("method", "path", "status", "milliseconds", "key")
"""What a request adds to its record."""


class JsonFormatter(logging.Formatter):
    """Writes a record as a JSON object: `at`, `level`, `logger`, `message`, and what was added to it."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line."""
        found = {
            "at": format_instant(int(record.created * 1e6), TimeDomain.TIMESTAMP),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        found |= {name: value for name in _FIELDS if (value := getattr(record, name, None)) is not None}
        if record.exc_info is not None:
            found["trace"] = self.formatException(record.exc_info)
        return json.dumps(found)


def log_as_json() -> None:
    """Write the logs of Headrace and of the HTTP server as JSON to standard error."""
    # The command line mutes libraries, whose errors it reports in its own words.
    logging.disable(logging.NOTSET)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    for name in ("headrace", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.INFO)
