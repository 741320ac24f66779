"""A client of `headrace serve`, which needs nothing but the standard library and Arrow."""

from headrace.client.client import Client, Columns
from headrace.client.errors import GoneError
from headrace.client.subscription import RemoteChange, RemoteSubscription

__all__ = ["Client", "Columns", "GoneError", "RemoteChange", "RemoteSubscription"]
