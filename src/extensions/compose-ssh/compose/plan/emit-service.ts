/** Emits a service for compose, field by field from its model. */
import type { EngineLimit } from '../../remote/engine.ts';
import type { ServiceLimits, ServiceModel, StackModel } from '../model/stack-model.ts';
import type { BuildModel } from '../shapes/build-shape.ts';
import type { Tree } from '../yaml/compose-yaml.ts';
import { Reference } from '../yaml/compose-yaml.ts';
import type { StackTerms } from './plan-stack.ts';
import { wantsSecret } from './service-mounts.ts';
import type { SourcePlaces } from './source-places.ts';

/** Address without a resolver (RFC 5737): the engine must not look up outside names on the stack’s behalf. */
const NO_RESOLVER = '192.0.2.1';
/** The engine’s default: more would take the processors from other stacks. */
const MOST_SHARES = 1024;

/** Returns the variable of the host’s shell that each secret is in; its name is never the secret’s own. */
export function hostVariables(
  secrets: readonly { readonly name: string; readonly delivery: string }[],
): ReadonlyMap<string, string> {
  const names = secrets.filter(({ delivery }) => delivery === 'env').map(({ name }) => name);
  return new Map(names.map((name, n) => [name, `SBX_${n}`]));
}

function some<T extends object>(key: string, value: T): Tree {
  return (Array.isArray(value) ? value.length : Object.keys(value).length) > 0 ? { [key]: value } : {};
}

function emitEnvironment(service: ServiceModel, { services }: StackModel, terms: StackTerms): Tree {
  const environment: Tree = { ...terms.variables, ...service.environment };
  for (const [name, variable] of hostVariables(terms.secrets))
    if (wantsSecret(services, service, name, 'environment')) environment[name] = new Reference(variable);
  return some('environment', environment);
}

export function emitBuild(
  { context, dockerfile, fields }: BuildModel,
  places: SourcePlaces,
  terms: StackTerms,
): Tree {
  const path = 'inside' in context ? `${terms.directory}/${places.context(context.inside)}` : context.outside;
  const { network, ...rest } = fields;
  return {
    ...rest,
    context: path,
    ...(dockerfile === null ? {} : { dockerfile: dockerfilePath(dockerfile, context, places, terms) }),
    ...(terms.openNetwork ? (network === undefined ? {} : { network }) : { network: 'none' }),
  };
}

function dockerfilePath(
  file: NonNullable<BuildModel['dockerfile']>,
  context: BuildModel['context'],
  places: SourcePlaces,
  { directory }: StackTerms,
): string {
  if ('outside' in file) return file.outside;
  if ('inside' in context) {
    if (context.inside === '') return file.inside;
    if (file.inside.startsWith(`${context.inside}/`)) return file.inside.slice(context.inside.length + 1);
  }
  return `${directory}/${places.file(file.inside)}`;
}

export function emitLimits(
  { cpuShares, reservedMemoryBytes }: ServiceModel,
  { cpus, memoryBytes, pids }: ServiceLimits,
  unheld: readonly EngineLimit[],
): Tree {
  const processor = {
    ...(cpus === null ? {} : { cpus }),
    ...(cpuShares === null ? {} : { cpu_shares: Math.min(cpuShares, MOST_SHARES) }),
  };
  const memory = {
    ...(memoryBytes === null ? {} : { mem_limit: memoryBytes, memswap_limit: memoryBytes }),
    ...(reservedMemoryBytes === null
      ? {}
      : { mem_reservation: Math.min(reservedMemoryBytes, memoryBytes ?? reservedMemoryBytes) }),
  };
  return {
    ...(unheld.includes('cpu') ? {} : processor),
    ...(unheld.includes('memory_mb') ? {} : memory),
    ...(pids === null || unheld.includes('pids') ? {} : { pids_limit: pids }),
  };
}

/** Fields that only `elevated` allows. */
function elevatedFields({ taken: { annotations, cgroup_parent, isolation, runtime } }: ServiceModel): Tree {
  return {
    ...(annotations === undefined ? {} : { annotations }),
    ...(cgroup_parent === undefined ? {} : { cgroup_parent }),
    ...(isolation === undefined || isolation === 'default' ? {} : { isolation }),
    ...(runtime === undefined || runtime === 'runc' ? {} : { runtime }),
  };
}

/** Emits everything of a service but its image, mounts, ports and networks. */
export function emitOwn(service: ServiceModel, stack: StackModel, terms: StackTerms): Tree {
  const { fields, taken, replicas, networkMode, dependsOn, name } = service;
  const dependencies = [...dependsOn].filter(([other]) => stack.services.has(other));
  const weakened = terms.elevated
    ? (taken.security_opt ?? []).filter((option) => !/^no-new-privileges(?:[:=]true)?$/.test(option))
    : [];
  const openFiles = terms.resources.open_files;
  const nofile = openFiles === null ? {} : { nofile: { soft: openFiles, hard: openFiles } };
  const { ulimits = {}, pull_policy, ...plain } = fields;
  return {
    ...plain,
    // `if_not_present` is the word that both generations of compose know.
    ...(pull_policy === undefined
      ? {}
      : { pull_policy: pull_policy === 'missing' ? 'if_not_present' : pull_policy }),
    ...(terms.elevated ? elevatedFields(service) : {}),
    ...emitEnvironment(service, stack, terms),
    ...some(
      'depends_on',
      Object.fromEntries(dependencies.map(([other, condition]) => [other, { condition }])),
    ),
    ...some('volumes_from', service.volumesFrom),
    ...some('links', service.links),
    ...some('ulimits', { ...ulimits, ...nofile }),
    ...(networkMode === null ? {} : { network_mode: networkMode }),
    ...(terms.openNetwork ? some('dns', service.dns) : { dns: [NO_RESOLVER] }),
    labels: { ...service.labels, ...terms.labels, 'io.sandboxer.service': name },
    security_opt: ['no-new-privileges:true', ...weakened],
    ...(replicas === 1 ? { container_name: `${terms.project}_${name}` } : { scale: replicas }),
  };
}
