import { insidePath } from '../shapes/words.ts';
import type { PathRef } from '../tree/tree-path.ts';
import { pathRef } from '../tree/tree-path.ts';
import type { Tree } from '../yaml/compose-yaml.ts';
import { isTree } from '../yaml/compose-yaml.ts';
import { invalidStack } from '../yaml/finding.ts';
import { bytesOf, isTruthy, numberOf, textOf } from '../yaml/scalars.ts';

export type Mount = {
  /** The path in the container, absolute and resolved. */
  readonly target: string;
  readonly readOnly: boolean;
} & (
  | { readonly type: 'bind'; readonly source: PathRef; readonly propagation: string | null }
  /** `null`: an anonymous volume, which lives as long as its container. */
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
const VOLUME_NAME = /^[A-Za-z0-9_][\w.-]{0,127}$/;
const FLAG = /^(?:ro|rw|z|Z|nocopy|cached|delegated|consistent|r?(?:shared|slave|private))$/;

function targetOf(path: string, service: string, n: number): string {
  const target = insidePath(path);
  if (target !== null) return target;
  throw wrong(service, n, `The target ${JSON.stringify(path)} is not an absolute path below "/".`);
}

function fromText(text: string, base: string, service: string, n: number): Mount {
  const parts = text.split(':');
  if (parts.length > 3) throw wrong(service, n, `${text} has too many parts.`);
  const [first = '', second, options = ''] = parts;
  const target = targetOf(second ?? first, service, n);
  const source = second === undefined ? null : first;
  const flags = options === '' ? [] : options.split(',');
  const odd = flags.find((flag) => !FLAG.test(flag));
  if (odd !== undefined) throw wrong(service, n, `The option ${odd} is not understood.`);
  const readOnly = flags.includes('ro');
  if (source === null || !/^[./~]/.test(source)) {
    if (source !== null && !VOLUME_NAME.test(source))
      throw wrong(service, n, `${source} is no name of a volume.`);
    return { type: 'volume', source, target, readOnly, nocopy: flags.includes('nocopy') };
  }
  const propagation = flags.find((flag) => PROPAGATION.test(flag)) ?? null;
  return {
    type: 'bind',
    source: pathRef(base, source, `volumes[${n}].source`, service),
    target,
    readOnly,
    propagation,
  };
}

/** Keys of the long form, with the keys below each. */
const LONG_FORM: Readonly<Record<string, readonly string[]>> = {
  type: [],
  source: [],
  target: [],
  read_only: [],
  consistency: [],
  bind: ['propagation', 'create_host_path', 'selinux', 'recursive'],
  volume: ['nocopy'],
  tmpfs: ['size', 'mode'],
};

function checkKeys(value: Tree, service: string, n: number): void {
  for (const [key, item] of Object.entries(value)) {
    if (key.startsWith('x-') || item === null) continue;
    const below = Object.hasOwn(LONG_FORM, key) ? LONG_FORM[key] : undefined;
    if (below === undefined) throw wrong(service, n, `${key} is not understood.`);
    const odd = Object.keys(isTree(item) ? item : {}).find((part) => !below.includes(part));
    if (odd !== undefined) throw wrong(service, n, `${key}.${odd} is not understood.`);
  }
}

function fromTree(value: Tree, base: string, service: string, n: number): Mount {
  checkKeys(value, service, n);
  const target = targetOf(textOf(value.target) ?? '', service, n);
  const readOnly = isTruthy(value.read_only);
  const source = textOf(value.source);
  const options = (key: string) => (isTree(value[key]) ? value[key] : {});
  switch (value.type) {
    case 'bind': {
      if (source === null) throw wrong(service, n, 'The bind has no source.');
      const propagation = textOf(options('bind').propagation);
      if (propagation !== null && !PROPAGATION.test(propagation))
        throw wrong(service, n, `The propagation ${propagation} is not understood.`);
      const path = pathRef(base, source, `volumes[${n}].source`, service);
      return { type: 'bind', source: path, target, readOnly, propagation };
    }
    case 'volume':
      if (source !== null && source !== '' && !VOLUME_NAME.test(source))
        throw wrong(service, n, `${source} is no name of a volume.`);
      return {
        type: 'volume',
        source: source === '' ? null : source,
        target,
        readOnly,
        nocopy: isTruthy(options('volume').nocopy),
      };
    case 'tmpfs': {
      const { size, mode } = options('tmpfs');
      return { type: 'tmpfs', target, readOnly, sizeBytes: bytesOf(size), mode: numberOf(mode) };
    }
    default:
      throw wrong(service, n, `The type ${String(value.type)} is not understood.`);
  }
}

export function readMount(value: unknown, base: string, service: string, n: number): Mount {
  return isTree(value) ? fromTree(value, base, service, n) : fromText(textOf(value) ?? '', base, service, n);
}
