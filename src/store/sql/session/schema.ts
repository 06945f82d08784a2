/** The tables of `migrations/`, as Kysely sees them. The same in every dialect. */

type Text = string;
type Whole = number;
/** 0 or 1. */
type Bool = number;
/** JSON text. */
type Document = string;
/** A decimal number of any size. */
type Decimal = string;

export interface SandboxRow {
  uid: Text;
  id: Text;
  workspace_id: Text;
  org_id: Text;
  generation: Whole;
  version: Whole;
  state: Text;
  state_since: Whole;
  pause_kind: Text | null;
  profile_id: Text;
  profile_version: Text;
  fingerprint: Text;
  request_digest: Text;
  scope: Text;
  reuse_key: Text | null;
  labels: Document;
  consumer: Document;
  actor: Text;
  key_id: Text | null;
  elevated: Bool;
  exposed_secrets: Document;
  created_at: Whole;
  ready_at: Whole | null;
  last_activity_at: Whole | null;
  deadline_at: Whole;
  max_deadline_at: Whole;
  idle_reap_seconds: Whole | null;
  idle_deadline_at: Whole | null;
  attempt: Whole | null;
  extension_id: Text | null;
  host_id: Text | null;
  isolation: Text | null;
  region: Text | null;
  handle: Document | null;
  reachability: Document | null;
  notes: Document;
  failure: Document | null;
  operation: Document | null;
  recreating: Bool;
  lease_owner: Text | null;
  lease_token: Text | null;
  lease_until: Whole | null;
  work_due_at: Whole | null;
  hold_id: Text | null;
  meter_id: Text | null;
  event_seq: Whole;
  harness: Text | null;
  session_id: Text | null;
  run_id: Text | null;
  job_id: Text | null;
  claimable_at: Whole | null;
  watched_deadline_at: Whole | null;
  watched_idle_at: Whole | null;
  established_on: Text | null;
  inputs: Document;
}

interface SandboxLabelRow {
  sandbox_uid: Text;
  name: Text;
  value: Text;
  created_at: Whole;
}

export interface SandboxDocumentsRow {
  uid: Text;
  generation: Whole;
  request: Document;
  recipe: Document;
  plan: Document;
  origin: Document;
}

export interface AttemptRow {
  attempt_id: Text;
  sandbox_uid: Text;
  generation: Whole;
  n: Whole;
  extension_id: Text;
  host_id: Text | null;
  state: Text;
  handle: Document | null;
  creation: Text | null;
  error: Document | null;
  started_at: Whole;
  provisioned_at: Whole | null;
  ended_at: Whole | null;
  judged_at: Whole | null;
  judged_as: Text | null;
  judged_load: Whole | null;
  judged_own_ms: Whole | null;
  teardown_tries: Whole;
  teardown_error: Text | null;
  stuck_since: Whole | null;
  hedge_at: Whole | null;
  hedges: Whole | null;
  outrun_by: Whole | null;
  reserved_millicpu: Whole;
  reserved_memory_mb: Whole;
  provider_key_id: Text | null;
}

export interface HostRow {
  id: Text;
  version: Whole;
  source: Text;
  spec: Document;
  state: Text;
  health: Document;
  created_at: Whole;
}

export interface HostSampleRow {
  host_id: Text;
  kind: Text;
  at: Whole;
  data: Document;
}

export interface CanaryRow {
  attempt_id: Text;
  sandbox_uid: Text;
  host_id: Text;
  extension_id: Text;
  started_at: Whole;
}

export interface EventRow {
  seq: Whole;
  id: Text;
  at: Whole;
  type: Text;
  workspace_id: Text;
  subject: Text;
  subject_seq: Whole;
  sandbox_uid: Text | null;
  sandbox_id: Text | null;
  generation: Whole | null;
  state: Text | null;
  previous_state: Text | null;
  actor: Text;
  consumer: Document;
  details: Document;
}

