-- The average price of each share in the last six hours, every hour. Who trades needs it at once, and whoever has
-- traded at a price that is corrected within 72 hours may back out: MIDDLE.
CREATE STREAM tick (ts TIMESTAMP, op STRING, symbol STRING, price BIGINT)
  FROM csv OPTIONS (path 'ticker.csv') CHANGES BY op TIMESTAMP BY ts CORRECTIONS WITHIN 72 HOURS;

SELECT symbol, AVG(price) AS price FROM tick [RANGE 6 HOURS SLIDE 1 HOUR] GROUP BY symbol;
