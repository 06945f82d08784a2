/**
 * What our reading makes of a stack is what `docker-compose config` makes of it. Where the two generations differ
 * (defaults within defaults) ours is the newer one; `config` of the older shows services of every profile.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { loadProject } from '../../../src/extensions/compose-ssh/compose/load/load-project.ts';
import { memoryTree } from '../../../src/extensions/compose-ssh/compose/tree/memory-tree.ts';
import { Findings } from '../../../src/extensions/compose-ssh/compose/yaml/finding.ts';

type Services = { [name: string]: { [field: string]: unknown } };

const CASES: Readonly<
  Record<
    string,
    { files: Record<string, string>; compose?: string[]; env?: Record<string, string>; profiles?: string[] }
  >
> = {
  'two files, lists and maps': {
    files: {
      'a.yml':
        'version: "3.8"\nservices: {web: {image: a, environment: [A=1, B=2], command: [x, y], expose: ["80"], dns: [1.1.1.1], labels: {one: "1"}}}',
      'b.yml':
        'version: "3.8"\nservices: {web: {image: b, environment: {B: "3", C: 4}, command: z, expose: ["81"], dns: [8.8.8.8], labels: [two=2]}, db: {image: d}}',
    },
    compose: ['a.yml', 'b.yml'],
  },
  'variables and defaults': {
    files: {
      'docker-compose.yml':
        'version: "3.8"\nservices: {web: {image: "${I:-def}:${T-1}", hostname: "${EMPTY:-filled}", domainname: "x${EMPTY-unused}y", user: "$U", environment: {D: "cost $$5"}}}',
      '.env': 'T=9\nU=joe # comment\nEMPTY=\nQ="a b"\n',
    },
    env: { I: 'image' },
  },
  'the environment wins over .env, and env_file is below environment': {
    files: {
      'docker-compose.yml':
        'version: "3.8"\nservices: {web: {image: "${A}", env_file: [one.env, two.env], environment: {X: top}}}',
      '.env': 'A=file\n',
      'one.env': "# comment\nX=1\nY=1\nS='single $A'\n",
      'two.env': 'Y=2\nZ=3\n',
    },
    env: { A: 'given' },
  },
  'extends, in this file and in another': {
    files: {
      'docker-compose.yml':
        'version: "3.8"\nservices: {web: {extends: {file: sub/base.yml, service: app}, environment: {B: own}}, worker: {extends: {service: web}, command: work}}',
      'sub/base.yml':
        'version: "3.8"\nservices: {app: {image: app, environment: {A: base, B: base}, env_file: here.env, entrypoint: [run]}}',
      'sub/here.env': 'F=1\n',
    },
  },
  'anchors and merge keys': {
    files: {
      'docker-compose.yml':
        'version: "3.8"\nx-all: &all {image: shared, environment: &env {A: "1"}}\nservices: {a: {<<: *all, command: one}, b: {<<: *all, environment: {<<: *env, B: "2"}}}',
    },
  },
};

/** Of what both tell, in one form. */
function plain(services: Services): Services {
  const fields = [
    'image',
    'environment',
    'command',
    'entrypoint',
    'expose',
    'dns',
    'labels',
    'user',
    'hostname',
    'domainname',
  ];
  return Object.fromEntries(
    Object.entries(services).map(([name, service]) => [
      name,
      Object.fromEntries(
        fields.flatMap((field) => {
          let value = service[field];
          if (value === undefined || (typeof value === 'object' && Object.keys(value ?? {}).length === 0))
            return [];
          if (field === 'expose' || field === 'dns') value = [...(value as string[])].map(String).sort();
          if (field === 'environment' || field === 'labels')
            value = Object.fromEntries(
              Object.entries(value as object).map(([key, item]) => [key, String(item)]),
            );
          return [[field, value]];
        }),
      ),
    ]),
  );
}

describe.skipIf(spawnSync('which', ['docker-compose']).status !== 0)(
  'a stack as compose reads it',
  { timeout: 60_000 },
  () => {
    it.each(Object.entries(CASES))('%s', async (_name, { files, compose = [], env = {} }) => {
      const directory = mkdtempSync(join(tmpdir(), 'sbx-same-'));
      for (const [path, text] of Object.entries(files)) {
        mkdirSync(dirname(join(directory, path)), { recursive: true });
        writeFileSync(join(directory, path), text);
      }
      const args = [...compose.flatMap((file) => ['-f', file]), 'config'];
      const { stdout, stderr, status } = spawnSync('docker-compose', args, {
        cwd: directory,
        env: { PATH: process.env.PATH, ...env },
        encoding: 'utf8',
      });
      rmSync(directory, { recursive: true });
      expect(status, stderr).toBe(0);
      const theirs = parse(stdout.replaceAll('$$', '$')) as { services: Services };
      const findings = new Findings();
      const ours = await loadProject(memoryTree(files), { files: compose, env, profiles: [] }, findings);
      findings.settle(false);
      expect(plain(Object.fromEntries(ours.services) as Services)).toEqual(plain(theirs.services));
    });
  },
);
