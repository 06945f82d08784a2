/**
 * Calls that use each documented option of each command at least once, with `--json`. They run in this order, each
 * finding what those before it left. The test adds the options that every command has.
 */

/** What earlier calls answered, by the name of the command; the last one counts. */
export type Told = ReadonlyMap<string, Record<string, unknown>>;

export interface FlagCall {
  /** The command and its words; `␣` stands for a space within a word. */
  readonly line: string | ((told: Told) => string);
  /** Its exit code; 0 where it is left out. */
  readonly code?: number;
  /** The code of its error. */
  readonly error?: string;
  /** A part of its first document: the effect of the options. */
  readonly shows?: Readonly<Record<string, unknown>>;
  readonly input?: string;
  /** It ends only when it is interrupted, which it is after its first line. */
  readonly endless?: true;
  readonly needsLocal?: true;
}

export const FLAG_FILES: Readonly<Record<string, string>> = {
  'tree/a.txt': 'one\n',
  'tree/.env': 'TOKEN=1\n',
  'stack/compose.yml': 'services: { web: { image: "busybox:1" } }\n',
  'invoice.json': '[]',
  'vendor.key': 'STUB_KEY',
  'second.yaml': 'extensions: { local: { enabled: false } }\n',
  'flagged.yaml': [
    'id: profile.flagged',
    'version: 1.0.0',
    'description: A profile for every option.',
    'image: host',
    'isolation: { level: container }',
    'network: { default: deny }',
    'setup: { secret_refs: [{ name: FLAGGED, delivery: env }] }',
    'ttl: { default: 1h, max: 4h }',
    'overridable: [image, resources, network, workspace, idle_reap]',
    '',
  ].join('\n'),
};

const WHO = '--harness h --session s --run-id r --job j --agent a';
const CONSUMER = { harness: 'h', session_id: 's', run_id: 'r', job_id: 'j', agent_id: 'a' };
const ON_STUB =
  '-p stub-basic --ttl 10m --idle-reap 5m --input warm=false --access rw --label team=blue --scope shared ' +
  `--extension ext.saas-stub --max-cost-per-hour 9 --strategy lowest-cost --isolation none ${WHO}`;
/** Sizes, images, volumes and secrets, which the stub does not have. */
const SIZED =
  '-p flagged --image host --volume cache:/cache:ro --cpu 0.5 --memory 128MiB --disk 256MiB --host local ' +
  '--region eu --secret FLAGGED';
const STAGED = '--mirror tree --with-git --with-secrets --with-secret .env';
const CLOSED = '-p flagged --egress example.org:443';
const ELEVATED = '-p flagged --elevated';
const NO_ROUTE = { code: 4, error: 'SBX_NO_ROUTE' } as const;
/** The stub has no services. */
const NO_SERVICE = { code: 4, error: 'SBX_UNSUPPORTED' } as const;
const NO_SERVICE_TO_RUN = { code: 125, error: 'SBX_UNSUPPORTED' } as const;
const NO_ROUTE_TO_RUN = { code: 125, error: 'SBX_NO_ROUTE' } as const;
const PROGRAM = '--env A=b --cwd / --timeout 20s';
const MONTH = '--from 2026-01-01 --to 2126-01-01';

function answered(name: string, member: string) {
  return (told: Told) => String(told.get(name)?.[member]);
}

const KEY = answered('keys create', 'key_id');
const WEBHOOK = answered('webhooks create', 'webhook_id');
const QUOTE = answered('estimate', 'quote_id');
const SNAPSHOT = answered('snapshot', 'snapshot_id');
const HOST_KEY = `ssh-ed25519␣${Buffer.alloc(51, 1).toString('base64')}`;

