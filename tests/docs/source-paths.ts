/** Paths of the repository that a document names in backticks. */

const ROOTS = 'src|agent|tests|scripts|docs|registry|profiles|bench|tools';
const PATH = new RegExp(`\`((?:${ROOTS})(?:/[^\`\\s]*)?)\``, 'g');

export function pathsIn(text: string): string[] {
  return [...new Set([...text.matchAll(PATH)].map(([, found = '']) => found.replace(/\/$/, '')))];
}
