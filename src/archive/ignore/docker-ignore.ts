/**
 * Translates `.dockerignore` to the patterns of `.gitignore`: they start at the top, and never leave out the files that a build
 * starts with.
 */
const NEEDED = ['Dockerfile*', '*.Dockerfile', '*compose*.yml', '*compose*.yaml', '.dockerignore'];

function ruleOf(line: string): string {
  const text = line.trim();
  if (text === '' || text.startsWith('#')) return '';
  const negated = text.startsWith('!');
  const pattern = (negated ? text.slice(1) : text).trim().replace(/^(?:\.?\/)+/, '');
  return pattern === '' || pattern === '.' ? '' : `${negated ? '!' : ''}/${pattern}`;
}

export function dockerRules(text: string): string {
  if (text === '') return '';
  const lines = text.split('\n').map(ruleOf);
  return [...lines, ...NEEDED.map((pattern) => `!${pattern}`)].join('\n');
}
