-- Trials of hosts that are under way: what a dead process left of them is found by these rows.

CREATE TABLE canaries (
  attempt_id TEXT NOT NULL PRIMARY KEY,
  sandbox_uid TEXT NOT NULL,
  host_id TEXT NOT NULL,
  extension_id TEXT NOT NULL,
  started_at BIGINT NOT NULL
);

-- What is on a host, newest first; it serves the sums as well.
DROP INDEX attempts_on_host;
CREATE INDEX attempts_of_host ON attempts (host_id, started_at, attempt_id) WHERE state <> 'gone';
