/** Reads a loaded project into the model of a stack, and judges it. */

import type { Project } from '../load/load-project.ts';
import { placeOf } from '../shapes/place.ts';
import { Reading } from '../shapes/reading.ts';
import { readNetworks, readVolumes } from '../shapes/section-shapes.ts';
import { freeText, SECTION_NAME } from '../shapes/words.ts';
import { isPathRef, shownPath } from '../tree/tree-path.ts';
import type { TreeView } from '../tree/tree-view.ts';
import type { Tree } from '../yaml/compose-yaml.ts';
import { isTree } from '../yaml/compose-yaml.ts';
import type { Findings } from '../yaml/finding.ts';
import { isTruthy, textOf } from '../yaml/scalars.ts';
import { readService } from './read-service.ts';
import type { GrantContent, ServiceModel, StackModel } from './stack-model.ts';

type Kind = 'secrets' | 'configs';

const GRANT_FIELDS = new Set(['file', 'content', 'environment', 'external', 'name', 'labels']);
const REMEDY_FILE = 'Put it into the repository, or give it as a secret of the sandbox.';

/** Checks that every service named by another exists. */
function checkServices(
  service: ServiceModel,
  raw: Tree,
  services: ReadonlyMap<string, unknown>,
  at: Reading,
): void {
  const need = (other: string, field: string) => {
    if (!services.has(other))
      at.below(field).invalid(
        `There is no service ${other}, or no chosen profile has it.`,
        'Name a service of the stack.',
      );
    else if (other === service.name) at.below(field).invalid('It needs itself.', 'Remove it.');
  };
  const dependencies = isTree(raw.depends_on) ? raw.depends_on : {};
  for (const other of service.dependsOn.keys()) {
    const options = Object.hasOwn(dependencies, other) ? dependencies[other] : null;
    const optional = isTree(options) && options.required !== undefined && !isTruthy(options.required);
    if (!optional || services.has(other)) need(other, 'depends_on');
  }
  const { pid, ipc, uts, cgroup } = service.fields;
  for (const [field, text] of Object.entries({ network_mode: service.networkMode, pid, ipc, uts, cgroup })) {
    const [, other] = /^service:(.+)$/.exec(text ?? '') ?? [];
    if (other !== undefined) need(other, field);
  }
  for (const link of service.links) need(link.split(':')[0] ?? '', 'links');
  for (const from of service.volumesFrom)
    if (!from.startsWith('container:')) need(from.split(':')[0] ?? '', 'volumes_from');
}

/** Checks that every network, volume, secret and config that a service uses is declared. */
function checkSections(service: ServiceModel, project: Project, at: Reading): void {
  const { networkMode, networks, mounts } = service;
  if (networkMode !== null && networks.size > 0)
    at.below('network_mode').invalid('It cannot be together with "networks".', 'Remove one of the two.');
  const need = (field: string, section: 'networks' | 'volumes' | Kind, name: string) => {
    if (Object.hasOwn(project[section], name)) return;
    at.below(field).invalid(`There is no ${name} in "${section}".`, `Add "${name}:" below "${section}:".`);
  };
  for (const network of networks.keys())
    if (network !== 'default') need(`networks.${network}`, 'networks', network);
  for (const [n, mount] of mounts.entries())
    if (mount.type === 'volume' && mount.source !== null) need(`volumes[${n}]`, 'volumes', mount.source);
  for (const kind of ['secrets', 'configs'] as const)
    for (const { source } of service[kind]) need(kind, kind, source);
}

interface GrantPlace {
  readonly tree: TreeView;
  readonly at: Reading;
}

function readContent(kind: Kind, name: string, raw: unknown, { tree, at }: GrantPlace): GrantContent {
  const { file, content, ...rest }: Tree = isTree(raw) ? raw : {};
  for (const key of Object.keys(rest))
    if (!GRANT_FIELDS.has(key) && !key.startsWith('x-'))
      at.below(key).invalid('It is not understood, so it cannot be judged.', 'Remove it.');
  if (isPathRef(file)) {
    const below = at.below('file');
    const place = placeOf(file, tree, below, REMEDY_FILE);
    if ('inside' in place && tree.kind(place.inside) !== 'file')
      below.invalid(`There is no file ${shownPath(file)}.`, 'Ship it.');
    return { file: place };
  }
  if (file === undefined && kind === 'configs' && textOf(content) !== null) {
    const text = freeText.read(content, at.below('content'));
    return text === undefined ? null : { text };
  }
  const remedy =
    kind === 'secrets'
      ? `Give a secret named ${name}, delivered by file, with the sandbox.`
      : 'Use "file" or "content".';
  at.invalid('Where its content comes from is not known here.', remedy);
  return null;
}

/** Returns the content of the secrets or configs that services use. */
function readGrantContents(
  kind: Kind,
  services: ReadonlyMap<string, ServiceModel>,
  { project, tree, findings, given }: Request,
): Map<string, GrantContent> {
  const used = new Set(
    [...services.values()].flatMap((service) => service[kind].map(({ source }) => source)),
  );
  const contents = new Map<string, GrantContent>();
  for (const name of Object.keys(project[kind])) {
    const at = new Reading(findings, null, `${kind}.${name}`);
    if (!SECTION_NAME.test(name) && !name.startsWith('x-'))
      at.invalid(
        `${JSON.stringify(name.slice(0, 80))} cannot be its name.`,
        'Use letters, digits, ".", "_" and "-".',
      );
    else if (used.has(name))
      contents.set(
        name,
        kind === 'secrets' && given.has(name)
          ? null
          : readContent(kind, name, project[kind][name], { tree, at }),
      );
  }
  return contents;
}

interface Request {
  readonly project: Project;
  readonly tree: TreeView;
  readonly findings: Findings;
  /** Names of the secrets that the sandbox itself has. */
  readonly given: ReadonlySet<string>;
}

export function readStack(request: Request): StackModel {
  const { project, tree, findings } = request;
  const services = new Map<string, ServiceModel>();
  for (const [name, raw] of project.services) {
    const at = new Reading(findings, name, '');
    const service = readService(name, raw, tree, at);
    checkServices(service, raw, project.services, at);
    checkSections(service, project, at);
    services.set(name, service);
  }
  return {
    services,
    networks: readNetworks(project.networks, new Reading(findings, null, 'networks')),
    volumes: readVolumes(project.volumes, new Reading(findings, null, 'volumes')),
    secrets: readGrantContents('secrets', services, request),
    configs: readGrantContents('configs', services, request),
    unset: project.unset,
  };
}
