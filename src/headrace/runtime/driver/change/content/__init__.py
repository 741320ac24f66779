"""What operators that are new begin with, and what queries have said so far."""
