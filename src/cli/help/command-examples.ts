/**
 * Examples of each command, in the order of the reference. Runnable ones run as they stand, one after the other, in
 * tests/docs/examples.test.ts; the others (they need a terminal, a person, a machine or no end) are only shown.
 */
export interface CommandExample {
  readonly text: string;
  readonly runs: boolean;
}

const runs = (...lines: string[]): CommandExample => ({ text: lines.join('\n'), runs: true });
const shown = (...lines: string[]): CommandExample => ({ text: lines.join('\n'), runs: false });

export const COMMAND_EXAMPLES: Readonly<Record<string, readonly CommandExample[]>> = {
  run: [
    runs('sandboxer run --profile stub-basic -- uname -s'),
    shown('sandboxer run --workdir . --profile agent-dev -- npm test'),
  ],
  create: [
    runs('sandboxer create --profile stub-basic --id box --ttl 30m --label team=docs'),
    shown('sandboxer create --profile agent-dev --input repo=./my-project'),
  ],
  list: [
    runs('sandboxer list --label team=docs', 'sandboxer list --all --json'),
    shown('sandboxer list --watch'),
  ],
  get: [runs('sandboxer get box')],
  extend: [runs('sandboxer extend box 1h')],
  pause: [runs('sandboxer pause box')],
  resume: [runs('sandboxer resume box')],
  recreate: [runs('sandboxer recreate box')],
  fork: [runs('sandboxer fork box --id twin')],
  destroy: [runs('sandboxer destroy twin')],
  events: [
    runs('sandboxer events box', 'sandboxer events --type sandbox.ready --last 5'),
    shown('sandboxer events --follow --json'),
  ],
  usage: [runs('sandboxer usage box')],
  exec: [
    runs(
      "sandboxer exec box -- sh -c 'echo hello > note.txt'",
      'sandboxer exec --detach box -- sleep 300',
      'sandboxer exec -e GREETING=hi --timeout 10s box -- env',
    ),
  ],
  shell: [shown('sandboxer shell box')],
  cp: [
    runs('sandboxer cp box:note.txt .', 'sandboxer cp note.txt box:copy.txt', 'sandboxer cp box:copy.txt -'),
  ],
  sync: [
    runs(
      'mkdir tree && echo 1 > tree/a.txt',
      'sandboxer create --profile stub-basic --id mirrored --mirror tree',
      'sandboxer sync mirrored --dry-run',
    ),
  ],
  uploads: [
    runs(
      'mkdir other && echo 2 > other/b.txt',
      'upload=$(sandboxer uploads create other)',
      'sandboxer uploads list',
      'sandboxer uploads entries "$upload"',
      'sandboxer uploads delete "$upload"',
    ),
  ],
  ps: [runs('sandboxer ps box')],
  logs: [
    runs("sandboxer exec --detach box -- sh -c 'echo done'", 'sandboxer logs box'),
    shown('sandboxer logs box --follow'),
  ],
  kill: [
    runs(
      'process=$(sandboxer exec --detach box -- sleep 600)',
      'sandboxer ps box',
      'sandboxer kill box "$process" --signal TERM',
    ),
  ],
  'port-forward': [shown('sandboxer port-forward box 9000:8080')],
  url: [runs('sandboxer url box 8080 --expires-in 10m')],
  ssh: [shown('sandboxer ssh box', 'sandboxer ssh --print-config box >> ~/.ssh/config')],
  snapshot: [runs('snapshot=$(sandboxer snapshot box --name first --retain 7d)')],
  restore: [runs('sandboxer restore "$snapshot" --id again')],
  snapshots: [
    runs(
      'sandboxer snapshots list --sandbox box',
      'sandboxer snapshots show "$snapshot"',
      'sandboxer snapshots rename "$snapshot" second',
    ),
    shown(
      'sandboxer snapshots export "$snapshot" box.snapshot',
      'sandboxer snapshots import box.snapshot --name brought',
    ),
    runs('sandboxer snapshots delete "$snapshot"'),
  ],
  images: [
    runs('sandboxer images list'),
    shown(
      'sandboxer images import rootfs.tar.gz --name tools',
      'sandboxer images build --name debian --suite bookworm --package git',
      'sandboxer images show tools',
      'sandboxer images rm tools',
    ),
  ],
  volumes: [
    runs('sandboxer volumes list'),
    shown(
      'sandboxer volumes create cache --size 2GB',
      'sandboxer run --volume cache:/cache -- ls /cache',
      'sandboxer volumes show cache',
      'sandboxer volumes rm cache',
    ),
  ],
  profiles: [
    runs('sandboxer profiles list', 'sandboxer profiles show stub-basic'),
    shown('sandboxer profiles validate my-profile.yaml', 'sandboxer profiles push my-profile.yaml'),
  ],
  extensions: [runs('sandboxer extensions list', 'sandboxer extensions show ext.saas-stub')],
  route: [runs('sandboxer route explain box', 'sandboxer route resolve --profile stub-metered --ttl 30m')],
  compose: [shown('sandboxer compose plan .', 'sandboxer compose plan . --input profiles=dev --json')],
  estimate: [runs('sandboxer estimate --profile stub-metered --ttl 30m')],
  registry: [
    runs('sandboxer registry export --json', 'sandboxer registry validate'),
    shown('sandboxer registry validate registry/ .repo-classification.yaml', 'sandboxer registry publish'),
  ],
  hosts: [
    runs('sandboxer hosts list', 'sandboxer hosts show local'),
    shown(
      'sandboxer hosts add lab ops@lab.example.org --host-key "ssh-ed25519 AAAA…"',
      'sandboxer hosts probe lab',
      'sandboxer hosts drain lab',
      'sandboxer hosts undrain lab',
      'sandboxer hosts remove lab',
    ),
    runs('sandboxer hosts cost --from 2026-01-01'),
  ],
  'reap-stale': [runs('sandboxer reap-stale --older-than 1h')],
  canary: [runs('sandboxer canary', 'sandboxer canary local --last 5')],
  smoke: [runs('sandboxer smoke ext.saas-stub --profile stub-basic')],
  inspect: [
    runs('sandboxer inspect host', 'sandboxer inspect stale'),
    shown('sandboxer inspect isolation box'),
  ],
  credits: [
    runs(
      'sandboxer credits balance',
      'sandboxer credits grant 5 --reference invoice-17',
      'sandboxer credits history --limit 5',
      'sandboxer credits usage --by profile',
      'sandboxer credits top --by sandbox --limit 3',
      'sandboxer credits export --format focus > charges.csv',
      'sandboxer credits audit',
      'sandboxer credits reconcile',
      'sandboxer credits limits --max-living 20',
      'sandboxer credits purse default shared',
    ),
  ],
  budgets: [
    runs(
      'sandboxer budgets create 20 --scope key --period month',
      'sandboxer budgets list',
      'sandboxer budgets delete "$(sandboxer budgets list --quiet | head -n 1)"',
    ),
  ],
  keys: [
    runs('sandboxer keys create ci --actor atm --scope sandboxes --expires-in 90d', 'sandboxer keys list'),
    shown('sandboxer keys rotate key_… --overlap 1h', 'sandboxer keys revoke key_…'),
  ],
  workspaces: [
    runs(
      'sandboxer workspaces create research --name Research',
      'sandboxer workspaces list',
      'sandboxer workspaces policy research --only ext.saas-stub --no-hedge',
      'sandboxer workspaces delete research',
    ),
  ],
  providers: [
    runs(
      'echo demo-vendor-key-4711 | sandboxer providers set ext.saas-stub --label demo',
      'sandboxer providers list',
      'key=$(sandboxer providers list --quiet)',
      'sandboxer providers test "$key"',
      'sandboxer providers disable "$key"',
      'sandboxer providers delete "$key"',
      'sandboxer providers rotate',
    ),
  ],
  webhooks: [
    runs(
      'sandboxer webhooks create https://hooks.example.org/in --type sandbox.failed',
      'sandboxer webhooks list',
      'hook=$(sandboxer webhooks list --quiet)',
    ),
    shown('sandboxer webhooks ping "$hook"'),
    runs(
      'sandboxer webhooks deliveries "$hook"',
      'sandboxer webhooks replay "$hook" --from 1',
      'sandboxer webhooks rotate "$hook"',
      'sandboxer webhooks disable "$hook"',
      'sandboxer webhooks enable "$hook"',
      'sandboxer webhooks delete "$hook"',
    ),
  ],
  sinks: [runs('sandboxer sinks list'), shown('sandboxer sinks replay state-hub --from 1')],
  audit: [runs('sandboxer audit --action createKey')],
  doctor: [runs('sandboxer doctor')],
  serve: [shown('sandboxer serve --listen 127.0.0.1:8400')],
  daemon: [
    runs('sandboxer daemon status'),
    shown('sandboxer daemon start', 'sandboxer daemon stop', 'sandboxer daemon restart'),
  ],
  version: [runs('sandboxer version')],
  import: [shown('sandboxer import legacy ~/.local/share/sandboxer/sandboxes.json')],
  completion: [shown('source <(sandboxer completion bash)'), runs('sandboxer completion zsh > _sandboxer')],
};

/** Returns the lines that call this command: `keys list`, or `keys` where that is its only action. */
export function exampleLines(path: string, isDefault: boolean): string[] {
  const [name = ''] = path.split(' ');
  const calls = new RegExp(`\\bsandboxer ${path}(?![\\w-])`);
  const alone = new RegExp(`\\bsandboxer ${name}$`);
  return (COMMAND_EXAMPLES[name] ?? [])
    .flatMap(({ text }) => text.split('\n'))
    .filter((line) => calls.test(line) || (isDefault && alone.test(line)));
}
