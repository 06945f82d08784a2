-- Times are milliseconds since 1970, booleans 0 or 1, documents JSON text, whole numbers beyond 64 bits decimal text.
-- Portable but for the triggers and for two ways to have one B-tree less to write: INTEGER PRIMARY KEY, WITHOUT ROWID.
-- Every page that a commit changes is written to the disk while its caller waits: an index has to be worth it.

CREATE TABLE settings (
  name TEXT NOT NULL PRIMARY KEY,
  value TEXT NOT NULL
);

-- Numbers are taken by updating the row: in the order of the commits, without holes, and never twice.
CREATE TABLE sequences (
  name TEXT NOT NULL PRIMARY KEY,
  value BIGINT NOT NULL
);
INSERT INTO sequences (name, value) VALUES ('events', 0);

CREATE TABLE orgs (
  id TEXT NOT NULL PRIMARY KEY,
  name TEXT NOT NULL,
  created_at BIGINT NOT NULL
);

CREATE TABLE workspaces (
  id TEXT NOT NULL PRIMARY KEY,
  org_id TEXT NOT NULL,
  name TEXT NOT NULL,
  created_at BIGINT NOT NULL
);

CREATE TABLE api_keys (
  id TEXT NOT NULL PRIMARY KEY,
  workspace_id TEXT NOT NULL,
  name TEXT NOT NULL,
  secret_hash TEXT NOT NULL UNIQUE,
  actor TEXT NOT NULL,
  scopes TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT,
  revoked_at BIGINT,
  last_used_at BIGINT
);

CREATE TABLE profiles (
  workspace_id TEXT NOT NULL,
  id TEXT NOT NULL,
  version TEXT NOT NULL,
  profile TEXT NOT NULL,
  source TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (workspace_id, id, version)
);

CREATE TABLE idempotency_keys (
  workspace_id TEXT NOT NULL,
  key TEXT NOT NULL,
  request_digest TEXT NOT NULL,
  result TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (workspace_id, key)
) WITHOUT ROWID;
CREATE INDEX idempotency_keys_by_age ON idempotency_keys (created_at);

CREATE TABLE sandboxes (
  uid TEXT NOT NULL PRIMARY KEY,
  id TEXT NOT NULL,
  workspace_id TEXT NOT NULL,
  org_id TEXT NOT NULL,
  generation BIGINT NOT NULL,
  version BIGINT NOT NULL,
  state TEXT NOT NULL,
  state_since BIGINT NOT NULL,
  pause_kind TEXT,
  profile_id TEXT NOT NULL,
  profile_version TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  request_digest TEXT NOT NULL,
  scope TEXT NOT NULL,
  reuse_key TEXT,
  labels TEXT NOT NULL,
  consumer TEXT NOT NULL,
  actor TEXT NOT NULL,
  key_id TEXT,
  elevated BIGINT NOT NULL,
  exposed_secrets TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  ready_at BIGINT,
  last_activity_at BIGINT,
  deadline_at BIGINT NOT NULL,
  max_deadline_at BIGINT NOT NULL,
  idle_reap_seconds BIGINT,
  idle_deadline_at BIGINT,
  attempt BIGINT,
  extension_id TEXT,
  host_id TEXT,
  isolation TEXT,
  handle TEXT,
  reachability TEXT,
  notes TEXT NOT NULL,
  failure TEXT,
  operation TEXT,
  recreating BIGINT NOT NULL,
  lease_owner TEXT,
  lease_token TEXT,
  lease_until BIGINT,
  work_due_at BIGINT,
  hold_id TEXT,
  meter_id TEXT,
  event_seq BIGINT NOT NULL,
  -- Derived from the columns above by store/sandbox-watch.ts, to be searched by.
  harness TEXT,
  session_id TEXT,
  run_id TEXT,
  job_id TEXT,
  claimable_at BIGINT,
  watched_deadline_at BIGINT,
  watched_idle_at BIGINT,
  established_on TEXT
);
CREATE UNIQUE INDEX sandboxes_present_by_id ON sandboxes (id, workspace_id) WHERE state <> 'destroyed';
CREATE INDEX sandboxes_destroyed_by_id ON sandboxes (id, workspace_id, created_at, uid) WHERE state = 'destroyed';
CREATE UNIQUE INDEX sandboxes_by_reuse_key ON sandboxes (workspace_id, reuse_key) WHERE reuse_key IS NOT NULL;
CREATE INDEX sandboxes_of_workspace ON sandboxes (workspace_id, state, created_at, uid);
CREATE INDEX sandboxes_by_age ON sandboxes (created_at, uid);
CREATE INDEX sandboxes_by_session ON sandboxes (session_id) WHERE session_id IS NOT NULL;
CREATE INDEX sandboxes_by_run ON sandboxes (run_id) WHERE run_id IS NOT NULL;
CREATE INDEX sandboxes_by_job ON sandboxes (job_id) WHERE job_id IS NOT NULL;
CREATE INDEX sandboxes_claimable ON sandboxes (claimable_at, uid) WHERE claimable_at IS NOT NULL;
CREATE INDEX sandboxes_with_deadline ON sandboxes (watched_deadline_at, uid) WHERE watched_deadline_at IS NOT NULL;
CREATE INDEX sandboxes_idle ON sandboxes (watched_idle_at, uid) WHERE watched_idle_at IS NOT NULL;
CREATE INDEX sandboxes_established ON sandboxes (established_on, uid) WHERE established_on IS NOT NULL;
CREATE INDEX sandboxes_destroyed ON sandboxes (state_since, uid) WHERE state = 'destroyed';

