import assert from 'node:assert/strict';
import { IsolationLevel, ResourceName } from '../../../contract/extensions/capability.ts';
import type { Recipe } from '../../../core/recipe/recipe.ts';
import { claimTests } from '../conformance-test.ts';
import { defaultRecipe } from '../default-recipe.ts';
import { expectError } from '../expect-error.ts';
import type { Subject } from '../subject.ts';

const test = claimTests('refusal');

async function refused(subject: Subject, what: string, recipe: Partial<Recipe>): Promise<void> {
  const spec = subject.spec({ recipe, owner: `${subject.owner}-${what}` });
  const work = subject.extension.provision(spec, subject.context());
  await expectError(work, ['SBX_UNSUPPORTED'], 'not_created');
  assert.deepEqual(await subject.ownedAttempts(spec.stamp.owner), [], `${what}: something was made.`);
}

export const refusalTests = [
  test('a network that is not declared', async (subject) => {
    const { deny_all, open_network, egress } = subject.capabilities;
    if (!deny_all) await refused(subject, 'deny', { network: { default: 'deny', egress: [] } });
    if (!open_network) await refused(subject, 'open', { network: { default: 'allow', egress: [] } });
    if (egress === 'none' || egress === 'proxy-env') {
      const rules = [{ host: 'example.org', port: 443 }];
      await refused(subject, 'egress', { network: { default: 'deny', egress: rules } });
    }
  }),

  test('a stronger isolation than declared', async (subject) => {
    const levels = IsolationLevel.options;
    const strongest = Math.max(...subject.capabilities.isolation.map((level) => levels.indexOf(level)));
    for (const isolation of levels.slice(strongest + 1)) await refused(subject, isolation, { isolation });
  }),

  test('limits that are not declared', async (subject) => {
    const { resources: declared, memory_overrun } = subject.capabilities;
    const none = defaultRecipe(subject.capabilities).resources;
    for (const name of ResourceName.options) {
      if (name === 'gpu' || declared.includes(name)) continue;
      await refused(subject, name.replaceAll('_', '-'), { resources: { ...none, [name]: 512 } });
    }
    if (memory_overrun === 'sandbox')
      await refused(subject, 'overrun', { requires: { memory_overrun: 'process' } });
  }),

  test('elevation that is not declared', async (subject) => {
    if (!subject.capabilities.elevated) await refused(subject, 'elevated', { elevated: true });
  }),
];
