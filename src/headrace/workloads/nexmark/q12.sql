-- Bids by the clock: how many bids came from a user in each 10 seconds in which they arrived?
-- As printed; a stream that is timed by arrival has the column that PROCTIME() makes. The answer is another in each run.
SELECT bidder, COUNT(*) AS bid_count, window_start AS starttime, window_end AS endtime
FROM TABLE(TUMBLE(TABLE arriving, DESCRIPTOR(arrival), INTERVAL '10' SECOND))
GROUP BY bidder, window_start, window_end;