const REQUESTS: readonly FlagCall[] = [
  {
    line: `route resolve ${ON_STUB} --id routed`,
    shows: { pinned: 'ext.saas-stub', strategy: 'lowest-cost' },
  },
  { line: `route resolve ${SIZED}`, needsLocal: true, shows: { reason: /ext\.local comes first/ } },
  { line: `route resolve ${CLOSED}`, shows: { reason: /^None of/ } },
  { line: `route resolve ${ELEVATED}`, shows: { reason: /^None of/ } },
  { line: `estimate ${SIZED}`, needsLocal: true, shows: { profile: 'profile.flagged@1.0.0' } },
  { line: `estimate ${CLOSED}`, ...NO_ROUTE },
  { line: `estimate ${ELEVATED}`, ...NO_ROUTE },
  { line: `estimate ${ON_STUB} --id other`, shows: { seconds: 600 } },
  {
    line: (told) => `create ${ON_STUB} ${STAGED} --id box --wait-timeout 60s --quote ${QUOTE(told)}`,
    shows: { sandbox_id: 'box', labels: { team: 'blue' }, consumer: CONSUMER, idle_reap_seconds: 300 },
  },
  {
    line: `create ${SIZED} --id sized`,
    needsLocal: true,
    shows: { sandbox_id: 'sized', region: 'eu', exposed_secrets: ['FLAGGED'] },
  },
  { line: 'create -p stub-basic --id filled --workdir tree', shows: { state: /ready|active/ } },
  { line: 'create -p stub-basic --id later --no-wait', shows: { sandbox_id: 'later' } },
  { line: `create ${CLOSED}`, ...NO_ROUTE },
  { line: `create ${ELEVATED}`, ...NO_ROUTE },
  { line: `run ${ON_STUB} ${STAGED} ${PROGRAM} --id ran --workdir tree -T -i -- cat`, input: 'in\n' },
  { line: `run ${SIZED} --user root --tty -- true`, needsLocal: true },
  { line: `run -p stub-basic --keep --id kept -- true` },
  { line: 'run -p stub-basic --service web -- true', ...NO_SERVICE_TO_RUN },
  { line: `run ${CLOSED} -- true`, ...NO_ROUTE_TO_RUN },
  { line: `run ${ELEVATED} -- true`, ...NO_ROUTE_TO_RUN },
  {
    line:
      `compose plan stack -p compose-e2e --id planned --ttl 10m --idle-reap 5m --input keep_images=false --access rw ` +
      `--label a=b --scope shared --max-cost-per-hour 9 --strategy lowest-cost ` +
      `--isolation container --extension ext.compose-ssh --elevated ${WHO}`,
    shows: { accepted: true },
  },
  {
    line: `compose plan ${STAGED} ${SIZED} --input compose=services:␣{␣a:␣{␣image:␣x␣}␣}`,
    shows: { accepted: true },
  },
  { line: `compose plan stack ${CLOSED}`, shows: { accepted: true } },
];

