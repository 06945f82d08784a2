import type { Command } from 'commander';
import type { StackPlan } from '../../../contract/sandboxes/stack-plan.ts';
import type { CreateFlags } from '../../args/create-options.ts';
import { addCreateOptions, createRequestOf } from '../../args/create-options.ts';
import { addStageOptions } from '../../args/stage-options.ts';
import type { Invocation } from '../../invocation/invocation.ts';
import type { StageFlags } from '../../transfer/stage-inputs.ts';
import { stageInputs } from '../../transfer/stage-inputs.ts';

const PROFILE = 'profile.compose-e2e';

interface Flags extends CreateFlags, StageFlags {}

function show({ printer }: Invocation, plan: StackPlan): void {
  if (plan.file !== null) printer.line(plan.file.trimEnd());
  for (const { kind, service, field, detail, remedy } of plan.findings) {
    const refused = kind === 'boundary' && plan.accepted ? 'elevated' : 'refused';
    const place = service === null ? field : `services.${service}.${field}`;
    printer.note(`${refused}: ${place}: ${detail} ${remedy}`);
  }
  for (const note of plan.notes) printer.note(`note: ${note}`);
}

export function define(command: Command, invocation: Invocation): void {
  const plan = command
    .command('plan')
    .description('Show the file for the engine, refused fields and omitted fields')
    .argument('[directory]', 'the tree with the compose file; default: as the inputs say');
  addStageOptions(addCreateOptions(plan)).action(async (directory: string | undefined, flags: Flags) => {
    const { printer } = invocation;
    const client = await invocation.client();
    const asked = createRequestOf(flags);
    const inputs = { ...asked.inputs, ...(directory === undefined ? {} : { repo: directory }) };
    const request = { ...asked, profile: asked.profile ?? PROFILE, inputs };
    const staged = await stageInputs(invocation, async () => client, request, { flags });
    const found = await client.stacks.plan(staged);
    printer.result(found, () => show(invocation, found));
    if (!found.accepted) invocation.exitCode = 1;
  });
}
