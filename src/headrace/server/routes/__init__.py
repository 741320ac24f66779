"""The routes of the server, one file per kind of thing."""
