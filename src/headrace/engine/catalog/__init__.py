"""The definitions of a database as one value, and as texts that a durable store keeps."""
