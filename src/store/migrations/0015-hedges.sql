-- Attempts that run side by side: when the second is due, which one it was started next to, which one was ready first.

ALTER TABLE attempts ADD COLUMN hedge_at BIGINT;
ALTER TABLE attempts ADD COLUMN hedges BIGINT;
ALTER TABLE attempts ADD COLUMN outrun_by BIGINT;
