"""What a run tells of itself: status, progress, counts, and the streams that describe it."""
