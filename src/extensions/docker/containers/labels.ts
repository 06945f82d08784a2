/**
 * Identity of containers and images. Labels are written when an object is made and can never be changed; the name of a container
 * holds its attempt, and can be given later: a container that was started ahead gets it when it is claimed. An object belongs to
 * the server when both agree.
 */
import { createHash } from 'node:crypto';
import type { Stamp } from '../../../core/ports/extension.ts';

const PREFIX = 'io.sandboxer.';

export const LABEL = {
  owner: `${PREFIX}owner`,
  kind: `${PREFIX}kind`,
  /** Name of its directory of sockets, where it has one. */
  door: `${PREFIX}door`,
  channel: `${PREFIX}channel`,
  keep: `${PREFIX}keep`,
  isolation: `${PREFIX}isolation`,
  secrets: `${PREFIX}secrets`,
  snapshot: `${PREFIX}snapshot`,
  prepared: `${PREFIX}prepared`,
  /** A label of ext.compose-ssh, never of this backend. */
  stack: `${PREFIX}attempt-id`,
} as const;

/** Kinds of objects, as labels. An image committed from a container gets that container's labels, so it needs a kind of its own. */
export type Kind = 'sandbox' | 'warm' | 'snapshot' | 'prepared' | 'preparing' | 'trial';

/** Returns the labels of a committed image as changes: Podman reads them nowhere else. */
export function labelChanges(
  labels: Readonly<Record<string, string>>,
  podman: boolean,
): { changes?: string[] } {
  if (!podman) return {};
  return { changes: Object.entries(labels).map(([name, value]) => `LABEL ${name}=${value}`) };
}

const NAME = /^sbx\.([\w-]+)\.([\w-]+)\.([\w-]+)$/;
const WARM = /^sbx-warm\.([\w-]+)\.([0-9a-f]+)$/;

/** Encodes a part of a name. Names of containers have letters, digits, `_`, `.` and `-`; `_` is the escape character. */
function encode(part: string): string {
  return part.replace(/[^A-Za-z0-9-]/g, (char) =>
    [...Buffer.from(char)].map((byte) => `_${byte.toString(16).padStart(2, '0')}`).join(''),
  );
}

function decode(part: string): string {
  const bytes: number[] = [];
  for (let at = 0; at < part.length; at++) {
    if (part[at] === '_') {
      bytes.push(Number.parseInt(part.slice(at + 1, at + 3), 16));
      at += 2;
    } else bytes.push(part.charCodeAt(at));
  }
  return Buffer.from(bytes).toString('utf8');
}

export function containerName({ owner, sandboxUid, attemptId }: Stamp): string {
  return `sbx.${encode(owner)}.${encode(sandboxUid)}.${encode(attemptId)}`;
}

/** Returns the stamp that a container's name holds, or `null` for a name of another form. */
export function stampIn(name: string): Stamp | null {
  const [, owner, sandboxUid, attemptId] = NAME.exec(name.replace(/^\//, '')) ?? [];
  if (owner === undefined || sandboxUid === undefined || attemptId === undefined) return null;
  return { owner: decode(owner), sandboxUid: decode(sandboxUid), attemptId: decode(attemptId) };
}

/** A container as a handle names it. */
export interface Named {
  readonly name: string;
  readonly stamp: Stamp;
  readonly variables: Readonly<Record<string, string>>;
}

export function warmName(owner: string, id: string): string {
  return `sbx-warm.${encode(owner)}.${id}`;
}

export function isWarmName(name: string): boolean {
  return WARM.test(name.replace(/^\//, ''));
}

/** Returns a short name, because a socket's path may have a hundred characters in all. */
export function doorOf(name: string): string {
  return createHash('sha256').update(name).digest('hex').slice(0, 16);
}
