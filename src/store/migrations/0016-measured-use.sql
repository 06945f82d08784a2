-- What the programs of a sandbox took of its size: estimates learn from it.

ALTER TABLE meters ADD COLUMN millicpu BIGINT NOT NULL DEFAULT 1000;
ALTER TABLE meters ADD COLUMN memory_mb BIGINT NOT NULL DEFAULT 1024;
ALTER TABLE meters ADD COLUMN cpu_ms BIGINT;
ALTER TABLE meters ADD COLUMN peak_memory_mb BIGINT;
