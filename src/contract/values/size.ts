import { z } from 'zod';

const MEBIBYTES_PER_UNIT = {
  MB: 1,
  MiB: 1,
  M: 1,
  GB: 1024,
  GiB: 1024,
  G: 1024,
  TB: 1_048_576,
  TiB: 1_048_576,
  T: 1_048_576,
};
const SIZE_PATTERN = /^(\d{1,9}(?:\.\d{1,3})?) ?(MB|MiB|M|GB|GiB|G|TB|TiB|T)$/;
const LARGEST_MB = 64 * 1_048_576;

/** Parses `512MB`, `1.5GiB` into whole mebibytes; `null` when the text is not a size. */
export function parseSizeMb(text: string): number | null {
  const match = SIZE_PATTERN.exec(text.trim());
  if (!match) return null;
  const mebibytes = Math.ceil(
    Number(match[1]) * MEBIBYTES_PER_UNIT[match[2] as keyof typeof MEBIBYTES_PER_UNIT],
  );
  return mebibytes > 0 && mebibytes <= LARGEST_MB ? mebibytes : null;
}

/** A size on the wire and in YAML: `"512MB"`, `"2GiB"`, or a whole number of mebibytes. Parsed to mebibytes. */
export const SizeMb = z
  .union([
    z.number().int().positive().max(LARGEST_MB),
    z.string().max(24).regex(SIZE_PATTERN, 'Write a size such as "512MB" or "2GiB".'),
  ])
  .transform((value, context) => {
    const mebibytes = typeof value === 'number' ? value : parseSizeMb(value);
    if (mebibytes !== null) return mebibytes;
    context.addIssue({ code: 'custom', message: 'A size lies between 1MB and 64TB.' });
    return z.NEVER;
  });