export interface CursorRow {
  sink_id: Text;
  cursor: Whole;
  /** The database gives these to a new row. */
  active?: Bool;
  taken_at?: Whole | null;
}

export interface ParkedRow {
  sink_id: Text;
  seq: Whole;
  subject: Text;
  tries: Whole;
  next_at: Whole;
  last_error: Text;
  dead: Bool;
}

export interface IdempotencyRow {
  workspace_id: Text;
  key: Text;
  request_digest: Text;
  result: Text;
  created_at: Whole;
}

export interface SnapshotRow {
  id: Text;
  workspace_id: Text;
  version: Whole;
  name: Text | null;
  sandbox_uid: Text;
  sandbox_id: Text;
  generation: Whole;
  profile_id: Text;
  profile_version: Text;
  recipe: Document;
  extension_id: Text;
  host_id: Text | null;
  kind: Text;
  state: Text;
  ref: Document;
  size_bytes: Whole | null;
  labels: Document;
  actor: Text;
  consumer: Document;
  created_at: Whole;
  expires_at: Whole | null;
  event_seq: Whole;
  deleted_at: Whole | null;
  cause: Text;
  digest: Text | null;
  provider_key_id: Text | null;
}

export interface MeterRow {
  id: Text;
  sandbox_uid: Text;
  workspace_id: Text;
  generation: Whole;
  extension_id: Text;
  hold_id: Text;
  price_version: Text;
  opened_at: Whole;
  closed_at: Whole | null;
  running_rate: Decimal;
  paused_rate: Decimal;
  rate: Decimal;
  since: Whole;
  accrued: Decimal;
  billed_ms: Whole;
  create_fee_micro_usd: Whole;
  minimum_seconds: Whole;
  charged_micro_usd: Whole;
  estimate_micro_usd: Whole;
  running_since: Whole | null;
  quantum_ms: Whole;
  funded_until: Whole | null;
  fund_at: Whole | null;
  low_since: Whole | null;
  sandbox_id: Text;
  profile_id: Text;
  actor: Text;
  key_id: Text | null;
  run_id: Text | null;
  evidence: Text;
  backend_ms: Whole | null;
  observed_ms: Whole | null;
  watched_fund_at: Whole | null;
  provider_key_id: Text | null;
  payer: Text;
  millicpu: Whole;
  memory_mb: Whole;
  cpu_ms: Whole | null;
  peak_memory_mb: Whole | null;
}

export interface ProviderKeyRow {
  id: Text;
  workspace_id: Text;
  extension_id: Text;
  version: Whole;
  label: Text;
  sealed: Text;
  hint: Text;
  state: Text;
  created_at: Whole;
  checked_at: Whole;
  refused_at: Whole | null;
}

export interface HoldRow {
  id: Text;
  workspace_id: Text;
  sandbox_uid: Text;
  generation: Whole;
  state: Text;
  created_at: Whole;
  resolved_at: Whole | null;
  purse: Text;
  held_micro_usd: Whole;
  captured_micro_usd: Whole;
  budgets: Document;
}

export interface TransferRow {
  seq: Whole;
  id: Text;
  at: Whole;
  kind: Text;
  debit: Text;
  credit: Text;
  amount_micro_usd: Whole;
  workspace_id: Text;
  hold_id: Text | null;
  sandbox_uid: Text | null;
  price_version: Text | null;
  linked_to: Text | null;
  reference: Text | null;
  hash: Text;
}

export interface AccountRow {
  account: Text;
  balance: Whole;
}

export interface GrantRow {
  id: Text;
  workspace_id: Text;
  purse: Text;
  kind: Text;
  amount_micro_usd: Whole;
  remaining_micro_usd: Whole;
  created_at: Whole;
  expires_at: Whole | null;
  ended_at: Whole | null;
}

export interface PolicyRow {
  workspace_id: Text;
  policy: Document;
}

export interface BudgetStateRow {
  mark: Text;
  told: Whole;
  admitted_at: Whole;
}

