-- How each attempt ended, for the health of its backend: read again after a restart, also when the sandbox is destroyed.

ALTER TABLE attempts ADD COLUMN judged_at BIGINT;
ALTER TABLE attempts ADD COLUMN judged_as TEXT;
ALTER TABLE attempts ADD COLUMN judged_load BIGINT;
UPDATE attempts SET judged_at = ended_at, judged_as = 'ready', judged_load = 1
 WHERE state = 'won' AND ended_at IS NOT NULL;
