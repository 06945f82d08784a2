import { spawnSync } from 'node:child_process';
import { chmodSync, chownSync, copyFileSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const BUSYBOX = '/bin/busybox';

/** The root file system of a small machine: busybox under all its names, root, and `sandbox` as user 1000. */
export function writeBusyboxTree(directory: string, extra: Readonly<Record<string, string>> = {}): void {
  for (const name of ['bin', 'dev', 'etc', 'home/sandbox', 'proc', 'root', 'run', 'sys', 'usr/bin', 'var']) {
    mkdirSync(join(directory, name), { recursive: true });
  }
  // What temporary directories are made with is for nobody else.
  chmodSync(directory, 0o755);
  mkdirSync(join(directory, 'tmp'));
  chmodSync(join(directory, 'tmp'), 0o1777);
  chownSync(join(directory, 'home/sandbox'), 1000, 1000);
  copyFileSync(BUSYBOX, join(directory, 'bin/busybox'));
  const applets = spawnSync(BUSYBOX, ['--list'], { encoding: 'utf8' }).stdout.trim().split('\n');
  for (const name of applets) {
    if (name !== 'busybox') symlinkSync('/bin/busybox', join(directory, 'bin', name));
  }
  symlinkSync('/bin/env', join(directory, 'usr/bin/env'));
  const files = {
    'etc/passwd':
      'root:x:0:0:root:/root:/bin/sh\nsandbox:x:1000:1000:sandbox:/home/sandbox:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n',
    'etc/group': 'root:x:0:\nsandbox:x:1000:\nnogroup:x:65534:\n',
    'etc/hostname': 'sandbox\n',
    ...extra,
  };
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(directory, path)), { recursive: true });
    writeFileSync(join(directory, path), content);
  }
}
