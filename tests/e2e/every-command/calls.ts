/**
 * How each command is tried with `--json`: one call that succeeds and, where a call of its own can fail, one that does.
 * They run in this order, each finding what those before it left. What every command has in common (a server that is
 * not there, an unknown option, a missing argument) needs no entry.
 */
import { existsSync } from 'node:fs';

/** What earlier calls answered, by the name of the command. */
export type Answers = ReadonlyMap<string, Record<string, unknown>>;

interface Attempt {
  readonly args: readonly string[] | ((answers: Answers) => readonly string[]);
  readonly code?: number;
}

export interface CommandCall extends Attempt {
  /** `STUB_KEY` stands for the key of the stub backend. */
  readonly input?: string;
  /** One document on each line, as the reference says. */
  readonly lines?: true;
  /** It ends only when it is interrupted, which it is after its first line. */
  readonly endless?: true;
  /** Its own failure: the exit code, and the code of the error. */
  readonly fails?: Attempt & { readonly code: number; readonly error: string };
  /** Asks no server. */
  readonly local?: true;
  /** Why it cannot be tried here, or undefined. */
  skip?(world: { readonly hasLocal: boolean }): string | undefined;
}

const needsLocal: CommandCall['skip'] = ({ hasLocal }) =>
  hasLocal ? undefined : 'ext.local does not work on this machine';

const NOT_FOUND = { code: 3, error: 'SBX_NOT_FOUND' } as const;
/** Of a program's command. */
const NO_SANDBOX = { code: 125, error: 'SBX_NOT_FOUND' } as const;
const USAGE = { code: 2, error: 'SBX_CLI_USAGE' } as const;
const INVALID = { code: 2, error: 'SBX_INVALID_REQUEST' } as const;
const BOX = ['box'];
const UNSUPPORTED = { code: 4, error: 'SBX_UNSUPPORTED' } as const;
export const STUB_KEY = 'the key of the stub';
const nowhere = { args: ['nowhere'], ...NOT_FOUND };

function answered(name: string, member: string) {
  return (answers: Answers) => [String(answers.get(name)?.[member])];
}

const SNAPSHOT = answered('snapshot', 'snapshot_id');
const UPLOAD = answered('uploads create', 'upload_id');
const KEY = answered('keys create', 'key_id');
const WEBHOOK = answered('webhooks create', 'webhook_id');
const PROVIDER_KEY = answered('providers set', 'provider_key_id');
const HOST_KEY = `ssh-ed25519 ${Buffer.alloc(51, 1).toString('base64')}`;

/** An id that cannot be one. */
const misshapen = { args: ['nowhere'], ...INVALID };

/** Files of the directory in which the commands run. */
export const FILES: Readonly<Record<string, string>> = {
  'tree/a.txt': 'one\n',
  'other/b.txt': 'two\n',
  'empty.json': '[]',
  'stack/compose.yaml': 'services: {web: {image: example}}\n',
  'profile.yaml': 'id: profile.tried\nversion: 1.0.0\ndescription: tried\nextension: ext.saas-stub\n',
  'broken.yaml': 'id: [\n',
  'no-price.yaml': 'nothing: here\n',
};

