"""Headrace: exact answers at every instant, from continuous SQL, on Apache Spark."""

__version__ = "0.1.0"