-- created_at is the sandbox's, so that one label's sandboxes are found in the order of the list.
CREATE TABLE sandbox_labels (
  sandbox_uid TEXT NOT NULL REFERENCES sandboxes (uid) ON DELETE CASCADE,
  name TEXT NOT NULL,
  value TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (sandbox_uid, name)
) WITHOUT ROWID;
CREATE INDEX sandbox_labels_by_value ON sandbox_labels (name, value, created_at, sandbox_uid);

CREATE TABLE sandbox_documents (
  uid TEXT NOT NULL,
  generation BIGINT NOT NULL,
  request TEXT NOT NULL,
  recipe TEXT NOT NULL,
  plan TEXT NOT NULL,
  origin TEXT NOT NULL,
  PRIMARY KEY (uid, generation)
);

CREATE TABLE attempts (
  attempt_id TEXT NOT NULL PRIMARY KEY,
  sandbox_uid TEXT NOT NULL,
  generation BIGINT NOT NULL,
  n BIGINT NOT NULL,
  extension_id TEXT NOT NULL,
  host_id TEXT,
  state TEXT NOT NULL,
  handle TEXT,
  creation TEXT,
  error TEXT,
  started_at BIGINT NOT NULL,
  provisioned_at BIGINT,
  ended_at BIGINT,
  teardown_tries BIGINT NOT NULL,
  teardown_error TEXT,
  stuck_since BIGINT
);
CREATE INDEX attempts_of_sandbox ON attempts (sandbox_uid, generation, n);

CREATE TABLE events (
  seq INTEGER NOT NULL PRIMARY KEY,
  id TEXT NOT NULL,
  at BIGINT NOT NULL,
  type TEXT NOT NULL,
  workspace_id TEXT NOT NULL,
  subject TEXT NOT NULL,
  subject_seq BIGINT NOT NULL,
  sandbox_uid TEXT,
  sandbox_id TEXT,
  generation BIGINT,
  state TEXT,
  previous_state TEXT,
  actor TEXT NOT NULL,
  consumer TEXT NOT NULL,
  details TEXT NOT NULL
);
CREATE INDEX events_of_workspace ON events (workspace_id, seq);
CREATE INDEX events_of_sandbox ON events (sandbox_uid, seq) WHERE sandbox_uid IS NOT NULL;
CREATE INDEX events_by_age ON events (at, seq);

CREATE TABLE outbox_cursors (
  sink_id TEXT NOT NULL PRIMARY KEY,
  cursor BIGINT NOT NULL
);

CREATE TABLE outbox_parked (
  sink_id TEXT NOT NULL,
  seq BIGINT NOT NULL,
  subject TEXT NOT NULL,
  tries BIGINT NOT NULL,
  next_at BIGINT NOT NULL,
  last_error TEXT NOT NULL,
  dead BIGINT NOT NULL,
  PRIMARY KEY (sink_id, seq)
);
CREATE INDEX outbox_parked_by_seq ON outbox_parked (seq);

