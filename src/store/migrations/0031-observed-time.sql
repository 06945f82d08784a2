-- How much of the billed time the backend's own figure covers; older figures are of a moment that is not known.

ALTER TABLE meters ADD COLUMN observed_ms BIGINT;
