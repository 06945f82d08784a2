-- When a snapshot was deleted, what it was taken for, and what is in it.

ALTER TABLE snapshots ADD COLUMN deleted_at BIGINT;
ALTER TABLE snapshots ADD COLUMN cause TEXT NOT NULL DEFAULT 'request';
ALTER TABLE snapshots ADD COLUMN digest TEXT;
UPDATE snapshots SET deleted_at = created_at WHERE state = 'deleted';
CREATE INDEX snapshots_deleted ON snapshots (deleted_at) WHERE deleted_at IS NOT NULL;
