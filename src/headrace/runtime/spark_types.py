"""Between Spark's types and ours."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from headrace.runtime.sources.widening import readable_schema
from headrace.schema import Schema


def schema_of(frame: DataFrame) -> Schema:
    """The columns of a data frame whose types a stream can have, widened.

    Raises:
        SourceError: two columns have the same name but for their case.
    """
    return readable_schema(to_arrow_schema(frame.schema, timezone="UTC"), "the data frame")


def struct_of(schema: Schema) -> StructType:
    """The same columns as Spark declares them."""
    struct: StructType = from_arrow_schema(schema.arrow())
    return struct
