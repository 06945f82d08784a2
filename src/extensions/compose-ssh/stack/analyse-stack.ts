import type { ProvisionSpec } from '../../../core/ports/extension.ts';
import { bundleFiles } from '../compose/load/compose-files.ts';
import { loadProject } from '../compose/load/load-project.ts';
import { readStack } from '../compose/model/read-stack.ts';
import type { StackModel } from '../compose/model/stack-model.ts';
import { judgeBuilds } from '../compose/plan/judge-builds.ts';
import type { StackPlan } from '../compose/plan/plan-stack.ts';
import { planStack } from '../compose/plan/plan-stack.ts';
import { TarTree } from '../compose/tree/tar-tree.ts';
import type { Finding } from '../compose/yaml/finding.ts';
import { Findings } from '../compose/yaml/finding.ts';
import type { EngineLimit } from '../remote/engine.ts';
import type { EngineRecord } from '../remote/engine-record.ts';
import { invalid } from '../remote/failure.ts';
import { labelsOf } from '../remote/labels.ts';
import type { StackHandle } from '../remote/stack-handle.ts';
import { projectOf } from '../remote/stack-handle.ts';
import { prefixFor } from '../remote/subnets.ts';
import type { RequestedStack, StackInputs } from './stack-inputs.ts';
import { readStackInputs } from './stack-inputs.ts';

/** Path of the compose file in the tree of a request without a repository. */
const INLINE = 'compose.yaml';
const SECRET_NAME = /^[A-Za-z_][\w.-]{0,127}$/;
const VARIABLE_NAME = /^[A-Za-z_]\w{0,127}$/;

export interface PlaceTerms {
  readonly directory: string;
  readonly secretDirectory: string;
  readonly agent: string;
  readonly gatewayImage: string;
  readonly subnets: readonly string[];
  readonly composeVersion: string | null;
  /** Limits that the engine cannot enforce. */
  readonly unheld: readonly EngineLimit[];
}

/** Terms for a plan before its host is known. */
const NOWHERE: PlaceTerms = {
  directory: '/',
  secretDirectory: '/',
  agent: '/',
  gatewayImage: 'none',
  subnets: [],
  composeVersion: null,
  unheld: [],
};

interface AnalysedParts {
  readonly spec: ProvisionSpec;
  readonly tree: TarTree;
  readonly inputs: RequestedStack;
  readonly extra: ReadonlyMap<string, string>;
  readonly model: StackModel;
  readonly findings: Findings;
  readonly fromSeed: boolean;
}

/** Stack of a request, read and judged; no host has got a request yet. */
export class AnalysedStack {
  readonly tree: TarTree;
  readonly inputs: RequestedStack;
  readonly extra: ReadonlyMap<string, string>;
  readonly #spec: ProvisionSpec;
  readonly #model: StackModel;
  readonly #findings: Findings;
  readonly #fromSeed: boolean;
  #bases: readonly string[] = [];

  private constructor({ spec, tree, inputs, extra, model, findings, fromSeed }: AnalysedParts) {
    this.#spec = spec;
    this.tree = tree;
    this.inputs = inputs;
    this.extra = extra;
    this.#model = model;
    this.#findings = findings;
    this.#fromSeed = fromSeed;
  }

  /** Reads the stack. `fromSeed`: it is made from a snapshot, images included. */
  static async of(spec: ProvisionSpec, signal: AbortSignal, fromSeed = false): Promise<AnalysedStack> {
    const inputs = readStackInputs(spec);
    checkSecrets(spec);
    const extra = new Map(inputs.compose === undefined ? [] : [[INLINE, inputs.compose]]);
    const tree = await TarTree.open(spec.inputs, inputs.trees, extra, signal);
    const findings = new Findings();
    const request = {
      files: [
        ...(inputs.compose === undefined ? [] : [INLINE]),
        ...(inputs.bundle === null ? [] : bundleFiles(tree, inputs.bundle.place, inputs.bundle.field)),
        ...inputs.compose_files,
      ],
      env: { ...spec.recipe.variables, ...inputs.env },
      profiles: inputs.profiles,
    };
    const project = await loadProject(tree, request, findings);
    const given = new Set(spec.secrets.map(({ name }) => name));
    const model = readStack({ project, tree, findings, given });
    const bases = fromSeed ? [] : await judgeBuilds(model, tree, findings);
    findings.settle(spec.recipe.elevated);
    const analysed = new AnalysedStack({ spec, tree, inputs, extra, model, findings, fromSeed });
    if (!spec.recipe.elevated) analysed.#bases = bases;
    analysed.plan(NOWHERE);
    analysed.#checkNames(inputs);
    return analysed;
  }

