-- User sessions: how many bids did a user make in each session, until 10 seconds without one?
-- As printed, with the session as a function in FROM, as Flink writes it today.
SELECT bidder, COUNT(*) AS bid_count, window_start AS starttime, window_end AS endtime
FROM TABLE(SESSION(TABLE bid PARTITION BY bidder, DESCRIPTOR(ts), INTERVAL '10' SECOND))
GROUP BY bidder, window_start, window_end;
