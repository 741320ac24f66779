"""Streams, relations and user code: what they are read from, and what is known of their time."""
