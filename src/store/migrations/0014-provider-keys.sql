-- Keys of vendors, sealed; which of them an attempt used, and who paid.

CREATE TABLE provider_keys (
  id TEXT NOT NULL PRIMARY KEY,
  -- Empty for a key of the platform.
  workspace_id TEXT NOT NULL,
  extension_id TEXT NOT NULL,
  version BIGINT NOT NULL,
  label TEXT NOT NULL,
  sealed TEXT NOT NULL,
  hint TEXT NOT NULL,
  state TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  checked_at BIGINT NOT NULL,
  refused_at BIGINT
);
CREATE UNIQUE INDEX provider_keys_by_owner ON provider_keys (workspace_id, extension_id);

ALTER TABLE attempts ADD COLUMN provider_key_id TEXT;
CREATE INDEX attempts_of_provider_key ON attempts (provider_key_id)
  WHERE provider_key_id IS NOT NULL AND state <> 'gone';
ALTER TABLE snapshots ADD COLUMN provider_key_id TEXT;
CREATE INDEX snapshots_of_provider_key ON snapshots (provider_key_id) WHERE provider_key_id IS NOT NULL;
ALTER TABLE meters ADD COLUMN provider_key_id TEXT;
ALTER TABLE meters ADD COLUMN payer TEXT NOT NULL DEFAULT 'credits';
