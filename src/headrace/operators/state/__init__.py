"""What operators keep: sorted runs in sweep areas, a schedule of what comes, and timelines over both."""
