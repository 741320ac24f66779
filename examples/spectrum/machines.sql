-- Machines that installed a patch and did not come up within ten minutes: an alert for five minutes each.
-- Somebody walks to the machine, so that a wrong alert is dear: STRONG.
CREATE STREAM event (ts TIMESTAMP, machine STRING, kind STRING)
  FROM csv OPTIONS (path 'machines.csv') TIMESTAMP BY ts DISORDER 40 MINUTES;

SELECT i.machine
FROM (SELECT machine FROM event WINDOW(LIFETIME (ts + INTERVAL 10 MINUTES, 5 MINUTES)) WHERE kind = 'install') i
WHERE NOT EXISTS (SELECT 1 FROM event [RANGE 15 MINUTES] u WHERE u.kind = 'up' AND u.machine = i.machine);
