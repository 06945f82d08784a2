-- What the setup commands of a profile wrote, by attempt.

CREATE TABLE setup_logs (
  attempt_id TEXT NOT NULL PRIMARY KEY,
  sandbox_uid TEXT NOT NULL,
  document TEXT NOT NULL
);
CREATE INDEX setup_logs_by_sandbox ON setup_logs (sandbox_uid);