export const FLAG_CALLS: readonly FlagCall[] = [
  { line: 'credits grant 100 --reference flags --expires 30d --paid' },
  { line: 'profiles push flagged.yaml' },
  {
    line: 'volumes create cache --size 64MiB --extension ext.local --label a=b',
    needsLocal: true,
    shows: { size_mb: 64, extension: 'ext.local', labels: { a: 'b' } },
  },
  ...REQUESTS,
  {
    line:
      'list --all -p stub-basic --extension ext.saas-stub -l team=blue --harness h --external-id r ' +
      '--limit 5 --state ready --state active',
    shows: { items: [{ sandbox_id: 'box' }] },
  },
  { line: 'list --watch', endless: true },
  { line: 'recreate filled --no-wait', shows: { sandbox_id: 'filled' } },
  { line: 'fork box --id twin --ttl 5m --label of=box --no-wait', shows: { labels: { of: 'box' } } },
  { line: 'destroy kept --no-wait' },
  {
    line: 'events box --type sandbox.ready --after 0 --last 1 --order desc',
    shows: { items: [{ type: 'sandbox.ready' }] },
  },
  { line: 'events --follow --after 0', endless: true },
  { line: `exec ${PROGRAM} -i box -- cat`, input: 'in\n' },
  { line: 'exec --user root sized -- true', needsLocal: true },
  { line: 'exec --tty box -- true', code: 125, error: 'SBX_UNSUPPORTED' },
  { line: 'exec box --service web -- true', ...NO_SERVICE_TO_RUN },
  { line: `shell ${PROGRAM} box`, input: 'exit 0\n' },
  { line: 'shell --user root sized', input: 'exit 0\n', needsLocal: true },
  { line: 'shell --service web box', ...NO_SERVICE_TO_RUN },
  { line: 'cp --service web box:/etc/hostname .', ...NO_SERVICE },
  { line: 'ps box --service web', ...NO_SERVICE },
  { line: 'logs box --service web --tail 5', ...NO_SERVICE },
  { line: 'logs box --setup', code: 3, error: 'SBX_CLI_NO_PROCESS' },
  { line: `exec --detach box -- sleep 600` },
  { line: (told) => `logs box ${answered('exec', 'process_id')(told)} --from 0 --follow`, endless: true },
  { line: (told) => `kill box ${answered('exec', 'process_id')(told)} --signal KILL` },
  { line: 'sync box tree --dry-run --force --allow *.mk' },
  { line: 'uploads create tree --with-git --with-secrets --with-secret .env' },
  { line: 'uploads list --limit 1', shows: { items: [{}] } },
  { line: 'port-forward box 0:8080 --address 127.0.0.1', endless: true },
  { line: 'url box 8080 --public --expires-in 5m' },
  { line: 'ssh --print-config box' },
  {
    line: 'snapshot box --name flagged --label a=b --retain 1h',
    shows: { labels: { a: 'b' }, name: 'flagged' },
  },
  {
    line: (told) => `restore ${SNAPSHOT(told)} --id again --ttl 5m --label from=box --no-wait`,
    shows: { sandbox_id: 'again', labels: { from: 'box' } },
  },
  { line: 'snapshots list --sandbox box --limit 1', shows: { items: [{ name: 'flagged' }] } },
  { line: (told) => `snapshots export ${SNAPSHOT(told)} out.sbx --force`, code: 4, error: 'SBX_UNSUPPORTED' },
  {
    line: 'snapshots import invoice.json --profile stub-basic --name odd',
    code: 2,
    error: 'SBX_INVALID_REQUEST',
  },
  {
    line: 'images import image.tar --name flagged --shared --retain 1h --extension ext.local',
    needsLocal: true,
    shows: { name: 'flagged', shared: true },
  },
  {
    line: 'images build --name built --suite bookworm --package git --shared --retain 1h --extension ext.saas-stub',
    code: 4,
    error: 'SBX_UNSUPPORTED',
  },
  {
    line:
      `hosts add lab root@127.0.0.1:1 --host-key ${HOST_KEY} --identity-file /etc/id --certificate-file /etc/id-cert ` +
      '--class production --extension ext.compose-ssh --label region=eu --capacity 3 --capacity-cpu 4 ' +
      '--capacity-memory 1024 --cost 100',
    shows: { id: 'lab', class: 'production', labels: { region: 'eu' } },
  },
  { line: `hosts add far root@127.0.0.1:1 --host-key ${HOST_KEY} --tunnel t1 --warden` },
  { line: `hosts cost ${MONTH}` },
  { line: 'reap-stale --yes --older-than 100d --kind orphaned' },
  { line: 'canary local --last 1' },
  { line: 'canary local --run' },
  { line: 'smoke ext.saas-stub -p stub-basic --timeout 60s' },
  { line: 'smoke --host nowhere', code: 3, error: 'SBX_NOT_FOUND' },
  { line: 'credits history --limit 1', shows: { items: [{}] } },
  { line: `credits usage ${MONTH} --by profile` },
  { line: `credits top ${MONTH} --by profile --limit 1` },
  { line: `credits export ${MONTH} --format cloudevents` },
  { line: `credits reconcile --invoice invoice.json ${MONTH} --apply` },
  {
    line: 'credits limits --max-living 50 --per-minute 500',
    shows: { max_living: 50, creates_per_minute: 500 },
  },
  { line: 'credits limits --max-living none --per-minute none', shows: { max_living: null } },
  { line: 'budgets create 5 --scope profile --of profile.flagged --period day --throttle 1m --own-keys' },
  {
    line: 'keys create flagged --actor agt --scope read --expires-in 1h --in-workspace default',
    shows: { actor: 'agt' },
  },
  { line: (told) => `keys rotate ${KEY(told)} --overlap 1m` },
  { line: (told) => `audit --by-key KEY --action createKey --target ${KEY(told)} --limit 1` },
  { line: (told) => `keys revoke ${KEY(told)} --keep-made` },
  { line: 'workspaces create other --org flagged --new-org --name Other', shows: { org_id: 'flagged' } },
  { line: 'workspaces list --org flagged', shows: { items: [{ workspace_id: 'other' }] } },
  {
    line:
      'workspaces policy other --only ext.local --ignore ext.docker --max-cost-per-hour 1 --region eu ' +
      '--data-residency eu --isolation container --no-hedge',
    shows: {
      policy: {
        only: ['ext.local'],
        ignore: ['ext.docker'],
        constraints: { isolation: 'container', region: 'eu', data_residency: 'eu', max_cost_per_hour: 1 },
        hedge: 'off',
      },
    },
  },
  { line: 'workspaces policy other --clear' },
  { line: 'workspaces create third --org flagged' },
  { line: 'workspaces delete other --move-credits third' },
  { line: 'workspaces delete third --expire-credits' },
  { line: 'providers set ext.saas-stub --file vendor.key --platform --label flags' },
  { line: 'webhooks create http://127.0.0.1:9/hook --type sandbox.ready --description flags' },
  { line: (told) => `webhooks deliveries ${WEBHOOK(told)} --limit 1 --state waiting` },
  { line: (told) => `webhooks replay ${WEBHOOK(told)} --from 1` },
  { line: (told) => `webhooks replay ${WEBHOOK(told)} --only 1`, code: 3, error: 'SBX_NOT_FOUND' },
  { line: (told) => `webhooks rotate ${WEBHOOK(told)} --overlap 1m` },
  { line: 'sinks replay state-hub --from 1', code: 4, error: 'SBX_UNSUPPORTED' },
  {
    line: 'serve --listen 127.0.0.1:0 --state-dir second --socket second.sock --config second.yaml --log-level warn',
    endless: true,
  },
];
