-- The ledger: accounts by class, a chain of hashes, balances kept with the rows, budgets, grants that end.

DROP TRIGGER transfers_are_not_changed;
DROP INDEX transfers_by_debit;
DROP INDEX transfers_by_credit;
DROP INDEX transfers_granted;
DROP INDEX transfers_of_hold;
DROP TABLE balance_marks;

UPDATE transfers SET
  debit = CASE
    WHEN debit = 'external' THEN 'asset:external'
    WHEN debit LIKE 'revenue:%' THEN 'revenue:usage:' || substr(debit, 9)
    ELSE 'liab:' || debit END,
  credit = CASE
    WHEN credit = 'external' THEN 'asset:external'
    WHEN credit LIKE 'revenue:%' THEN 'revenue:usage:' || substr(credit, 9)
    ELSE 'liab:' || credit END;

ALTER TABLE transfers ADD COLUMN price_version TEXT;
ALTER TABLE transfers ADD COLUMN linked_to TEXT;
ALTER TABLE transfers ADD COLUMN reference TEXT;
-- Empty in the rows from before there was a chain.
ALTER TABLE transfers ADD COLUMN hash TEXT NOT NULL DEFAULT '';
CREATE INDEX transfers_funding ON transfers (workspace_id, kind, amount_micro_usd)
  WHERE kind IN ('grant', 'top_up', 'expiry', 'move');
CREATE INDEX transfers_charged ON transfers (workspace_id, at, seq) WHERE kind IN ('capture', 'correction');

CREATE TRIGGER transfers_are_not_changed BEFORE UPDATE ON transfers
BEGIN
  SELECT RAISE(ABORT, 'a transfer is never changed');
END;

CREATE TABLE ledger_accounts (
  account TEXT NOT NULL PRIMARY KEY,
  balance BIGINT NOT NULL
) WITHOUT ROWID;
INSERT INTO ledger_accounts (account, balance)
  SELECT account, sum(amount) FROM (
    SELECT credit AS account, amount_micro_usd AS amount FROM transfers
    UNION ALL
    SELECT debit AS account, -amount_micro_usd AS amount FROM transfers
  ) GROUP BY account;

ALTER TABLE holds ADD COLUMN purse TEXT NOT NULL DEFAULT '';
ALTER TABLE holds ADD COLUMN held_micro_usd BIGINT NOT NULL DEFAULT 0;
ALTER TABLE holds ADD COLUMN captured_micro_usd BIGINT NOT NULL DEFAULT 0;
ALTER TABLE holds ADD COLUMN budgets TEXT NOT NULL DEFAULT '[]';
UPDATE holds SET
  purse = 'liab:credits:' || workspace_id,
  held_micro_usd = coalesce((
    SELECT sum(CASE WHEN kind = 'hold' THEN amount_micro_usd ELSE -amount_micro_usd END)
    FROM transfers WHERE hold_id = holds.id AND kind IN ('hold', 'capture', 'release')), 0),
  captured_micro_usd = coalesce((
    SELECT sum(amount_micro_usd) FROM transfers WHERE hold_id = holds.id AND kind = 'capture'), 0);

ALTER TABLE meters ADD COLUMN quantum_ms BIGINT NOT NULL DEFAULT 1;
ALTER TABLE meters ADD COLUMN funded_until BIGINT;
ALTER TABLE meters ADD COLUMN fund_at BIGINT;
ALTER TABLE meters ADD COLUMN low_since BIGINT;
ALTER TABLE meters ADD COLUMN sandbox_id TEXT NOT NULL DEFAULT '';
ALTER TABLE meters ADD COLUMN profile_id TEXT NOT NULL DEFAULT '';
ALTER TABLE meters ADD COLUMN actor TEXT NOT NULL DEFAULT 'agt';
ALTER TABLE meters ADD COLUMN key_id TEXT;
ALTER TABLE meters ADD COLUMN run_id TEXT;
ALTER TABLE meters ADD COLUMN evidence TEXT NOT NULL DEFAULT 'own_clock';
ALTER TABLE meters ADD COLUMN backend_ms BIGINT;
-- Derived: `fund_at` while it is open.
ALTER TABLE meters ADD COLUMN watched_fund_at BIGINT;
UPDATE meters SET (sandbox_id, profile_id, actor, key_id, run_id) = (
  SELECT id, profile_id, actor, key_id, run_id FROM sandboxes WHERE uid = meters.sandbox_uid
) WHERE sandbox_uid IN (SELECT uid FROM sandboxes);
CREATE INDEX meters_to_fund ON meters (watched_fund_at, id) WHERE watched_fund_at IS NOT NULL;

CREATE TABLE grants (
  id TEXT NOT NULL PRIMARY KEY,
  workspace_id TEXT NOT NULL,
  purse TEXT NOT NULL,
  kind TEXT NOT NULL,
  amount_micro_usd BIGINT NOT NULL,
  remaining_micro_usd BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT,
  ended_at BIGINT
);
CREATE INDEX grants_live ON grants (purse, created_at, id) WHERE ended_at IS NULL;
CREATE INDEX grants_ending ON grants (expires_at, id) WHERE ended_at IS NULL AND expires_at IS NOT NULL;

CREATE TABLE money_policies (
  workspace_id TEXT NOT NULL PRIMARY KEY,
  policy TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE budget_states (
  mark TEXT NOT NULL PRIMARY KEY,
  told BIGINT NOT NULL,
  admitted_at BIGINT NOT NULL
) WITHOUT ROWID;
