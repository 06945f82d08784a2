-- Staged file trees, the sandboxes that were made from them, and what a sandbox was made from.

ALTER TABLE sandboxes ADD COLUMN inputs TEXT NOT NULL DEFAULT '[]';

CREATE TABLE uploads (
  id TEXT NOT NULL PRIMARY KEY,
  workspace_id TEXT NOT NULL,
  digest TEXT NOT NULL,
  size_bytes BIGINT NOT NULL,
  entries BIGINT NOT NULL,
  origin TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL
);
CREATE INDEX uploads_of_workspace ON uploads (workspace_id, created_at, id);
CREATE INDEX uploads_by_age ON uploads (created_at, id);
CREATE INDEX uploads_by_expiry ON uploads (expires_at, id);

CREATE TABLE upload_uses (
  upload_id TEXT NOT NULL REFERENCES uploads (id) ON DELETE CASCADE,
  sandbox_uid TEXT NOT NULL,
  PRIMARY KEY (upload_id, sandbox_uid)
);