CREATE TABLE snapshots (
  id TEXT NOT NULL PRIMARY KEY,
  workspace_id TEXT NOT NULL,
  version BIGINT NOT NULL,
  name TEXT,
  sandbox_uid TEXT NOT NULL,
  sandbox_id TEXT NOT NULL,
  generation BIGINT NOT NULL,
  profile_id TEXT NOT NULL,
  profile_version TEXT NOT NULL,
  recipe TEXT NOT NULL,
  extension_id TEXT NOT NULL,
  host_id TEXT,
  kind TEXT NOT NULL,
  state TEXT NOT NULL,
  ref TEXT NOT NULL,
  size_bytes BIGINT,
  labels TEXT NOT NULL,
  actor TEXT NOT NULL,
  consumer TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT,
  event_seq BIGINT NOT NULL
);
CREATE INDEX snapshots_of_workspace ON snapshots (workspace_id, created_at, id);
CREATE INDEX snapshots_by_age ON snapshots (created_at, id);
CREATE INDEX snapshots_of_sandbox ON snapshots (sandbox_uid, created_at, id);
CREATE INDEX snapshots_expiring ON snapshots (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX snapshots_by_state ON snapshots (state, created_at, id);

CREATE TABLE meters (
  id TEXT NOT NULL PRIMARY KEY,
  sandbox_uid TEXT NOT NULL,
  workspace_id TEXT NOT NULL,
  generation BIGINT NOT NULL,
  extension_id TEXT NOT NULL,
  hold_id TEXT NOT NULL,
  price_version TEXT NOT NULL,
  opened_at BIGINT NOT NULL,
  closed_at BIGINT,
  running_rate TEXT NOT NULL,
  paused_rate TEXT NOT NULL,
  rate TEXT NOT NULL,
  since BIGINT NOT NULL,
  accrued TEXT NOT NULL,
  billed_ms BIGINT NOT NULL,
  create_fee_micro_usd BIGINT NOT NULL,
  minimum_seconds BIGINT NOT NULL,
  charged_micro_usd BIGINT NOT NULL,
  estimate_micro_usd BIGINT NOT NULL,
  -- Derived: `since` while it is open with a rate above zero.
  running_since BIGINT
);
CREATE INDEX meters_of_sandbox ON meters (sandbox_uid);
CREATE INDEX meters_running ON meters (running_since, id) WHERE running_since IS NOT NULL;

CREATE TABLE holds (
  id TEXT NOT NULL PRIMARY KEY,
  workspace_id TEXT NOT NULL,
  sandbox_uid TEXT NOT NULL,
  generation BIGINT NOT NULL,
  state TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  resolved_at BIGINT
) WITHOUT ROWID;

CREATE TABLE transfers (
  seq INTEGER NOT NULL PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  at BIGINT NOT NULL,
  kind TEXT NOT NULL,
  debit TEXT NOT NULL,
  credit TEXT NOT NULL,
  amount_micro_usd BIGINT NOT NULL CHECK (amount_micro_usd > 0),
  workspace_id TEXT NOT NULL,
  hold_id TEXT,
  sandbox_uid TEXT
);
CREATE INDEX transfers_by_debit ON transfers (debit, seq, amount_micro_usd);
CREATE INDEX transfers_by_credit ON transfers (credit, seq, amount_micro_usd);
CREATE INDEX transfers_of_hold ON transfers (hold_id, debit, credit, amount_micro_usd) WHERE hold_id IS NOT NULL;
CREATE INDEX transfers_granted ON transfers (workspace_id, amount_micro_usd) WHERE kind = 'grant';
CREATE INDEX transfers_of_workspace ON transfers (workspace_id, seq);

-- The sum of an account's rows up to a number, so that they need not be added up again. It cannot become wrong: rows
-- are never changed, and no smaller number is written later.
CREATE TABLE balance_marks (
  account TEXT NOT NULL PRIMARY KEY,
  seq BIGINT NOT NULL,
  sum BIGINT NOT NULL
);

CREATE TRIGGER transfers_are_not_changed BEFORE UPDATE ON transfers
BEGIN
  SELECT RAISE(ABORT, 'a transfer is never changed');
END;
CREATE TRIGGER transfers_are_not_removed BEFORE DELETE ON transfers
BEGIN
  SELECT RAISE(ABORT, 'a transfer is never removed');
END;
