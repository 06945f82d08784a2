/** An engine that maps ids (`userns-remap`): nobody inside is anybody outside. */
import { execFileSync } from 'node:child_process';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { DockerWorld, output } from '../../support/docker-world.ts';
import type { Dockerd } from '../../support/dockerd.ts';
import { whyNoDockerd } from '../../support/dockerd.ts';

const whyNot = whyNoDockerd();

/** Ranges of its own, which only this engine sees. */
function giveRanges(engine: Dockerd): readonly string[] {
  chmodSync(engine.directory, 0o755);
  for (const name of ['subuid', 'subgid']) {
    const file = join(engine.directory, name);
    writeFileSync(file, 'nobody:200000:65536\nnogroup:200000:65536\n');
    const [command = '', ...args] = engine.inside('mount', '--bind', file, `/etc/${name}`);
    execFileSync(command, args);
  }
  return [];
}

describe.skipIf(whyNot !== null)(`an engine that maps ids${whyNot ? ` (${whyNot})` : ''}`, () => {
  it('an engine that maps ids runs sandboxes as ids that exist nowhere else', async () => {
    const config = { 'userns-remap': 'nobody:nogroup' };
    const world = await DockerWorld.start({}, { config, arguments: giveRanges });
    try {
      const living = await world.establish();
      expect(await output(living.session, 'id -u; echo mine > file && cat file')).toBe('1000\nmine');
      const facts = await world.extension.inspectIsolation(living.handle, world.context);
      expect(facts.uid_map).toEqual([{ inside: 0, outside: 200_000, count: 65_536 }]);
      expect(facts.namespaces.filter(({ own }) => !own)).toEqual([]);
      const { notes } = await world.extension.waitReady(living.handle, world.context);
      expect(notes.join(' ')).not.toContain('user ids');
      await world.end(living);
    } finally {
      await world.close();
    }
  });
});
