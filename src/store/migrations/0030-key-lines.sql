-- Which key succeeded and made which, what previews name a key by, and the scope that grants need.

ALTER TABLE api_keys ADD COLUMN number BIGINT NOT NULL DEFAULT 0;
ALTER TABLE api_keys ADD COLUMN rotated_from TEXT;
ALTER TABLE api_keys ADD COLUMN lines TEXT NOT NULL DEFAULT '[]';
ALTER TABLE api_keys ADD COLUMN budget_line TEXT NOT NULL DEFAULT '';

UPDATE api_keys SET
  number = (
    SELECT COUNT(*) FROM api_keys AS older
    WHERE older.created_at < api_keys.created_at
      OR (older.created_at = api_keys.created_at AND older.id <= api_keys.id)
  ),
  lines = '["' || id || '"]',
  budget_line = id,
  scopes = REPLACE(scopes, '"server"', '"billing","server"');

CREATE UNIQUE INDEX api_keys_by_number ON api_keys (number);