export const CALLS: Readonly<Record<string, CommandCall>> = {
  'daemon start': { args: [], local: true },
  'daemon status': { args: [], local: true },
  'credits grant': {
    args: ['100', '--reference', 'tried'],
    fails: { args: ['lots'], ...USAGE },
  },
  'credits balance': { args: [] },
  create: {
    args: ['-p', 'stub-basic', '--id', 'box', '--mirror', 'tree'],
    fails: { args: ['-p', 'nothing'], code: 3, error: 'SBX_PROFILE_NOT_FOUND' },
  },
  run: {
    args: ['-p', 'stub-basic', '--', 'echo', 'hi'],
    lines: true,
    fails: { args: ['-p', 'nothing', '--', 'true'], code: 125, error: 'SBX_PROFILE_NOT_FOUND' },
  },
  list: { args: [], fails: { args: ['--state', 'redy'], ...USAGE } },
  get: { args: BOX, fails: nowhere },
  extend: { args: ['box', '20m'], fails: { args: ['box', 'soon'], ...USAGE } },
  pause: { args: BOX, fails: nowhere },
  resume: { args: BOX, fails: nowhere },
  recreate: { args: BOX, fails: nowhere },
  fork: { args: ['box', '--id', 'twin'], fails: nowhere },
  destroy: { args: ['twin'], fails: nowhere },
  events: { args: BOX, fails: { args: ['--order', 'sideways'], ...USAGE } },
  usage: { args: BOX, fails: nowhere },
  exec: {
    args: ['--detach', 'box', '--', 'sleep', '600'],
    fails: { args: ['nowhere', '--', 'true'], ...NO_SANDBOX },
  },
  shell: { args: BOX, input: 'exit 0\n', lines: true, fails: { args: ['nowhere'], ...NO_SANDBOX } },
  cp: {
    args: ['empty.json', 'box:there.json'],
    fails: { args: ['box:missing', '.'], code: 3, error: 'SBX_PATH_NOT_FOUND' },
  },
  sync: { args: ['box', 'tree', '--dry-run'], fails: { args: ['box', 'no-such-directory'], ...USAGE } },
  'uploads create': { args: ['other'], fails: { args: ['missing'], ...USAGE } },
  'uploads list': { args: [] },
  'uploads entries': { args: UPLOAD, lines: true, fails: misshapen },
  'uploads delete': { args: UPLOAD, fails: misshapen },
  ps: { args: BOX, fails: nowhere },
  logs: { args: ['box', '--setup'], code: 3 },
  kill: {
    args: (answers) => ['box', String(answers.get('exec')?.process_id), '--signal', 'KILL'],
    fails: { args: ['box', 'p1', '--signal', 'NONE'], ...USAGE },
  },
  'port-forward': {
    args: ['box', '0:8080'],
    lines: true,
    endless: true,
    fails: { args: ['box', '0'], ...USAGE },
  },
  url: { args: ['box', '8080'], fails: { args: ['nowhere', '8080'], ...NOT_FOUND } },
  ssh: {
    args: ['--print-config', 'box'],
    skip: () => (existsSync('/usr/sbin/sshd') ? undefined : 'there is no sshd'),
    fails: { args: ['nowhere'], ...NO_SANDBOX },
  },
  snapshot: { args: ['box', '--name', 'tried'], fails: nowhere },
  restore: {
    args: (answers) => [...SNAPSHOT(answers), '--id', 'restored'],
    fails: nowhere,
  },
  'snapshots list': { args: [] },
  'snapshots show': { args: SNAPSHOT, fails: nowhere },
  'snapshots rename': { args: (answers) => [...SNAPSHOT(answers), 'other'], fails: nowhere },
  'snapshots export': {
    args: [],
    skip: () => 'the stub keeps its snapshots to itself',
    fails: { args: ['nowhere', 'snapshot.bin'], ...NOT_FOUND },
  },
  'snapshots import': {
    args: [],
    skip: () => 'there is no file of an export',
    fails: { args: ['missing'], ...USAGE },
  },
  'snapshots delete': { args: SNAPSHOT, fails: nowhere },
  'profiles list': { args: [] },
  'profiles show': {
    args: ['stub-basic'],
    fails: { args: ['nothing'], code: 3, error: 'SBX_PROFILE_NOT_FOUND' },
  },
  'profiles validate': {
    args: ['profile.yaml'],
    fails: { args: ['broken.yaml'], code: 4, error: 'SBX_PROFILE_INVALID' },
  },
  'profiles push': { args: ['profile.yaml'], fails: { args: ['missing'], ...USAGE } },
  'extensions list': { args: [] },
  'extensions show': { args: ['ext.saas-stub'], fails: { args: ['ext.nowhere'], ...NOT_FOUND } },
  'route explain': { args: BOX, fails: nowhere },
  'route resolve': {
    args: ['-p', 'stub-basic'],
    fails: { args: ['-p', 'nothing'], code: 3, error: 'SBX_PROFILE_NOT_FOUND' },
  },
  'compose plan': { args: ['stack'], fails: { args: ['missing'], ...USAGE } },
  estimate: {
    args: ['-p', 'stub-metered'],
    fails: { args: ['-p', 'nothing'], code: 3, error: 'SBX_PROFILE_NOT_FOUND' },
  },
  'registry export': { args: [] },
  'registry publish': { args: [] },
  'registry validate': {
    args: ['e2b.yaml'],
    fails: { args: ['no-price.yaml'], code: 4, error: 'SBX_INVALID_REQUEST' },
  },
  'images import': {
    args: ['image.tar', '--name', 'tried'],
    skip: needsLocal,
    fails: { args: ['missing', '--name', 'tried'], ...USAGE },
  },
  'images list': { args: [] },
  'images show': { args: ['tried'], skip: needsLocal, fails: nowhere },
  'images rm': { args: ['tried'], skip: needsLocal, fails: nowhere },
  'images build': {
    args: [],
    skip: () => 'it needs a mirror of Debian',
    // A refusal of the backend: the body was valid, so that no global option was in it.
    fails: {
      args: ['--name', 'tried', '--extension', 'ext.saas-stub'],
      code: 4,
      error: 'SBX_UNSUPPORTED',
    },
  },
  'volumes create': {
    args: ['cache', '--size', '1gb'],
    skip: needsLocal,
    fails: { args: ['..'], ...INVALID },
  },
  'volumes list': { args: [] },
  'volumes show': { args: ['cache'], skip: needsLocal, fails: nowhere },
  'volumes rm': { args: ['cache'], skip: needsLocal, fails: nowhere },
  'hosts add': {
    args: ['lab', 'root@127.0.0.1:1', '--host-key', HOST_KEY],
    fails: { args: ['lab', 'root@127.0.0.1:1', '--host-key', 'none'], ...INVALID },
  },
  'hosts list': { args: [] },
  'hosts show': { args: ['lab'], fails: nowhere },
  'hosts probe': { args: ['lab'], code: 5, fails: nowhere },
  'hosts cost': { args: [], fails: { args: ['--from', 'long-ago'], ...INVALID } },
  'hosts drain': { args: ['lab'], fails: nowhere },
  'hosts undrain': { args: ['lab'], fails: nowhere },
  'hosts remove': { args: ['lab'], fails: nowhere },
  'reap-stale': { args: [], fails: { args: ['--kind', 'odd'], ...USAGE } },
  canary: { args: [], fails: nowhere },
  smoke: {
    args: ['ext.saas-stub', '-p', 'stub-basic'],
    fails: { args: ['--host', 'nowhere'], ...NOT_FOUND },
  },
  'inspect host': { args: [], fails: nowhere },
  'inspect stale': { args: [] },
  'inspect isolation': {
    args: [],
    skip: () => 'the stub does not tell what is in force',
    fails: { args: BOX, ...UNSUPPORTED },
  },
  'credits history': { args: [], fails: { args: ['-n', 'many'], ...USAGE } },
  'credits usage': { args: [], fails: { args: ['--by', 'colour'], ...USAGE } },
  'credits top': { args: [], fails: { args: ['--from', 'long-ago'], ...INVALID } },
  'credits export': { args: [], lines: true, fails: { args: ['--format', 'paper'], ...USAGE } },
  'credits audit': { args: [] },
  'credits reconcile': { args: [], fails: { args: ['--invoice', 'missing'], ...USAGE } },
  'credits limits': { args: [], fails: { args: ['--max-living', 'few'], ...USAGE } },
  'credits purse': { args: ['default', 'shared'], fails: { args: ['default', 'torn'], ...USAGE } },
  'budgets create': { args: ['5'], fails: { args: ['5', '--scope', 'planet'], ...USAGE } },
  'budgets list': { args: [] },
  'budgets delete': { args: answered('budgets create', 'budget_id'), fails: misshapen },
  'keys create': {
    args: ['tried', '--scope', 'read'],
    fails: { args: ['tried', '--scope', 'all'], ...USAGE },
  },
  'keys list': { args: [] },
  'keys rotate': { args: KEY, fails: misshapen },
  'keys revoke': { args: KEY, fails: misshapen },
  'workspaces create': { args: ['tried'], fails: { args: ['Not An Id'], ...INVALID } },
  'workspaces list': { args: [] },
  'workspaces policy': { args: ['tried'], fails: nowhere },
  'workspaces delete': { args: ['tried'], fails: nowhere },
  'providers set': {
    args: ['ext.saas-stub'],
    input: STUB_KEY,
    fails: { args: ['ext.saas-stub', '--file', 'missing'], ...USAGE },
  },
  'providers list': { args: [] },
  'providers test': { args: PROVIDER_KEY, fails: misshapen },
  'providers disable': { args: PROVIDER_KEY, fails: misshapen },
  'providers delete': { args: PROVIDER_KEY, fails: misshapen },
  'providers rotate': { args: [] },
  'webhooks create': { args: ['http://127.0.0.1:9/hook'], fails: { args: ['gopher://x'], ...INVALID } },
  'webhooks list': { args: [] },
  'webhooks ping': { args: WEBHOOK, code: 1, fails: misshapen },
  'webhooks deliveries': { args: WEBHOOK, fails: misshapen },
  'webhooks replay': {
    args: (answers) => [...WEBHOOK(answers), '--from', '1'],
    fails: { args: ['nowhere'], ...USAGE },
  },
  'webhooks rotate': { args: WEBHOOK, fails: misshapen },
  'webhooks disable': { args: WEBHOOK, fails: misshapen },
  'webhooks enable': { args: WEBHOOK, fails: misshapen },
  'webhooks delete': { args: WEBHOOK, fails: misshapen },
  'sinks list': { args: [] },
  'sinks replay': {
    args: [],
    skip: () => 'no State Hub is configured',
    fails: { args: ['state-hub', '--from', '1'], ...UNSUPPORTED },
  },
  audit: { args: [], fails: { args: ['--limit', 'many'], ...USAGE } },
  doctor: { args: [], local: true },
  version: { args: [], local: true },
  'import legacy': {
    args: ['empty.json'],
    local: true,
    fails: { args: ['missing.json'], code: 3, error: 'SBX_CLI_NO_FILE' },
  },
  complete: { args: ['--', 'pro'], local: true },
  completion: { args: ['bash'], local: true, fails: { args: ['tcsh'], ...USAGE } },
  serve: {
    args: ['--state-dir', 'second'],
    lines: true,
    endless: true,
    local: true,
    fails: { args: ['--log-level', 'loud'], ...USAGE },
  },
  proxy: {
    args: [],
    skip: () => 'ssh speaks with it, not a person',
    fails: { args: ['nowhere'], ...NO_SANDBOX },
  },
  'daemon-process': { args: [], skip: () => 'it is the local server itself, which everything here asks' },
  'daemon restart': { args: [], local: true },
  'daemon stop': { args: [], local: true },
};
