"""Messages of topics and of push: their formats, their schemas, and reading a topic's range."""
