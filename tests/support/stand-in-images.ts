/**
 * Images that stand in for public ones where no registry is reached: one small userland under many names. Programs of
 * theirs are one script, which stands as a server does, and succeeds at once where a client or an installer would.
 */
import { execFile } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { writeBusyboxTree } from './busybox-tree.ts';

const run = promisify(execFile);
const STAND_IN = 'sandboxer-test/stand-in:1';

const PROGRAM = `#!/bin/sh
case "\${0##*/} $*" in
  'redis-cli '*) echo PONG; exit 0;;
  'pg_isready '* | 'mongosh '* | 'curl '* | 'mc '* | 'kafka-topics '* | 'alembic '* | 'bash '*) exit 0;;
  *' migrate' | *' ci' | *' install'*) exit 0;;
esac
busybox httpd -p 8080 -h /srv 2>/dev/null
trap 'exit 0' TERM INT
sleep 2147483647 &
wait
`;

const NAMES = [
  ...['node', 'npm', 'python', 'pip', 'gunicorn', 'celery', 'flask', 'uvicorn', 'alembic', 'ruby', 'bundle'],
  ...[
    'redis-server',
    'redis-cli',
    'postgres',
    'pg_isready',
    'mongod',
    'mongosh',
    'memcached',
    'curl',
    'bash',
  ],
  ...['kafka-topics', 'server', 'scheduler', 'mc', 'start-dev'],
];

const USERS =
  'root:x:0:0:root:/root:/bin/sh\nsandbox:x:1000:1000::/home/sandbox:/bin/sh\nnode:x:1001:1000::/home/node:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n';

interface Engine {
  docker(...args: string[]): Promise<string>;
}

/** Images whose programs are given as options alone begin with this, as an entrypoint of theirs would. */
const ENTRYPOINT = `#!/bin/sh
case $1 in -*) exec /bin/node "$@";; esac
exec "$@"
`;

async function importStandIn(engine: Engine): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'sbx-stand-in-'));
  try {
    const tree = join(directory, 'tree');
    mkdirSync(tree);
    writeBusyboxTree(tree, { 'etc/passwd': USERS, 'srv/index.html': 'here\n', 'srv/health': 'well\n' });
    for (const [name, text] of [
      ['stand-in', PROGRAM],
      ['entrypoint', ENTRYPOINT],
    ] as const) {
      writeFileSync(join(tree, 'bin', name), text);
      chmodSync(join(tree, 'bin', name), 0o755);
    }
    for (const name of NAMES) {
      rmSync(join(tree, 'bin', name), { force: true });
      symlinkSync('stand-in', join(tree, 'bin', name));
    }
    mkdirSync(join(tree, 'home/node'));
    await run('tar', ['--numeric-owner', '-C', tree, '-cf', `${tree}.tar`, '.']);
    const changes = ['ENTRYPOINT ["/bin/entrypoint"]', 'CMD ["node"]'];
    await engine.docker('import', ...changes.flatMap((text) => ['--change', text]), `${tree}.tar`, STAND_IN);
  } finally {
    rmSync(directory, { recursive: true });
  }
}

export async function nameStandIns(engine: Engine, names: Iterable<string>): Promise<void> {
  await importStandIn(engine);
  for (const name of names) await engine.docker('tag', STAND_IN, name);
}
