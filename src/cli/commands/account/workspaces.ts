import type { Command } from 'commander';
import type { RouteCeiling } from '../../../contract/routing/route.ts';
import type { Workspace } from '../../../contract/tenancy/tenancy.ts';
import { choice } from '../../args/choices.ts';
import { ISOLATION_LEVELS } from '../../args/create-options.ts';
import { decimalNumber } from '../../args/numbers.ts';
import { list } from '../../args/pairs.ts';
import type { Invocation } from '../../invocation/invocation.ts';
import { defineList } from '../../invocation/listing.ts';
import { ageOf } from '../../output/relative-time.ts';
import type { Column } from '../../output/table.ts';

interface CreateFlags {
  readonly org: string;
  readonly name?: string;
  readonly newOrg?: boolean;
}

interface PolicyFlags {
  readonly only?: string[];
  readonly ignore?: string[];
  readonly maxCostPerHour?: number;
  readonly region?: string;
  readonly dataResidency?: string;
  readonly isolation?: 'policy' | 'container' | 'gvisor' | 'microvm';
  /** `false` for `--no-hedge`. */
  readonly hedge: boolean;
  readonly clear?: boolean;
}

/** Returns `null` when no flag is given. */
function policyOf(flags: PolicyFlags): RouteCeiling | null {
  const { only, ignore, maxCostPerHour, region, dataResidency, isolation, hedge } = flags;
  const constraints = {
    ...(maxCostPerHour !== undefined && { max_cost_per_hour: maxCostPerHour }),
    ...(region !== undefined && { region }),
    ...(dataResidency !== undefined && { data_residency: dataResidency }),
    ...(isolation !== undefined && { isolation }),
  };
  const policy = {
    ...(only && { only }),
    ...(ignore && { ignore }),
    ...(!hedge && { hedge: 'off' as const }),
    ...(Object.keys(constraints).length > 0 && { constraints }),
  };
  return Object.keys(policy).length > 0 ? policy : null;
}

function columns(_rows: readonly Workspace[], now: number): Column<Workspace>[] {
  return [
    { title: 'WORKSPACE', value: (row) => row.workspace_id },
    { title: 'ORG', value: (row) => row.org_id },
    { title: 'NAME', cuttable: true, value: (row) => row.name },
    { title: 'AGE', value: (row) => ageOf(row.created_at, now) },
  ];
}

export function define(command: Command, invocation: Invocation): void {
  defineList(command, invocation, {
    description: 'List the workspaces',
    empty: 'There are no such workspaces.',
    fetch: (client, { org }: { readonly org?: string }) =>
      client.tenants.listWorkspaces(org === undefined ? {} : { org }),
    name: (row) => row.workspace_id,
    columns,
  }).option('--org <id>', 'only of this organisation');
  command
    .command('create')
    .description('Make a workspace')
    .argument('<id>', 'its id')
    .option('--org <id>', 'the organisation it belongs to', 'default')
    .option('--new-org', 'also make the organisation')
    .option('--name <name>', 'a name for people')
    .action(async (id: string, flags: CreateFlags) => {
      const { printer } = invocation;
      const { tenants } = await invocation.client();
      if (flags.newOrg) await tenants.createOrg({ org_id: flags.org });
      const name = flags.name === undefined ? {} : { name: flags.name };
      const workspace = await tenants.createWorkspace({ workspace_id: id, org_id: flags.org, ...name });
      printer.result(workspace, () => printer.line(workspace.workspace_id));
    });
  const policy = command
    .command('policy')
    .description('Show or set what sandboxes of a workspace may be routed to')
    .argument('<workspace>', 'its id')
    .option('--only <extension>', 'allow only this backend', list)
    .option('--ignore <extension>', 'never use this backend', list)
    .option('--max-cost-per-hour <usd>', 'never above this', decimalNumber)
    .option('--region <name>', 'only in this region')
    .option('--data-residency <region>', 'only backends that stay in this region');
  choice(policy, '--isolation <level>', {
    description: 'at least: policy, container, gvisor or microvm',
    values: ISOLATION_LEVELS.slice(1),
  });
  policy
    .option('--no-hedge', 'never start a second attempt next to a slow first')
    .option('--clear', 'allow everything again')
    .action(async (id: string, flags: PolicyFlags) => {
      const { tenants } = await invocation.client();
      const policy = policyOf(flags);
      const changed = flags.clear === true || policy !== null;
      const workspace = changed ? await tenants.setPolicy(id, policy) : await tenants.getWorkspace(id);
      const { printer } = invocation;
      printer.result(workspace, () =>
        printer.details([
          ['workspace', workspace.workspace_id],
          ['only', workspace.policy?.only?.join(', ') ?? 'any backend'],
          ['ignore', workspace.policy?.ignore?.join(', ') ?? null],
          ['second attempts', workspace.policy?.hedge === 'off' ? 'never' : null],
          ...Object.entries(workspace.policy?.constraints ?? {}).map(
            ([name, value]) => [name.replaceAll('_', ' '), String(value)] as const,
          ),
        ]),
      );
    });
  command
    .command('delete')
    .description('Delete a workspace that is empty')
    .argument('<workspace>', 'its id')
    .option('--move-credits <workspace>', 'move credits that it has to this workspace')
    .option('--expire-credits', 'take back credits that it has')
    .action(async (id: string, options: { moveCredits?: string; expireCredits?: boolean }) => {
      const { moveCredits: to, expireCredits } = options;
      const credits = to !== undefined ? 'move' : expireCredits ? 'expire' : undefined;
      await (await invocation.client()).tenants.deleteWorkspace(id, { credits, to });
      invocation.printer.result({ workspace_id: id }, () => invocation.printer.line(id));
    });
}
