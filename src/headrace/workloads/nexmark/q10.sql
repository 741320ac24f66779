-- Log to files: every bid, with the day and the minute that it is logged under.
-- As printed; a sink writes the answer to files, which are not named by day and minute.
SELECT auction, bidder, price, ts, extra,
  DATE_FORMAT(ts, 'yyyy-MM-dd') AS dt, DATE_FORMAT(ts, 'HH:mm') AS hm
FROM bid;
