-- Of a ready attempt: how long the request's own inputs and setup took, which says nothing of the backend.

ALTER TABLE attempts ADD COLUMN judged_own_ms BIGINT;
