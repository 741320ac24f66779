"""The first rows of every snapshot, and which rows can still become one of them."""
