import { createHash } from 'node:crypto';

const INLINE = /<(style|script)>([\s\S]*?)<\/\1>/g;

/** Returns the content security policy of the page: it may make no requests, and only its own style and script count. */
export function apiPagePolicy(html: string): string {
  const hashes = { style: [] as string[], script: [] as string[] };
  for (const [, kind, text = ''] of html.matchAll(INLINE)) {
    const digest = createHash('sha256').update(text).digest('base64');
    hashes[kind as keyof typeof hashes].push(`'sha256-${digest}'`);
  }
  const sources = (list: readonly string[]) => (list.length === 0 ? "'none'" : list.join(' '));
  return [
    "default-src 'none'",
    `style-src ${sources(hashes.style)}`,
    `script-src ${sources(hashes.script)}`,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}
