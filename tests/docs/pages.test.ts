import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { COMMAND_TABLE, findCommand } from '../../src/cli/command-table.ts';
import { definedCommand } from '../../src/cli/invocation/defined-command.ts';
import { ROOT } from './run-document.ts';

const read = (file: string) => readFileSync(path.join(ROOT, file), 'utf8');

/** What other projects and people are told to look for. */
const PAGES = [
  'tutorial.md',
  'guides/README.md',
  'meta-framework.md',
  'host-telemetry.md',
  'migration-gaps.md',
  'contributing/add-an-extension.md',
  ...[
    'errors.md',
    'cli.md',
    'config.md',
    'api.md',
    'api.html',
    'openapi.json',
    'lifecycle.md',
    'profile.md',
  ].map((name) => `reference/${name}`),
  ...[
    'glas-harness',
    'wise-validator',
    'snuggle-inventor',
    'activity-core',
    'state-hub',
    'ops-bridge',
    'ops-warden',
    'fin-hub',
    'reuse-surface',
  ].map((name) => `integrations/${name}.md`),
];

describe('the documents', () => {
  it.each(PAGES)('the documents have %s, with something in it', (page) => {
    expect(read(`docs/${page}`).length).toBeGreaterThan(1000);
  });

  it.each(PAGES.filter((page) => page.startsWith('integrations/')))('the documents lead to %s', (page) => {
    expect(read('docs/integrations/README.md')).toContain(`(${path.basename(page)})`);
  });
});

describe('the systemd unit', () => {
  const unit = read('docs/guides/sandboxer.service');
  const values = (name: string) =>
    [...unit.matchAll(new RegExp(`^${name}=(.*)$`, 'gm'))].map(([, value]) => value);

  it('the systemd unit starts a command that exists, with variables that it reads', async () => {
    const [start = ''] = values('ExecStart');
    const [program = '', command = '', ...flags] = start.split(' ');
    expect(path.basename(program)).toBe('sandboxer');
    const entry = findCommand(command);
    expect(entry?.name).toBe('serve');
    const known = entry ? (await definedCommand(entry, COMMAND_TABLE)).options.map(({ long }) => long) : [];
    for (const flag of flags.filter((word) => word.startsWith('--'))) expect(known).toContain(flag);
    const reference = read('docs/reference/config.md');
    for (const pair of values('Environment')) expect(reference).toContain(`\`${pair?.split('=')[0]}\``);
  });

  it('the systemd unit keeps the state to itself, and leaves the sandboxes alone when it stops', () => {
    expect(values('StateDirectoryMode')).toEqual(['0700']);
    expect(values('UMask')).toEqual(['0077']);
    expect(values('KillSignal')).toEqual(['SIGTERM']);
    expect(values('KillMode')).toEqual(['process']);
    expect(values('User')).not.toContain('root');
  });

  it('the package holds the systemd unit', () => {
    const { files } = JSON.parse(read('package.json')) as { files: string[] };
    for (const file of ['docs/guides/sandboxer.service', 'docs/reference/api.html']) {
      expect(files).toContain(file);
      expect(existsSync(path.join(ROOT, file))).toBe(true);
    }
  });
});
