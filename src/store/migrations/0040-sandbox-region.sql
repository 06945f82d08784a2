-- The region of the host or backend that a sandbox is on; null where none is known.

ALTER TABLE sandboxes ADD COLUMN region TEXT;
