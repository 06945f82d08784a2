import { createRequire } from 'node:module';

export type Colors = ReturnType<typeof import('picocolors')['createColors']>;

const plain = (text: string | number | null | undefined) => String(text);
/** Without colours no module is loaded. */
const NO_COLORS = new Proxy({} as Colors, { get: () => plain });

export function colorsFor(colorful: boolean): Colors {
  if (!colorful) return NO_COLORS;
  const require = createRequire(import.meta.url);
  return (require('picocolors') as typeof import('picocolors')).createColors(true);
}
