/**
 * The model of a stack: everything of a compose file that is understood and judged. The engine's file is written from it alone:
 * no mapping, list or text of the input gets there unread.
 */
import type { Mount } from '../load/mount.ts';
import type { PortMapping } from '../load/port-mapping.ts';
import type { BuildModel } from '../shapes/build-shape.ts';
import type { Attachment, NetworkModel, VolumeModel } from '../shapes/section-shapes.ts';
import type { PlainFields, TakenFields } from '../shapes/service-shape.ts';
import type { PathRef } from '../tree/tree-path.ts';

export interface Grant {
  readonly source: string;
  /** The path in the container, absolute and resolved. */
  readonly target: string;
}

export interface ServiceLimits {
  readonly cpus: number | null;
  readonly memoryBytes: number | null;
  readonly pids: number | null;
}

export interface ServiceModel {
  readonly name: string;
  /** Image of the engine or a registry; `null`: it is built. */
  readonly image: string | null;
  readonly build: BuildModel | null;
  /** Fields that are emitted under the same names. */
  readonly fields: PlainFields;
  readonly taken: TakenFields;
  readonly environment: { readonly [name: string]: string };
  /** Variables that are named without a value. */
  readonly unvalued: readonly string[];
  readonly labels: { readonly [name: string]: string };
  /** Mounts. Sources of binds are real paths of the tree, or outside of it where elevated. */
  readonly mounts: readonly Mount[];
  readonly volumesFrom: readonly string[];
  readonly ports: readonly PortMapping[];
  readonly networks: ReadonlyMap<string, Attachment>;
  readonly networkMode: string | null;
  readonly dependsOn: ReadonlyMap<string, string>;
  readonly links: readonly string[];
  readonly dns: readonly string[];
  readonly secrets: readonly Grant[];
  readonly configs: readonly Grant[];
  /** Limits that the file names; `null` where it names none. */
  readonly declared: ServiceLimits;
  readonly cpuShares: number | null;
  readonly reservedMemoryBytes: number | null;
  readonly replicas: number;
}

/** Place of the content of a secret or config; `null`: it comes with the sandbox's secrets. */
export type GrantContent = { readonly file: PathRef } | { readonly text: string } | null;

export interface StackModel {
  readonly services: ReadonlyMap<string, ServiceModel>;
  readonly networks: ReadonlyMap<string, NetworkModel>;
  readonly volumes: ReadonlyMap<string, VolumeModel>;
  readonly secrets: ReadonlyMap<string, GrantContent>;
  readonly configs: ReadonlyMap<string, GrantContent>;
  /** Variables of the compose file that have no value. */
  readonly unset: readonly string[];
}
