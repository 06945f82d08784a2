import { isTree } from '../yaml/compose-yaml.ts';
import { invalidStack } from '../yaml/finding.ts';
import { textOf } from '../yaml/scalars.ts';

/** A port that a service publishes. The backend chooses the port of the host. */
export interface PortMapping {
  readonly target: number;
  readonly protocol: 'tcp' | 'udp';
  /** The port of the host that the file names; reported, not used. */
  readonly published: string | null;
}

const WIDEST_RANGE = 128;

function range(text: string): number[] | null {
  const [, low, high = low] = /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(text) ?? [];
  const from = Number(low);
  const to = Number(high);
  if (low === undefined || from < 1 || to < from || to > 65_535 || to - from >= WIDEST_RANGE) return null;
  return Array.from({ length: to - from + 1 }, (_, n) => from + n);
}

/** Reads `80`, `8080:80`, `127.0.0.1:8080:80/udp`, `[::1]:8080:80`, `3000-3005:3000-3005`, or the long form. */
export function readPorts(value: unknown, service: string, n: number): PortMapping[] {
  const wrong = () =>
    invalidStack(
      `ports[${n}]`,
      `${JSON.stringify(value)} is not a port.`,
      'Write "80", "8080:80" or the long form.',
      service,
    );
  let target: string | null;
  let protocol: string;
  let published: string | null;
  if (isTree(value)) {
    target = textOf(value.target);
    protocol = textOf(value.protocol) ?? 'tcp';
    published = textOf(value.published);
  } else {
    const text = textOf(value) ?? '';
    const [, spec = '', named] = /^(.*?)(?:\/(\w+))?$/.exec(text) ?? [];
    const at = spec.lastIndexOf(':');
    protocol = named ?? 'tcp';
    target = spec.slice(at + 1);
    published = at === -1 ? null : spec.slice(0, at);
  }
  const targets = target === null ? null : range(target);
  if (targets === null || (protocol !== 'tcp' && protocol !== 'udp')) throw wrong();
  return targets.map((port) => ({ target: port, protocol, published }));
}
