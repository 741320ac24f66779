"""A local server that speaks S3, for tests."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.fs

KEY, SECRET = "mallory", "open-sesame"


@dataclass(frozen=True)
class ObjectStore:
    """A bucket on the server.

    Attributes:
        endpoint: the address of the server.
        bucket: the bucket's name.
    """

    endpoint: str
    bucket: str

    @property
    def options(self) -> dict[str, str]:
        return {"access_key": KEY, "secret_key": SECRET, "region": "us-east-1", "endpoint": self.endpoint}

    @property
    def in_sql(self) -> str:
        return (
            f"endpoint '{self.endpoint}', region 'us-east-1', access_key '{KEY}', secret_key SECRET 'store'"
        )

    def _system(self) -> pyarrow.fs.S3FileSystem:
        return pyarrow.fs.S3FileSystem(
            access_key=KEY,
            secret_key=SECRET,
            region="us-east-1",
            endpoint_override=self.endpoint.removeprefix("http://"),
            scheme="http",
            allow_bucket_creation=True,
        )

    def put(self, name: str, data: bytes) -> str:
        """Write an object; its URL."""
        with self._system().open_output_stream(f"{self.bucket}/{name}", compression=None) as stream:
            stream.write(pa.py_buffer(data))
        return f"s3://{self.bucket}/{name}"

    def remove(self, name: str) -> None:
        self._system().delete_file(f"{self.bucket}/{name}")


@contextmanager
def object_store(bucket: str) -> Iterator[ObjectStore]:
    """A server with an empty bucket."""
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        _, port = server.get_host_and_port()
        store = ObjectStore(f"http://127.0.0.1:{port}", bucket)
        store._system().create_dir(bucket)
        yield store
    finally:
        server.stop()
