/**
 * One example for each command, in the order of the page. They run as they stand, one after the other, in
 * tests/docs/examples.test.ts; what cannot (it needs a terminal, a person or no end) is marked.
 */
interface Example {
  readonly text: string;
  readonly runs: boolean;
}

const runs = (text: string): Example => ({ text, runs: true });
const shown = (text: string): Example => ({ text, runs: false });

export const CLI_EXAMPLES: Readonly<Record<string, Example>> = {
  run: runs('sandboxer run --profile stub-basic -- uname -s'),
  create: runs('sandboxer create --profile stub-basic --id box --ttl 30m --label team=docs'),
  list: runs('sandboxer list --label team=docs\nsandboxer list --all --json'),
  get: runs('sandboxer get box'),
  extend: runs('sandboxer extend box 1h'),
  pause: runs('sandboxer pause box'),
  resume: runs('sandboxer resume box'),
  recreate: runs('sandboxer recreate box'),
  fork: runs('sandboxer fork box --id twin'),
  destroy: runs('sandboxer destroy twin'),
  events: runs('sandboxer events box'),
  usage: runs('sandboxer usage box'),
  exec: runs("sandboxer exec box -- sh -c 'echo hello > note.txt'\nsandboxer exec --detach box -- sleep 300"),
  shell: shown('sandboxer shell box'),
  cp: runs('sandboxer cp box:note.txt .\nsandboxer cp note.txt box:copy.txt\nsandboxer cp box:copy.txt -'),
  sync: runs(
    'mkdir tree && echo 1 > tree/a.txt\nsandboxer create --profile stub-basic --id mirrored --mirror tree\nsandboxer sync mirrored --dry-run',
  ),
  uploads: runs('sandboxer uploads create tree\nsandboxer uploads list'),
  ps: runs('sandboxer ps box'),
  logs: runs("sandboxer exec --detach box -- sh -c 'echo done'\nsandboxer logs box"),
  'port-forward': shown('sandboxer port-forward box 9000:8080'),
  url: runs('sandboxer url box 8080 --expires-in 10m'),
  ssh: shown('sandboxer ssh box\nsandboxer ssh box --print-config >> ~/.ssh/config'),
  snapshot: runs('snapshot=$(sandboxer snapshot box --name first --retain 7d)'),
  restore: runs('sandboxer restore "$snapshot" --id again'),
  snapshots: runs('sandboxer snapshots\nsandboxer snapshots rename "$snapshot" second'),
  images: shown(
    'sandboxer images import rootfs.tar.gz --name tools\nsandboxer images\nsandboxer images show tools',
  ),
  volumes: shown(
    'sandboxer volumes create cache --size 2gb\nsandboxer run --volume cache:/cache -- ls /cache',
  ),
  profiles: runs('sandboxer profiles\nsandboxer profiles show stub-basic'),
  extensions: runs('sandboxer extensions\nsandboxer extensions show ext.saas-stub'),
  route: runs('sandboxer route explain box\nsandboxer route resolve --profile stub-metered --ttl 30m'),
  estimate: runs('sandboxer estimate --profile stub-metered --ttl 30m'),
  registry: runs('sandboxer registry export --json'),
  hosts: runs('sandboxer hosts\nsandboxer hosts list --json'),
  'reap-stale': runs('sandboxer reap-stale --older-than 1h'),
  canary: runs('sandboxer canary\nsandboxer canary local --last 5'),
  smoke: runs('sandboxer smoke ext.saas-stub --profile stub-basic'),
  inspect: runs('sandboxer inspect host\nsandboxer inspect stale'),
  credits: runs(
    'sandboxer credits\nsandboxer credits grant 5 --reference invoice-17\nsandboxer credits usage --by profile\nsandboxer credits audit',
  ),
  budgets: runs('sandboxer budgets create 20 --scope key --period month\nsandboxer budgets'),
  keys: runs(
    'sandboxer keys create ci --actor atm --scope read --scope sandboxes --expires-in 90d\nsandboxer keys list',
  ),
  workspaces: runs('sandboxer workspaces create research --name Research\nsandboxer workspaces'),
  providers: runs(
    'echo demo-vendor-key-4711 | sandboxer providers set ext.saas-stub --label demo\nsandboxer providers',
  ),
  webhooks: runs(
    'sandboxer webhooks create https://hooks.example.org/sandboxer --type sandbox.failed\nsandboxer webhooks',
  ),
  sinks: runs('sandboxer sinks'),
  audit: runs('sandboxer audit --action createKey'),
  doctor: runs('sandboxer doctor'),
  serve: shown('sandboxer serve --listen 127.0.0.1:8400'),
  daemon: runs('sandboxer daemon status'),
  version: runs('sandboxer version'),
  import: shown('sandboxer import legacy ~/.local/share/sandboxer/sandboxes.json'),
  completion: runs('sandboxer completion bash > sandboxer.bash'),
};