  /** Findings that `elevated` allowed. */
  get findings(): readonly Finding[] {
    return this.#findings.all;
  }

  get networkCount(): number {
    return this.plan(NOWHERE).networkCount;
  }

  /** Prefix of a network in which all containers fit. */
  get prefix(): number {
    return prefixFor([...this.#model.services.values()].reduce((sum, { replicas }) => sum + replicas, 1));
  }

  /** Throws where the compose of a host is too old, before anything is sent there. */
  checkFor(composeVersion: string): void {
    this.plan({ ...NOWHERE, composeVersion });
  }

  plan(place: PlaceTerms): StackPlan {
    const { recipe, stamp, secrets } = this.#spec;
    const plan = planStack(
      this.#model,
      this.tree,
      {
        project: projectOf(stamp),
        labels: labelsOf(this.#spec),
        openNetwork: recipe.network.default === 'allow',
        resources: recipe.resources,
        elevated: recipe.elevated,
        variables: recipe.variables,
        secrets: secrets.flatMap(({ name, delivery }) => (delivery === 'broker' ? [] : [{ name, delivery }])),
        fromSeed: this.#fromSeed,
        ...place,
      },
      this.#findings,
    );
    this.#findings.settle(recipe.elevated);
    return plan;
  }

  /** Images of Dockerfiles whose own instructions (`ONBUILD`) the host must judge. */
  get baseImages(): readonly string[] {
    return this.#bases;
  }

  /** Limits that the compose file names. */
  get declaredLimits(): readonly EngineLimit[] {
    const services = [...this.#model.services.values()];
    const named = {
      cpu: services.some(({ declared, cpuShares }) => declared.cpus !== null || cpuShares !== null),
      memory_mb: services.some(({ declared }) => declared.memoryBytes !== null),
      pids: services.some(({ declared }) => declared.pids !== null),
    };
    return (['cpu', 'memory_mb', 'pids'] as const).filter((name) => named[name]);
  }

  handle(plan: StackPlan, engine: EngineRecord, note: string | null): StackHandle {
    const { stamp, secrets } = this.#spec;
    const [first = ''] = plan.services;
    return {
      project: projectOf(stamp),
      owner: stamp.owner,
      service: this.inputs.service ?? first,
      services: [...plan.services],
      ports: Object.fromEntries([...plan.portOwners].map(([port, service]) => [String(port), service])),
      gateway: Object.fromEntries(
        [...plan.gatewayPorts].map(([port, { service, target }]) => [String(port), { service, target }]),
      ),
      wait_for: [...this.inputs.wait_for],
      wait_seconds: this.inputs.wait_seconds,
      keep_images: this.inputs.keep_images,
      notes: [...plan.notes, ...(note === null ? [] : [note])],
      engine,
      secret_variables: secrets.flatMap(({ name, delivery }) => (delivery === 'env' ? [name] : [])),
    };
  }

  #checkNames({ service, wait_for }: StackInputs): void {
    for (const [field, name] of [
      ...wait_for.map((name) => ['wait_for', name] as const),
      ...(service === undefined ? [] : [['service', service] as const]),
    ]) {
      if (!this.#model.services.has(name)) {
        throw invalid(
          `inputs.${field}`,
          `There is no service ${name} in the stack.`,
          `Name one of ${[...this.#model.services.keys()].join(', ')}.`,
        );
      }
    }
  }
}

function checkSecrets({ secrets }: ProvisionSpec): void {
  for (const { name, delivery } of secrets) {
    const fits = (delivery === 'env' ? VARIABLE_NAME : SECRET_NAME).test(name);
    if (!fits)
      throw invalid(
        'secret_refs',
        `${name} cannot be the name of a secret here.`,
        'Use letters, digits and "_".',
      );
  }
}
