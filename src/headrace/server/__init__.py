"""The server: one database for many clients over HTTP, with who may do what, and changes as they come.

`serving` begins it; it and what it loads need the libraries of the extra `server`, the rest does not.
"""
