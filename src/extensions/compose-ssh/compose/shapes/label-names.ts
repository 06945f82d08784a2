/**
 * Names of labels. Programs on a host act on labels of any container (reverse proxies, schedulers, updaters), so that only names
 * that merely describe an image are emitted.
 */
import { isTree } from '../yaml/compose-yaml.ts';
import { textOf } from '../yaml/scalars.ts';
import type { Shape } from './shape.ts';
import { LINE } from './words.ts';

const RESERVED = /^(?:io\.sandboxer|com\.docker)\./i;
const DESCRIPTIVE = /^org\.(?:opencontainers\.image|label-schema)\.[a-z0-9.-]{1,64}$/;

export const labels: Shape<{ [name: string]: string }> = {
  read(value, at) {
    if (!isTree(value)) return at.invalid('It is not a mapping.', 'Write "name: value" below it.');
    const kept: { [name: string]: string } = {};
    for (const [name, item] of Object.entries(value)) {
      const below = at.below(name);
      const text = item === null ? '' : textOf(item);
      if (RESERVED.test(name)) below.invalid('This label says whose a container is.', 'Use another name.');
      else if (!DESCRIPTIVE.test(name)) below.leaveOut();
      else if (text === null || !LINE.pattern.test(text))
        below.invalid('Its value is not one line.', 'Correct it.');
      else kept[name] = text;
    }
    return kept;
  },
  examples: [{ 'org.opencontainers.image.title': 'shop' }, { 'traefik.enable': 'true' }],
};
