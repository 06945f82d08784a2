/** Checks whether the engine can be used, which features it lacks, with the consequence and the exact remedy. */
import { accessSync, constants } from 'node:fs';
import { userInfo } from 'node:os';
import type { ExtensionHealth } from '../../../contract/extensions/extension.ts';
import { isoTime } from '../../../core/ports/clock.ts';
import type { ExtensionContext } from '../../../core/ports/extension.ts';
import type { DockerOptions } from '../containers/options.ts';
import { canLimitDisk } from '../containers/options.ts';
import type { Endpoint } from '../engine/endpoint.ts';
import { showEndpoint } from '../engine/endpoint.ts';
import type { EngineClient } from '../engine/engine-client.ts';
import { OLDEST_API } from '../engine/engine-client.ts';
import { EngineError, EngineUnreachable } from '../engine/engine-error.ts';
import type { EngineFacts } from '../engine/engine-facts.ts';
import { findEngineFacts } from '../engine/engine-facts.ts';
import type { Levels } from './levels.ts';

type Check = ExtensionHealth['checks'][number];

interface Parts {
  readonly client: EngineClient;
  readonly endpoint: Endpoint;
  readonly options: DockerOptions;
  readonly agentPath: string;
  readonly levels: Levels;
}

interface Found {
  readonly health: ExtensionHealth;
  readonly facts: EngineFacts | null;
}

function check(name: string, ok: boolean, detail: string, fix: string): Check {
  return { name, ok, detail, fix: ok ? null : fix };
}

/** Returns the reason: no listener, no permission, or a listener that is not an engine. Each has its own remedy. */
function whyUnreachable(error: unknown, endpoint: Endpoint): Check {
  const where = showEndpoint(endpoint);
  const code = error instanceof EngineUnreachable ? error.code : null;
  const no = (detail: string, fix: string) => check('engine', false, detail, fix);
  if (code === 'EACCES' || code === 'EPERM') {
    return no(
      `permission denied at ${where}`,
      `usermod --append --groups docker ${userInfo().username}, then log in again. Members of that group are root on the engine’s machine.`,
    );
  }
  if (endpoint.kind === 'unix' && (code === 'ENOENT' || code === 'ECONNREFUSED')) {
    return no(
      code === 'ENOENT' ? `${where} does not exist` : `connection refused at ${where}`,
      code === 'ENOENT'
        ? 'apt-get install docker.io, or set extensions.docker.url to where the engine listens'
        : 'systemctl start docker',
    );
  }
  if (error instanceof EngineError && error.status === 401)
    return no(
      `${where} wants a client certificate`,
      'Set extensions.docker.tls: cert_file, key_file, ca_file.',
    );
  if (error instanceof EngineUnreachable && error.reason === 'timeout')
    return no(`${where} does not answer`, 'systemctl restart docker');
  const text = error instanceof Error ? error.message : 'it does not answer';
  const fix =
    endpoint.kind === 'ssh'
      ? `ssh ${endpoint.user === null ? '' : `${endpoint.user}@`}${endpoint.host} docker version must work without a question being asked.`
      : 'Is extensions.docker.url right, and does the engine run?';
  return no(text, fix);
}

function levelChecks({ offered, lacking }: Levels): Check[] {
  return [
    ...[...offered].map(([level, runtime]) => check(level, true, `by the engine’s ${runtime}`, '')),
    ...[...lacking].map(([level, { reason, remedy }]) => check(level, false, reason, remedy)),
  ];
}

function checksOf(facts: EngineFacts, { options, agentPath, levels }: Parts): Check[] {
  const limits = [
    ['memory', facts.memory],
    ['pids', facts.pids],
    ['cpu', facts.cpu],
  ] as const;
  return [
    check(
      'engine version',
      !facts.tooOld,
      `${facts.version} (API ${facts.apiVersion})`,
      `Docker 20.10 or Podman 4 (API ${OLDEST_API}) is the oldest: apt-get install docker.io`,
    ),
    check(
      'linux containers',
      facts.linux,
      facts.linux ? 'yes' : 'no',
      'Switch the engine to Linux containers.',
    ),
    check(
      'agent',
      canRun(agentPath),
      agentPath,
      'apt-get install gcc libc6-dev, then run scripts/build-agent.sh of the package',
    ),
    check(
      'user namespaces',
      facts.userNamespaces || facts.rootless,
      facts.userNamespaces
        ? 'ids inside map to unprivileged host ids'
        : facts.rootless
          ? 'the engine is not root'
          : 'ids inside are those of the machine; nothing runs as root inside',
      'Put {"userns-remap": "default"} into /etc/docker/daemon.json, then systemctl restart docker',
    ),
    check(
      'seccomp',
      facts.seccomp,
      facts.seccomp ? 'the engine’s default filter' : 'system calls are not filtered',
      'Remove "seccomp-profile" from /etc/docker/daemon.json, on a kernel with seccomp',
    ),
    ...limits.map(([name, ok]) =>
      check(
        `${name} limits`,
        ok,
        ok ? 'kept' : `not kept: profiles that name one are refused`,
        'Boot with cgroup_enable=memory swapaccount=1, or with control groups of version 2',
      ),
    ),
    check(
      'disk limits',
      canLimitDisk(facts, options),
      canLimitDisk(facts, options)
        ? `kept by ${facts.driver}`
        : `${facts.driver} on ${facts.backingFilesystem || 'this file system'} keeps none: profiles that name disk_mb are refused`,
      'Put the engine’s data on xfs with pquota (then set extensions.docker.disk_quota), btrfs or zfs.',
    ),
    check(
      'live restore',
      facts.liveRestore,
      facts.liveRestore
        ? 'sandboxes outlive a restart of the engine'
        : 'a restart of the engine ends sandboxes',
      'Put {"live-restore": true} into /etc/docker/daemon.json, then systemctl reload docker',
    ),
    ...levelChecks(levels),
  ];
}

function canRun(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

const NEEDED = ['engine version', 'linux containers', 'agent'];

export async function healthOf(parts: Parts, { clock, signal }: ExtensionContext): Promise<Found> {
  const checked_at = isoTime(clock.now());
  let facts: EngineFacts;
  try {
    facts = await findEngineFacts(parts.client, signal);
  } catch (error) {
    signal.throwIfAborted();
    const why = whyUnreachable(error, parts.endpoint);
    const detail = `${why.detail}. ${why.fix}`;
    const missing = error instanceof EngineUnreachable && error.reason === 'refused';
    const status = missing ? 'undetected' : 'unhealthy';
    return { health: { status, detail, checked_at, checks: [why] }, facts: null };
  }
  const checks = checksOf(facts, parts);
  const missing = checks.find(({ name, ok }) => !ok && NEEDED.includes(name));
  if (missing !== undefined) {
    const detail = `${missing.name}: ${missing.detail}. ${missing.fix}`;
    return { health: { status: 'undetected', detail, checked_at, checks }, facts };
  }
  const detail = `engine ${facts.version} at ${showEndpoint(parts.endpoint)}; ${facts.driver}`;
  return { health: { status: 'healthy', detail, checked_at, checks }, facts };
}
