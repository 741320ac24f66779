"""Windows that keep state: by rows, by session, and OVER."""
