/** The directory of the run, and what else stands for something of this machine. */
export type Known = readonly (readonly [text: string, shown: string])[];

const CLEAR_LINE = '\r\x1b[2K';

/** What a terminal shows in the end: progress that was drawn and taken away is gone. */
function asShown(text: string): string {
  return text
    .replaceAll('\r\n', '\n')
    .split('\n')
    .map((line) => line.split(CLEAR_LINE).at(-1))
    .join('\n');
}

/** Of the same length, so that tables stay as they are. */
function same(shown: string) {
  return (text: string) => shown.repeat(Math.ceil(text.length / shown.length)).slice(0, text.length);
}

/** Ids, times, durations and amounts that depend on them differ from run to run; their form does not. */
export function normalised(text: string, known: Known): string {
  let shown = asShown(text);
  for (const [value, name] of known) shown = shown.replaceAll(value, name);
  return shown
    .replace(/\breq_[a-z0-9]+/g, 'req_…')
    .replace(/\b(sbx|snap|key|evt|grant|wh)_[a-z0-9]{16,}/g, '$1_…')
    .replace(/\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?Z/g, same('0000-00-00T00:00:00.000Z'))
    .replace(/ready in [\d.]+m?s/g, 'ready in 0.1s')
    .replace(/\b\d+s ago\b|\bnow\b/g, (found) => '1s ago'.padEnd(found.length))
    .replace(/in \d+m(?:\d+s)?/g, (found) => `in ${found.includes('s') ? '9m59s' : '10m'}`)
    .replace(/\bAGE {2,}/g, 'AGE  ')
    .replace(/( {2,})\d+s( {2,}(?:in|-))/g, '$11s$2')
    .replace(/ {2,}/g, '  ')
    .replace(/v\d+\.\d+\.\d+/g, 'v0.0.0');
}
