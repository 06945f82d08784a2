import { SandboxerError } from '../../../contract/errors/errors.ts';
import type { ImagePolicy } from '../containers/options.ts';
import { BACKEND } from '../engine/engine-error.ts';

/** The parts of `[host[:port]/]path[:tag][@sha256:…]`. */
export interface ImageReference {
  /** `null`: the engine's own default registry. */
  readonly registry: string | null;
  readonly path: string;
  readonly tag: string | null;
  readonly digest: string | null;
}

const HOST = /^(?:localhost|[a-z0-9-]+(?:\.[a-z0-9-]+)+|\[[0-9a-f:]+\])(?::\d{1,5})?$|^[a-z0-9-]+:\d{1,5}$/i;
const PATH = /^[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*(?:\/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)*$/;
const TAG = /^\w[\w.-]{0,127}$/;
const DIGEST = /^sha256:[0-9a-f]{64}$/;

function refused(detail: string, remedy: string): SandboxerError {
  return new SandboxerError('SBX_UNSUPPORTED', detail, {
    backend: BACKEND,
    creation: 'not_created',
    field: 'image',
    remedy,
  });
}

export function parseImageReference(text: string): ImageReference {
  const [rest = '', digest = null, ...more] = text.split('@');
  const slash = rest.indexOf('/');
  const first = slash < 0 ? '' : rest.slice(0, slash);
  const registry = HOST.test(first) ? first.toLowerCase() : null;
  const named = registry === null ? rest : rest.slice(slash + 1);
  const colon = named.indexOf(':');
  const path = colon < 0 ? named : named.slice(0, colon);
  const tag = colon < 0 ? null : named.slice(colon + 1);
  const sound =
    text.length <= 512 &&
    more.length === 0 &&
    PATH.test(path) &&
    (tag === null || TAG.test(tag)) &&
    (digest === null || DIGEST.test(digest));
  if (!sound) {
    throw refused(`"${text.slice(0, 200)}" is not an image reference.`, 'Write name:tag or name@sha256:….');
  }
  return { registry, path, tag, digest };
}

/** Formats a reference for the engine; one without tag or digest would fetch every tag. */
export function showImageReference({ registry, path, tag, digest }: ImageReference): string {
  const name = registry === null ? path : `${registry}/${path}`;
  return digest === null ? `${name}:${tag ?? 'latest'}` : `${name}@${digest}`;
}

function matches(pattern: string, reference: ImageReference): boolean {
  const [head = ''] = pattern.split('/');
  const forHost = pattern.includes('/') && (HOST.test(head) || head.includes('*.') || head.endsWith('.*'));
  if (forHost !== (reference.registry !== null)) return false;
  const source = pattern.replace(/[.+?^${}()|[\]\\]/g, '\\$&').replaceAll('*', '.*');
  const whole = showImageReference(reference);
  const name = whole.replace(/(?:@sha256:[0-9a-f]{64}|:[\w.-]+)$/, '');
  const expression = new RegExp(`^${source}$`);
  return expression.test(whole) || expression.test(name);
}

/** Throws for a reference that no pattern of the list allows: an engine would fetch from any registry. */
export function requireAllowed(reference: ImageReference, policy: ImagePolicy): void {
  const shown = showImageReference(reference);
  if (!policy.allow.some((pattern) => matches(pattern, reference))) {
    throw refused(
      `The image ${shown} is not on this server’s list.`,
      'Add a pattern for it to extensions.docker.images.allow, or choose another image.',
    );
  }
  if (policy.requireDigest && reference.digest === null) {
    throw refused(
      `The image ${shown} is not pinned.`,
      'Name its content: name@sha256:… (see `docker image inspect`).',
    );
  }
}
