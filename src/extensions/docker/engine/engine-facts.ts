/** Features of an engine, queried once when it is found. */
import type { EngineClient } from './engine-client.ts';
import { isTooOld } from './engine-client.ts';
import { Info, Version } from './engine-replies.ts';

export interface EngineFacts {
  readonly version: string;
  readonly apiVersion: string;
  readonly tooOld: boolean;
  readonly podman: boolean;
  readonly linux: boolean;
  readonly architecture: string;
  readonly kernel: string;
  /** Storage driver, and the file system below it. */
  readonly driver: string;
  readonly backingFilesystem: string;
  readonly memory: boolean;
  readonly pids: boolean;
  readonly cpu: boolean;
  /** Root inside is an unprivileged user outside. */
  readonly userNamespaces: boolean;
  readonly rootless: boolean;
  readonly seccomp: boolean;
  readonly runtimes: readonly string[];
  readonly memoryBytes: number;
  readonly liveRestore: boolean;
}

function statusOf(status: readonly (readonly string[])[], name: string): string {
  return status.find(([key]) => key === name)?.[1] ?? '';
}

export async function findEngineFacts(client: EngineClient, signal?: AbortSignal): Promise<EngineFacts> {
  const options = signal === undefined ? {} : { signal };
  const apiVersion = await client.apiVersion(signal);
  const [version, info] = await Promise.all([
    client.call(Version, 'GET', '/version', options),
    client.call(Info, 'GET', '/info', options),
  ]);
  const security = info.SecurityOptions ?? [];
  const has = (name: string) => security.some((option) => option.split(',')[0] === `name=${name}`);
  return {
    version: version.Version,
    apiVersion,
    tooOld: isTooOld(apiVersion),
    podman: (version.Components ?? []).some(({ Name }) => Name.startsWith('Podman')),
    linux: info.OSType === 'linux',
    architecture: info.Architecture,
    kernel: info.KernelVersion,
    driver: info.Driver,
    backingFilesystem: statusOf(info.DriverStatus ?? [], 'Backing Filesystem'),
    memory: info.MemoryLimit,
    pids: info.PidsLimit,
    cpu: info.CpuCfsQuota,
    userNamespaces: has('userns'),
    rootless: has('rootless'),
    seccomp: has('seccomp') && !security.some((option) => /name=seccomp,profile=unconfined/.test(option)),
    runtimes: Object.keys(info.Runtimes ?? {}),
    memoryBytes: info.MemTotal,
    liveRestore: info.LiveRestoreEnabled,
  };
}
