/** Stacks as people write them are accepted, and what is told of them is what is expected. */
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { loadProject } from '../../../src/extensions/compose-ssh/compose/load/load-project.ts';
import { readStack } from '../../../src/extensions/compose-ssh/compose/model/read-stack.ts';
import { GATEWAY, planStack } from '../../../src/extensions/compose-ssh/compose/plan/plan-stack.ts';
import { memoryTree } from '../../../src/extensions/compose-ssh/compose/tree/memory-tree.ts';
import { Findings } from '../../../src/extensions/compose-ssh/compose/yaml/finding.ts';
import type { CorpusStack } from '../../support/compose-corpus.ts';
import { readCorpus } from '../../support/compose-corpus.ts';

const CORPUS = readCorpus();

async function plan({ files, composeFiles, env, profiles }: CorpusStack) {
  const tree = memoryTree(files);
  const findings = new Findings();
  const project = await loadProject(tree, { files: composeFiles, env, profiles }, findings);
  const model = readStack({ project, tree, findings, given: new Set() });
  findings.settle(false);
  const planned = planStack(
    model,
    tree,
    {
      project: 'sbxcorpus',
      labels: {},
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
      subnets: ['10.99.0.0/27', '10.99.0.32/27', '10.99.0.64/27', '10.99.0.96/27'],
      composeVersion: '1.29',
      unheld: [],
    },
    findings,
  );
  findings.settle(false);
  return planned;
}

describe('compose: the corpus of 50 honest stacks', () => {
  it('the corpus has 50 stacks', () => {
    expect(CORPUS).toHaveLength(50);
  });

  it.each(CORPUS.map((stack) => [stack.name, stack] as const))(
    '%s is accepted, with the notes expected',
    async (_name, stack) => {
      const { file, notes, services } = await plan(stack);
      expect(services.length).toBeGreaterThan(0);
      expect(Object.keys(parse(file).services).filter((name) => name !== GATEWAY)).toEqual([...services]);
      expect([...notes].sort()).toEqual([...stack.notes].sort());
    },
  );
});
