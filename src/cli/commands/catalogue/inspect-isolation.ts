import type { Command } from 'commander';
import type { IsolationReport } from '../../../contract/extensions/isolation.ts';
import type { Invocation } from '../../invocation/invocation.ts';
import { byteText } from '../../output/amounts.ts';

type Mapping = IsolationReport['uid_map'];

const words = (list: readonly string[]) => (list.length === 0 ? 'none' : list.join(' '));
const mapText = (map: Mapping) =>
  map.map(({ inside, outside, count }) => `${inside} is ${outside} outside (${count} ids)`).join('\n');
const onOff = (on: boolean) => (on ? 'on' : 'off');

function limitText({ limits }: IsolationReport): string {
  const bytes = (value: number | null) => (value === null ? 'unlimited' : byteText(value));
  const count = (value: number | null) => (value === null ? 'unlimited' : String(value));
  return [
    `memory ${bytes(limits.memory_bytes)}`,
    `processes ${count(limits.pids)}`,
    `processors ${limits.cpu_millis === null ? 'unlimited' : limits.cpu_millis / 1000}`,
    `open files ${count(limits.open_files)}`,
    `core dumps ${count(limits.core_bytes)}`,
  ].join('\n');
}

function show(invocation: Invocation, report: IsolationReport): void {
  const { printer } = invocation;
  const { namespaces, seccomp, capabilities, lsm, runtime } = report;
  const filters = seccomp.filters === null ? '' : `, ${seccomp.filters} filters`;
  printer.details([
    ['sandbox', report.sandbox_id],
    ['extension', report.extension],
    ['level', report.level],
    ['runtime', `${runtime.name} ${runtime.version}`],
    ['kernel', report.kernel],
    ['own namespaces', words(namespaces.filter(({ own }) => own).map(({ kind }) => kind))],
    ['shared namespaces', words(namespaces.filter(({ own }) => !own).map(({ kind }) => kind))],
    ['user ids', mapText(report.uid_map)],
    ['group ids', mapText(report.gid_map)],
    ['seccomp', `${seccomp.mode}${filters}`],
    ['no_new_privs', onOff(report.no_new_privs)],
    ['capabilities', words(capabilities.bounding)],
    ['of its init', words(capabilities.effective)],
    ['security modules', `${words(lsm.active)}; label: ${lsm.label ?? 'none'}`],
    [`limits (cgroup ${report.limits.version})`, limitText(report)],
    ['interfaces', words(report.network.interfaces)],
    ['root', report.root && `${report.root.type}, ${report.root.read_only ? 'read-only' : 'writable'}`],
    ['not in force', words(report.not_enforced.map((sentence) => `${sentence}\n`)).replace(/\n /g, '\n')],
  ]);
}

export function defineInspectIsolation(command: Command, invocation: Invocation): void {
  command
    .command('isolation')
    .description('Show the isolation in force between a sandbox and its host, read from the kernel')
    .argument('<id>', 'the sandbox')
    .action(async (id: string) => {
      const report = await (await invocation.client()).sandboxes.isolation(id);
      invocation.printer.result(report, () => show(invocation, report));
    });
}
