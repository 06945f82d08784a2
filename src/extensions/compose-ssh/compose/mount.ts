import type { Tree } from './compose-yaml.ts';
import { isTree } from './compose-yaml.ts';
import { invalidStack } from './finding.ts';
import { bytesOf, isTruthy, numberOf, textOf } from './scalars.ts';
import type { PathRef } from './tree-path.ts';
import { pathRef } from './tree-path.ts';

export type Mount = {
  readonly target: string;
  readonly readOnly: boolean;
} & (
  | { readonly type: 'bind'; readonly source: PathRef; readonly propagation: string | null }
  /** `null`: a volume without a name, that lives as long as its container. */
  | { readonly type: 'volume'; readonly source: string | null; readonly nocopy: boolean }
  | { readonly type: 'tmpfs'; readonly sizeBytes: number | null; readonly mode: number | null }
);

function wrong(service: string, n: number, detail: string): Error {
  return invalidStack(
    `volumes[${n}]`,
    detail,
    'Write "./path:/target", "name:/target", or the long form.',
    service,
  );
}

const PROPAGATION = /^r?(?:shared|slave|private)$/;

function fromText(text: string, base: string, service: string, n: number): Mount {
  const parts = text.split(':');
  if (parts.length > 3) throw wrong(service, n, `${text} has too many parts.`);
  const [first = '', second, options = ''] = parts;
  const target = second ?? first;
  const source = second === undefined ? null : first;
  const flags = options === '' ? [] : options.split(',');
  const known = /^(?:ro|rw|z|Z|nocopy|cached|delegated|consistent|r?(?:shared|slave|private))$/;
  const odd = flags.find((flag) => !known.test(flag));
  if (odd !== undefined) throw wrong(service, n, `The option ${odd} is not understood.`);
  const readOnly = flags.includes('ro');
  if (source === null || !/^[./~]/.test(source)) {
    if (source !== null && !/^[A-Za-z0-9][\w.-]*$/.test(source))
      throw wrong(service, n, `${source} is no name of a volume.`);
    return { type: 'volume', source, target, readOnly, nocopy: flags.includes('nocopy') };
  }
  const propagation = flags.find((flag) => PROPAGATION.test(flag)) ?? null;
  return { type: 'bind', source: pathRef(base, source), target, readOnly, propagation };
}

function fromTree(value: Tree, base: string, service: string, n: number): Mount {
  const target = textOf(value.target) ?? '';
  const readOnly = isTruthy(value.read_only);
  const source = textOf(value.source);
  const options = (key: string) => (isTree(value[key]) ? value[key] : {});
  switch (value.type) {
    case 'bind':
      if (source === null) throw wrong(service, n, 'The bind has no source.');
      return {
        type: 'bind',
        source: pathRef(base, source),
        target,
        readOnly,
        propagation: textOf(options('bind').propagation),
      };
    case 'volume':
      if (options('volume').subpath !== undefined)
        throw wrong(service, n, 'A subpath of a volume is not understood.');
      return {
        type: 'volume',
        source: source === '' ? null : source,
        target,
        readOnly,
        nocopy: isTruthy(options('volume').nocopy),
      };
    case 'tmpfs':
      return {
        type: 'tmpfs',
        target,
        readOnly,
        sizeBytes: bytesOf(options('tmpfs').size),
        mode: numberOf(options('tmpfs').mode),
      };
    default:
      throw wrong(service, n, `The type ${String(value.type)} is not understood.`);
  }
}

export function readMount(value: unknown, base: string, service: string, n: number): Mount {
  const mount = isTree(value)
    ? fromTree(value, base, service, n)
    : fromText(textOf(value) ?? '', base, service, n);
  if (!mount.target.startsWith('/') || mount.target.includes('\0')) {
    throw wrong(service, n, `The target ${JSON.stringify(mount.target)} is not an absolute path.`);
  }
  return mount;
}
