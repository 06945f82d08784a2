-- Webhooks, the audit log, deletable tenants, and what a sink is judged by.

-- A sink that nobody delivers to does not keep events from being forgotten.
ALTER TABLE outbox_cursors ADD COLUMN active BIGINT NOT NULL DEFAULT 1;
ALTER TABLE outbox_cursors ADD COLUMN taken_at BIGINT;
CREATE INDEX outbox_waiting ON outbox_parked (sink_id, seq) WHERE dead = 0;
CREATE INDEX outbox_dead ON outbox_parked (next_at) WHERE dead = 1;

ALTER TABLE orgs ADD COLUMN deleted_at BIGINT;
ALTER TABLE workspaces ADD COLUMN deleted_at BIGINT;

CREATE TABLE webhooks (
  id TEXT NOT NULL PRIMARY KEY,
  workspace_id TEXT NOT NULL,
  version BIGINT NOT NULL,
  url TEXT NOT NULL,
  types TEXT,
  description TEXT NOT NULL,
  sealed_secret TEXT NOT NULL,
  previous_secret TEXT,
  created_at BIGINT NOT NULL,
  enabled_at BIGINT NOT NULL,
  disabled TEXT,
  event_seq BIGINT NOT NULL
);
CREATE INDEX webhooks_of_workspace ON webhooks (workspace_id, created_at, id);

CREATE TABLE audit_log (
  seq INTEGER NOT NULL PRIMARY KEY,
  at BIGINT NOT NULL,
  workspace_id TEXT NOT NULL,
  key_id TEXT,
  actor TEXT NOT NULL,
  consumer TEXT NOT NULL,
  action TEXT NOT NULL,
  target TEXT NOT NULL,
  outcome TEXT NOT NULL,
  request_id TEXT,
  details TEXT NOT NULL
);
CREATE INDEX audit_log_of_workspace ON audit_log (workspace_id, seq);
CREATE INDEX audit_log_by_age ON audit_log (at, seq);

CREATE TRIGGER audit_log_is_not_changed BEFORE UPDATE ON audit_log
BEGIN
  SELECT RAISE(ABORT, 'a record of the audit log is never changed');
END;
