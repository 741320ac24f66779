"""The composition root: a database of streams and continuous queries, and what users do with them."""

from headrace.engine.access.policy import Policy
from headrace.engine.connection import connect
from headrace.engine.database import Database
from headrace.engine.query.query import Query
from headrace.engine.shown.display import show_tables_in_notebooks
from headrace.engine.shown.summary import StreamSummary, Summary

__all__ = ["Database", "Policy", "Query", "StreamSummary", "Summary", "connect"]

show_tables_in_notebooks()
