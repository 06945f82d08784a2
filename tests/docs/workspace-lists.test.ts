import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { SECRET_NAMES } from '../../src/archive/ignore/secret-names.ts';
import { HOST_EXECUTED } from '../../src/client/mirror/host-executed.ts';
import { BLOCKED_SOURCES } from '../../src/extensions/local/mounts/blocked-sources.ts';
import { BLOCKED_IN_HOME } from '../../src/extensions/local/mounts/in-home.ts';
import { RESERVED_FOR_MOUNTS, RESERVED_PLACES } from '../../src/extensions/local/mounts/mount-targets.ts';
import { ROOT } from './run-document.ts';

const guide = readFileSync(join(ROOT, 'docs/guides/workspaces.md'), 'utf8');

const LISTS = {
  HOST_EXECUTED,
  SECRET_NAMES,
  BLOCKED_SOURCES,
  BLOCKED_IN_HOME,
  RESERVED_PLACES,
  RESERVED_FOR_MOUNTS,
};

it.each(Object.entries(LISTS))('the guide on workspaces has all of %s', (_, list) => {
  expect(list.filter((name) => !guide.includes(`\`${name}\``))).toEqual([]);
});
