"""Typed files: Arrow, Parquet, ORC and Avro."""
