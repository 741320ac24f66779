"""Headrace: exact answers at every instant, from continuous SQL, on Apache Spark."""
