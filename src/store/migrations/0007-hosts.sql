-- Registered hosts, figures of them over time, and what an attempt takes of its host.

CREATE TABLE hosts (
  id TEXT NOT NULL PRIMARY KEY,
  version BIGINT NOT NULL,
  source TEXT NOT NULL,
  spec TEXT NOT NULL,
  state TEXT NOT NULL,
  health TEXT NOT NULL,
  created_at BIGINT NOT NULL
);

CREATE TABLE host_samples (
  host_id TEXT NOT NULL,
  kind TEXT NOT NULL,
  at BIGINT NOT NULL,
  data TEXT NOT NULL,
  PRIMARY KEY (host_id, kind, at)
);
CREATE INDEX host_samples_by_age ON host_samples (at);

ALTER TABLE attempts ADD COLUMN reserved_millicpu BIGINT NOT NULL DEFAULT 0;
ALTER TABLE attempts ADD COLUMN reserved_memory_mb BIGINT NOT NULL DEFAULT 0;
CREATE INDEX attempts_on_host ON attempts (host_id) WHERE state <> 'gone';
