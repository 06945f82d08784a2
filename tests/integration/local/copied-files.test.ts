/** What a busy sandbox has written is copied by two at once: every file as what it is, whatever its neighbours are. */
import { afterAll, describe, expect, it } from 'vitest';
import { spawnSpec } from '../../../src/testing/conformance/run-program.ts';
import { LocalWorld, shell } from '../../security/local-world.ts';

const world = new LocalWorld({ warm: 0 });
const reason = await world.whyNot();

/** More plain files than are shared out at once, with everything else between them. */
const FILL = `
umask 027; mkdir -p d/e/f; i=0
while [ $i -lt 1300 ]; do echo "content $i" > d/$i; i=$((i+1)); done
i=0; while [ $i -lt 1300 ]; do ln d/$i d/e/link-$i; i=$((i+100)); done
chmod 4755 d/7; chmod 2750 d/8; chmod 1777 d/e; chmod 000 d/9; chmod 666 d/10
truncate -s 5G d/holes; printf x | dd of=d/holes bs=1 seek=3000000000 conv=notrunc 2>/dev/null
mkfifo d/pipe; ln -s ../../nowhere d/symbolic; : > "d/e/f/$(printf 'n%.0s' $(seq 1 255))"; mkdir d/empty
touch -d 2001-02-03T04:05:06.789 d/11 d/e/f d/empty; sudo chown 0:1000 d/12; sudo chmod 6755 d/12
python3 -c 'import os; os.setxattr("d/13", "user.note", b"kept"); os.setxattr("d/e", "user.place", b"here")' 2>&1`;
const LOOK = `
find d -type d -printf '%p %y %m %U:%G %T@\\n' -o -printf '%p %y %m %U:%G %s %n %l %T@\\n' | sort; sudo sh -c 'find d -type f -size -1000k | sort | xargs sha256sum'
stat -c %i d/100 d/e/link-100 | uniq | wc -l; du -k d/holes | cut -f1; tail -c 1294967296 d/holes | head -c 1
python3 -c 'import os; print(os.getxattr("d/13", "user.note"), os.getxattr("d/e", "user.place"))' 2>&1`;

describe.skipIf(reason !== null)(`files of a busy sandbox${reason === null ? '' : ` (${reason})`}`, () => {
  afterAll(() => world.close(), 60_000);

  it('files of a busy sandbox are the same in its fork: links, holes, owners, modes, times, attributes, names', async () => {
    const source = await world.establish({ persistence: 'ephemeral' });
    const filled = await shell(source.session, FILL);
    expect(filled.code, filled.stdout + filled.stderr).toBe(0);
    const writer = await source.session.spawn(
      spawnSpec(['/bin/sh', '-c', 'while :; do date > busy; sleep 0.01; done'], { background: true }),
    );
    const before = (await shell(source.session, LOOK)).stdout;
    expect(before.split('\n').length).toBeGreaterThan(2600);
    const spec = world.spec({ persistence: 'ephemeral' });
    const fork = await world.open(spec, await world.extension.fork(source.handle, spec, world.context));
    expect((await shell(fork.session, LOOK)).stdout).toBe(before);
    await writer.kill('SIGKILL');
    await writer.exit;
    await world.end(fork);
    await world.end(source);
  });
});
