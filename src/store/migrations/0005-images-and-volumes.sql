-- What a workspace keeps by name. The record itself is a document; the columns are what it is looked up by.
CREATE TABLE images (
  id TEXT NOT NULL PRIMARY KEY,
  workspace_id TEXT NOT NULL,
  version BIGINT NOT NULL,
  shared BIGINT NOT NULL,
  state TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT,
  record TEXT NOT NULL
);
CREATE INDEX images_of_workspace ON images (workspace_id, created_at, id);
CREATE INDEX images_shared ON images (shared, created_at, id) WHERE shared = 1;
CREATE INDEX images_due ON images (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX images_deleting ON images (created_at, id) WHERE state = 'deleting';

CREATE TABLE volumes (
  id TEXT NOT NULL PRIMARY KEY,
  workspace_id TEXT NOT NULL,
  version BIGINT NOT NULL,
  shared BIGINT NOT NULL,
  state TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT,
  record TEXT NOT NULL
);
CREATE INDEX volumes_of_workspace ON volumes (workspace_id, created_at, id);
CREATE INDEX volumes_shared ON volumes (shared, created_at, id) WHERE shared = 1;
CREATE INDEX volumes_due ON volumes (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX volumes_deleting ON volumes (created_at, id) WHERE state = 'deleting';
