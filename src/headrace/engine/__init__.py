"""The composition root: a database of streams and continuous queries, and what users do with them."""

from headrace.engine.database import Database, connect
from headrace.engine.query import Query
from headrace.engine.summary import StreamSummary, Summary

__all__ = ["Database", "Query", "StreamSummary", "Summary", "connect"]
