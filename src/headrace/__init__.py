"""Headrace: exact answers at every instant, from continuous SQL, on Apache Spark.

A stream of bids, and the highest bid of the last five minutes, which has an answer at every instant:

    >>> import pyarrow as pa
    >>> import headrace as hr
    >>> bids = pa.table({"minute": [0, 3, 7], "item": ["vase", "vase", "vase"], "price": [10, 18, 15]})
    >>> with hr.connect(runner="inline") as db:
    ...     db.stream("bid", bids, timestamp="minute")
    ...     highest = db.query("SELECT item, MAX(price) AS highest FROM bid [RANGE 5] GROUP BY item")
    ...     summary = db.run()
    ...     rows = highest.history().to_pylist()
    >>> for row in rows:
    ...     print(row["highest"], "from", row["valid_from"], "to", row["valid_to"])
    10 from 0 to 3
    18 from 3 to 8
    15 from 8 to 12

The same query runs on Spark with `hr.connect()`, over files, pushed rows, data frames and Spark's streaming
sources, for as long as it is wanted. `docs/tutorial.md` is the way in; `docs/concepts.md` says what an answer
means.
"""

import importlib
import logging
from importlib.util import find_spec
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headrace.client import Client
    from headrace.engine import Database, Policy, Query, Summary, connect
    from headrace.engine.copies import StoreCopy, copy_store
    from headrace.engine.shown.status import Status
    from headrace.engine.stored import StoredDatabase, StoredQuery
    from headrace.engine.stored import open_store as open
    from headrace.engine.views.logs import history_of, log_of
    from headrace.errors import DeadLetterWarning, HeadraceError, HeadraceWarning, PolicyError, UserError
    from headrace.language.statements.streams import ByArrival
    from headrace.runtime.delivery.contract import Retry, Sink
    from headrace.runtime.delivery.files import FileSink
    from headrace.runtime.delivery.function import FunctionSink
    from headrace.runtime.delivery.table import TableSink
    from headrace.runtime.delivery.topic import TopicSink
    from headrace.runtime.delivery.webhook import WebhookSink
    from headrace.runtime.driver.facts.progress import Progress
    from headrace.time import BEGINNING, INFINITY

__all__ = [
    "BEGINNING",
    "INFINITY",
    "ByArrival",
    "Client",
    "Database",
    "DeadLetterWarning",
    "FileSink",
    "FunctionSink",
    "HeadraceError",
    "HeadraceWarning",
    "Policy",
    "PolicyError",
    "Progress",
    "Query",
    "Retry",
    "Sink",
    "Status",
    "StoreCopy",
    "StoredDatabase",
    "StoredQuery",
    "Summary",
    "TableSink",
    "TopicSink",
    "UserError",
    "WebhookSink",
    "connect",
    "copy_store",
    "history_of",
    "log_of",
    "open",
]
__version__ = "0.1.0"

_PLACES = MappingProxyType(
    {
        "BEGINNING": ("headrace.time", "BEGINNING"),
        "ByArrival": ("headrace.language.statements.streams", "ByArrival"),
        "Client": ("headrace.client", "Client"),
        "Database": ("headrace.engine", "Database"),
        "FileSink": ("headrace.runtime.delivery.files", "FileSink"),
        "FunctionSink": ("headrace.runtime.delivery.function", "FunctionSink"),
        "HeadraceError": ("headrace.errors", "HeadraceError"),
        "DeadLetterWarning": ("headrace.errors", "DeadLetterWarning"),
        "HeadraceWarning": ("headrace.errors", "HeadraceWarning"),
        "INFINITY": ("headrace.time", "INFINITY"),
        "Policy": ("headrace.engine", "Policy"),
        "PolicyError": ("headrace.errors", "PolicyError"),
        "Progress": ("headrace.runtime.driver.facts.progress", "Progress"),
        "Query": ("headrace.engine", "Query"),
        "Retry": ("headrace.runtime.delivery.contract", "Retry"),
        "Sink": ("headrace.runtime.delivery.contract", "Sink"),
        "Status": ("headrace.engine.shown.status", "Status"),
        "StoreCopy": ("headrace.engine.copies", "StoreCopy"),
        "StoredDatabase": ("headrace.engine.stored", "StoredDatabase"),
        "StoredQuery": ("headrace.engine.stored", "StoredQuery"),
        "Summary": ("headrace.engine", "Summary"),
        "TableSink": ("headrace.runtime.delivery.table", "TableSink"),
        "TopicSink": ("headrace.runtime.delivery.topic", "TopicSink"),
        "UserError": ("headrace.errors", "UserError"),
        "WebhookSink": ("headrace.runtime.delivery.webhook", "WebhookSink"),
        "connect": ("headrace.engine", "connect"),
        "copy_store": ("headrace.engine.copies", "copy_store"),
        "history_of": ("headrace.engine.views.logs", "history_of"),
        "log_of": ("headrace.engine.views.logs", "log_of"),
        "open": ("headrace.engine.stored", "open_store"),
    }
)
"""Where each name is, its module and its name there: a worker of Spark's needs none of them."""

# Without a handler of its own Python would print warnings that the program has not asked for.
logging.getLogger("headrace").addHandler(logging.NullHandler())

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """A name of this package, which is loaded when it is first used."""
        if name in _PLACES:
            module, there = _PLACES[name]
            found: object = getattr(importlib.import_module(module), there)
        elif not name.startswith("_") and find_spec(f"{__name__}.{name}") is not None:
            found = importlib.import_module(f"{__name__}.{name}")
        else:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
