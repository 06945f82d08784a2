-- What a workspace allows of routing, and quotes that lock a price.

ALTER TABLE workspaces ADD COLUMN policy TEXT;

CREATE TABLE quotes (
  id TEXT NOT NULL PRIMARY KEY,
  workspace_id TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  document TEXT NOT NULL
);
CREATE INDEX quotes_by_expiry ON quotes (expires_at);