export interface ProfileRow {
  workspace_id: Text;
  id: Text;
  version: Text;
  profile: Document;
  source: Document;
  created_at: Whole;
}

export interface OrgRow {
  id: Text;
  name: Text;
  created_at: Whole;
  deleted_at: Whole | null;
}

export interface WorkspaceRow {
  id: Text;
  org_id: Text;
  name: Text;
  created_at: Whole;
  deleted_at: Whole | null;
  policy: Text | null;
}

export interface QuoteRow {
  id: Text;
  workspace_id: Text;
  created_at: Whole;
  expires_at: Whole;
  document: Text;
}

/** Sums over rows: what a query answers that is no table. */
export interface FundingRow {
  readonly kind: string;
  readonly sum: number | string | null;
}

export interface LoadRow {
  readonly host_id: string | null;
  readonly sandboxes: number;
  readonly millicpu: number;
  readonly memory_mb: number;
}

export interface KeyRow {
  id: Text;
  workspace_id: Text;
  name: Text;
  secret_hash: Text;
  number: Whole;
  rotated_from: Text | null;
  lines: Document;
  budget_line: Text;
  actor: Text;
  scopes: Document;
  created_at: Whole;
  expires_at: Whole | null;
  revoked_at: Whole | null;
  last_used_at: Whole | null;
}

export interface WebhookRow {
  id: Text;
  workspace_id: Text;
  version: Whole;
  url: Text;
  types: Document | null;
  description: Text;
  sealed_secret: Text;
  previous_secret: Document | null;
  created_at: Whole;
  enabled_at: Whole;
  disabled: Document | null;
  event_seq: Whole;
}

export interface AuditRow {
  seq: Whole;
  at: Whole;
  workspace_id: Text;
  key_id: Text | null;
  actor: Text;
  consumer: Document;
  action: Text;
  target: Text;
  outcome: Text;
  request_id: Text | null;
  details: Document;
}

export interface UploadRow {
  id: Text;
  workspace_id: Text;
  digest: Text;
  size_bytes: Whole;
  entries: Whole;
  origin: Document;
  created_at: Whole;
  expires_at: Whole;
}

interface UploadUseRow {
  upload_id: Text;
  sandbox_uid: Text;
}

/** A row of `images` or of `volumes`. */
export interface KeptRow {
  id: Text;
  workspace_id: Text;
  version: Whole;
  shared: Bool;
  state: Text;
  created_at: Whole;
  expires_at: Whole | null;
  record: Document;
}

export interface SetupLogRow {
  attempt_id: Text;
  sandbox_uid: Text;
  document: Document;
}

export interface SettingRow {
  name: Text;
  value: Text;
}

export interface SequenceRow {
  name: Text;
  value: Whole;
}

export interface Schema {
  sandboxes: SandboxRow;
  sandbox_labels: SandboxLabelRow;
  sandbox_documents: SandboxDocumentsRow;
  attempts: AttemptRow;
  setup_logs: SetupLogRow;
  hosts: HostRow;
  host_samples: HostSampleRow;
  canaries: CanaryRow;
  events: EventRow;
  outbox_cursors: CursorRow;
  outbox_parked: ParkedRow;
  idempotency_keys: IdempotencyRow;
  snapshots: SnapshotRow;
  meters: MeterRow;
  holds: HoldRow;
  transfers: TransferRow;
  ledger_accounts: AccountRow;
  grants: GrantRow;
  money_policies: PolicyRow;
  budget_states: BudgetStateRow;
  profiles: ProfileRow;
  orgs: OrgRow;
  workspaces: WorkspaceRow;
  quotes: QuoteRow;
  api_keys: KeyRow;
  webhooks: WebhookRow;
  provider_keys: ProviderKeyRow;
  audit_log: AuditRow;
  uploads: UploadRow;
  upload_uses: UploadUseRow;
  images: KeptRow;
  volumes: KeptRow;
  settings: SettingRow;
  sequences: SequenceRow;
}
