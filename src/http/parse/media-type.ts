import { SandboxerError } from '../../contract/errors/errors.ts';

interface Range {
  readonly type: string;
  readonly quality: number;
}

function rangesOf(accept: string): Range[] {
  return accept
    .split(',')
    .slice(0, 32)
    .map((part) => {
      const [type = '', ...parameters] = part.split(';').map((piece) => piece.trim().toLowerCase());
      const quality = parameters.find((parameter) => parameter.startsWith('q='));
      return { type, quality: quality === undefined ? 1 : Number(quality.slice(2)) || 0 };
    });
}

function matches(range: string, type: string): boolean {
  return range === '*/*' || range === type || (range.endsWith('/*') && type.startsWith(range.slice(0, -1)));
}

/** The offered type that the client likes best; the first one offered when it does not say. */
export function preferredType<T extends string>(
  accept: string | undefined,
  offered: readonly [T, ...T[]],
): T {
  if (accept === undefined || accept.trim() === '') return offered[0];
  const ranges = rangesOf(accept).sort((left, right) => right.quality - left.quality);
  for (const range of ranges) {
    const found = range.quality > 0 ? offered.find((type) => matches(range.type, type)) : undefined;
    if (found !== undefined) return found;
  }
  throw new SandboxerError('SBX_NOT_ACCEPTABLE', `This can be had as ${offered.join(', ')}.`);
}
