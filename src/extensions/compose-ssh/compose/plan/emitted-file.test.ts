import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { SandboxerError } from '../../../../contract/errors/errors.ts';
import { loadProject } from '../load/load-project.ts';
import { HOSTILE_TEXTS, HOSTILE_TREE, hostileSites } from '../model/hostile-stacks.ts';
import { readStack } from '../model/read-stack.ts';
import { memoryTree } from '../tree/memory-tree.ts';
import type { Tree } from '../yaml/compose-yaml.ts';
import { Findings } from '../yaml/finding.ts';
import { faultsOfPlan } from './closed-file.ts';
import type { StackPlan, StackTerms } from './plan-stack.ts';
import { planStack } from './plan-stack.ts';

const PROJECT = 'sbxtest';
const TERMS: StackTerms = {
  project: PROJECT,
  labels: { 'io.sandboxer.owner': 'me' },
  openNetwork: false,
  resources: { cpu: null, memory_mb: null, disk_mb: null, pids: null, open_files: null, gpu: null },
  elevated: false,
  fromSeed: false,
  variables: {},
  secrets: [],
  directory: '/stack',
  secretDirectory: '/secrets',
  agent: '/agent',
  gatewayImage: 'gateway',
  subnets: ['10.99.0.0/28', '10.99.0.16/28', '10.99.0.32/28'],
  composeVersion: null,
  unheld: [],
};

async function planOf(text: string, terms: Partial<StackTerms> = {}): Promise<StackPlan> {
  const tree = memoryTree({ ...HOSTILE_TREE, 'compose.yaml': text });
  const findings = new Findings();
  const project = await loadProject(tree, { files: [], env: {}, profiles: [] }, findings);
  const given = new Set((terms.secrets ?? []).map(({ name }) => name));
  const model = readStack({ project, tree, findings, given });
  findings.settle(terms.elevated ?? false);
  return planStack(model, tree, { ...TERMS, ...terms }, findings);
}

/** Returns the stack as YAML: exact, or as an author might write it. */
function written(stack: Tree): string {
  return stringify(stack, { defaultStringType: 'QUOTE_DOUBLE', defaultKeyType: 'QUOTE_DOUBLE' });
}

/** Returns the faults of the result of a stack: it must be refused with field and remedy, or be a closed file. */
async function faultsOf(stack: Tree): Promise<string[]> {
  const outcome = await planOf(written(stack)).catch((reason: unknown) => reason);
  if (outcome instanceof SandboxerError) {
    const { detail, extras, code } = outcome;
    const isTold = (extras.field ?? '') !== '' && (extras.remedy ?? '') !== '';
    const isTyped = code === 'SBX_COMPOSE_INVALID' || code === 'SBX_COMPOSE_REFUSED';
    return isTold && isTyped && !/\p{C}/u.test(detail)
      ? []
      : [`the error ${code}: ${JSON.stringify(detail)}`];
  }
  if (outcome instanceof Error) return [`${outcome.name}: ${outcome.message}`];
  return faultsOfPlan(outcome as StackPlan, PROJECT);
}

const SITES = hostileSites();

describe('compose: the emitted file, whatever the compose file says', () => {
  it('sites: every field of the model has at least one', () => {
    expect(SITES.length).toBeGreaterThan(250);
  });

  it.each(SITES.map((site) => [site.path, site] as const))(
    'compose: %s with its example is emitted closed, or refused with a remedy',
    async (_path, site) => {
      expect(await faultsOf(site.with(site.example))).toEqual([]);
    },
  );

  it('compose: each hostile text in each place is refused, or emitted closed', {
    timeout: 120_000,
  }, async () => {
    const faults: string[] = [];
    for (const [n, site] of SITES.entries()) {
      // Each place gets every sixth text, and each text a sixth of the places; the random runs below mix them.
      for (let at = n % 6; at < HOSTILE_TEXTS.length; at += 6) {
        const text = HOSTILE_TEXTS[at] ?? '';
        for (const fault of await faultsOf(site.with(text)))
          faults.push(`${site.path} = ${JSON.stringify(text.slice(0, 40))}: ${fault}`);
      }
    }
    expect(faults.slice(0, 20)).toEqual([]);
  });

  it('compose: hostile parts of valid texts are refused, or emitted closed', {
    timeout: 120_000,
  }, async () => {
    const part = fc.oneof(fc.constantFrom(...HOSTILE_TEXTS), fc.string({ unit: 'binary', maxLength: 40 }));
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...SITES),
        part,
        fc.nat(64),
        fc.constantFrom('insert', 'replace', 'piece'),
        async (site, text, at, how) => {
          const { example } = site;
          const pieces = example.split(/([:,/=])/);
          const place = at % (example.length + 1);
          const mixed =
            how === 'replace'
              ? text
              : how === 'insert'
                ? example.slice(0, place) + text + example.slice(place)
                : pieces.with(at % pieces.length, text).join('');
          expect(await faultsOf(site.with(mixed))).toEqual([]);
        },
      ),
      { numRuns: 3000 },
    );
  });

  it('compose: text that only a program reads arrives as it is', async () => {
    const texts = [
      'a\nb\tc',
      '$HOME and $$',
      'ends with \\',
      '"quoted"',
      '\u2028\u0085\u007f',
      '😀',
      'x'.repeat(4096),
      `$\{A:-b}`,
    ];
    for (const text of texts) {
      const stack = {
        services: {
          web: {
            image: 'x',
            command: ['echo', text.replaceAll('$', '$$$$')],
            environment: { TEXT: text.replaceAll('$', '$$$$') },
          },
        },
      };
      const { file } = await planOf(written(stack));
      const web = (parse(file) as { services: { web: { command: string[]; environment: { TEXT: string } } } })
        .services.web;
      expect(web.command[1]?.replaceAll('$$', '$')).toBe(text);
      expect(web.environment.TEXT.replaceAll('$$', '$')).toBe(text);
      expect(file).not.toMatch(/[\u007f-\u009f\u2028\u2029]/);
    }
  });
});
