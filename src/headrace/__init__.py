"""Headrace: exact answers at every instant, from continuous SQL, on Apache Spark."""

from headrace.engine import Database, Query, Summary, connect
from headrace.errors import HeadraceError, UserError
from headrace.runtime.delivery.contract import Retry, Sink
from headrace.runtime.delivery.files import FileSink
from headrace.runtime.delivery.function import FunctionSink
from headrace.runtime.driver.progress import Progress

__all__ = [
    "Database",
    "FileSink",
    "FunctionSink",
    "HeadraceError",
    "Progress",
    "Query",
    "Retry",
    "Sink",
    "Summary",
    "UserError",
    "connect",
]
__version__ = "0.1.0"
