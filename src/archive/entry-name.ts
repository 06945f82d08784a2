import { partsOf } from './link-judge.ts';

/** The kernel's own bound on a path. */
const LONGEST_NAME = 4_096;

/** Judges the name of an entry of an archive: `null`, or why it is refused. */
export function nameRefusal(name: string): string | null {
  if (name.startsWith('/') || partsOf(name).includes('..'))
    return `The archive would leave its place: ${name}`;
  if (name.includes('\0') || name.length > LONGEST_NAME)
    return 'The archive holds a name that cannot be used.';
  return null;
}
