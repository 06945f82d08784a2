/** Names of images: read by the engine's own grammar, and written so that they have only one meaning. */
import { textOf } from '../yaml/scalars.ts';
import type { Shape } from './shape.ts';

/** Prefix of images that are built for a sandbox or kept of one, of gateways, and of mounts of the agent. */
export const IMAGE_PREFIX = 'sandboxer-';

const HOST = '(?:[A-Za-z0-9](?:[A-Za-z0-9.-]{0,252})(?::\\d{1,5})?|\\[[0-9a-fA-F:]{2,40}\\](?::\\d{1,5})?)';
const PART = '[a-z0-9]+(?:(?:\\.|_|__|-+)[a-z0-9]+)*';
const REFERENCE = new RegExp(
  `^((?:${HOST}/)?${PART}(?:/${PART}){0,15})(?::([\\w][\\w.-]{0,127}))?(@sha256:[0-9a-f]{64})?$`,
);
const LONGEST = 512;
/** Prefixes that a registry, a mirror or an engine may put before the name of an image of this backend. */
const OURS = new RegExp(
  `(?:^|/)${IMAGE_PREFIX}(?:sbx|snapshot|gateway)|^(?:[^/]+/)?(?:library/)?${IMAGE_PREFIX}[^/]*$`,
);

/**
 * Returns the name with a tag or digest: a short name without one could also be the beginning of an image's id.
 * `null` when it is not a name, or when it may mean an image of another sandbox.
 */
export function readImageName(
  given: string,
): { readonly image: string } | { readonly wrong: string; readonly isOurs?: true } {
  const [, repository = '', tag, digest = ''] = (given.length <= LONGEST && REFERENCE.exec(given)) || [];
  const shown = JSON.stringify(given.slice(0, 80));
  if (repository === '') return { wrong: `${shown} is no name of an image.` };
  if (OURS.test(repository))
    return { wrong: `Images named ${IMAGE_PREFIX}… belong to other sandboxes.`, isOurs: true };
  if (/^(?:sha256|sha384|sha512)$/.test(repository) || /^[0-9a-f]{64}$/.test(repository))
    return { wrong: `${shown} is the id of an image, not a name.` };
  return {
    image: `${repository}${tag === undefined ? (digest === '' ? ':latest' : '') : `:${tag}`}${digest}`,
  };
}

export const imageName: Shape<string> = {
  read(value, at) {
    const read = readImageName(textOf(value) ?? '');
    return 'image' in read ? read.image : at.invalid(read.wrong, 'Use another image, by its name.');
  },
  examples: ['registry.example:5000/team/app:1.2', 'redis'],
};
