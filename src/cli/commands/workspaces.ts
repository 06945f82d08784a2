import type { Command } from 'commander';
import type { Workspace } from '../../contract/tenancy.ts';
import type { Invocation } from '../invocation.ts';
import { ageOf } from '../output/relative-time.ts';
import type { Column } from '../output/table.ts';

interface CreateFlags {
  readonly org: string;
  readonly name?: string;
  readonly newOrg?: boolean;
}

function columns(now: number): Column<Workspace>[] {
  return [
    { title: 'WORKSPACE', value: (row) => row.workspace_id },
    { title: 'ORG', value: (row) => row.org_id },
    { title: 'NAME', cuttable: true, value: (row) => row.name },
    { title: 'AGE', value: (row) => ageOf(row.created_at, now) },
  ];
}

export function define(command: Command, invocation: Invocation): void {
  command
    .command('list', { isDefault: true })
    .description('List the workspaces')
    .option('--org <id>', 'only of this organisation')
    .action(async (flags: { readonly org?: string }) => {
      const { printer } = invocation;
      const found = await (await invocation.client()).tenants.listWorkspaces(
        flags.org === undefined ? {} : { org: flags.org },
      );
      printer.result(found, () => printer.table(columns(Date.now()), found.items));
    });
  command
    .command('create')
    .description('Make a workspace')
    .argument('<id>')
    .option('--org <id>', 'the organisation it belongs to', 'default')
    .option('--new-org', 'make the organisation, too')
    .option('--name <name>', 'a name for people')
    .action(async (id: string, flags: CreateFlags) => {
      const { printer } = invocation;
      const { tenants } = await invocation.client();
      if (flags.newOrg) await tenants.createOrg({ org_id: flags.org });
      const name = flags.name === undefined ? {} : { name: flags.name };
      const workspace = await tenants.createWorkspace({ workspace_id: id, org_id: flags.org, ...name });
      printer.result(workspace, () => printer.line(workspace.workspace_id));
    });
  command
    .command('delete')
    .description('Delete a workspace that is empty')
    .argument('<id>')
    .action(async (id: string) => {
      await (await invocation.client()).tenants.deleteWorkspace(id);
      invocation.printer.result({ workspace_id: id }, () => invocation.printer.line(id));
    });
}
