"""Headrace: exact answers at every instant, from continuous SQL, on Apache Spark."""

from headrace.engine import Database, Query, Summary, connect
from headrace.errors import HeadraceError, UserError
from headrace.runtime.epochs import Progress

__all__ = ["Database", "HeadraceError", "Progress", "Query", "Summary", "UserError", "connect"]
__version__ = "0.1.0"
