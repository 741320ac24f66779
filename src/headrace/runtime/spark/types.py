"""Between Spark's types and errors, and ours."""

from __future__ import annotations

from typing import Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from headrace.runtime.sources.widening import readable_schema
from headrace.schema import Schema

SPARK_ERRORS: Final = (PySparkException, Py4JJavaError)
"""What Spark raises; an exception that PySpark does not know, as of an unknown format, is the JVM's own."""


def reason_of(error: Exception) -> str:
    """The first line of what one of `SPARK_ERRORS` says."""
    told = error.java_exception.getMessage() if isinstance(error, Py4JJavaError) else error
    return str(told).partition("\n")[0]


def schema_of(frame: DataFrame) -> Schema:
    """The columns of a data frame whose types a stream can have, widened.

    Raises:
        SourceError: two columns have the same name except for case.
    """
    return readable_schema(to_arrow_schema(frame.schema, timezone="UTC"), "the data frame")


def struct_of(schema: Schema) -> StructType:
    """The same columns as Spark declares them."""
    struct: StructType = from_arrow_schema(schema.arrow())
    return struct
