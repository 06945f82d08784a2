import { describe, expect, it } from 'vitest';
import { SetupOutput } from './setup-output.ts';

const said = (text: string | Buffer, stream: 'stdout' | 'stderr' = 'stdout') =>
  ({ stream, offset: 0, data: Buffer.from(text) }) as const;

function outputOf(parts: readonly (string | Buffer)[], secrets: readonly string[] = []) {
  const output = new SetupOutput(secrets);
  for (const part of parts) output.add(said(part));
  return { text: output.text(), truncated: output.truncated };
}

describe('SetupOutput', () => {
  it('SetupOutput keeps both streams in the order they come, and characters whole', () => {
    const euro = Buffer.from('€');
    const output = new SetupOutput([]);
    output.add(said(euro.subarray(0, 1)));
    output.add(said('warning\n', 'stderr'));
    output.add(said(euro.subarray(1)));
    expect(output.text()).toBe('warning\n€');
  });

  it('SetupOutput keeps the end of long output, and says that it was cut', () => {
    const { text, truncated } = outputOf(['a'.repeat(20_000), 'b'.repeat(20_000), 'end']);
    expect(text).toHaveLength(32_768);
    expect(text.endsWith('end')).toBe(true);
    expect(truncated).toBe(true);
    expect(outputOf(['short'])).toEqual({ text: 'short', truncated: false });
    const output = new SetupOutput([]);
    output.add({ stream: 'gap', offset: 0, missing: 5 });
    expect(output.truncated).toBe(true);
  });

  it('SetupOutput removes secrets, whole and across chunks, the longest first', () => {
    const { text } = outputOf(['TOKEN=s3cr', 'et-long s3cret', '\n'], ['', 's3cret', 's3cret-long']);
    expect(text).toBe('TOKEN=[secret] [secret]\n');
  });

  it('SetupOutput keeps no part of a secret that lies across the cut', () => {
    const secret = 'S'.repeat(1_000);
    for (const at of [0, 1, 500, 999, 1_000, 1_500]) {
      expect(outputOf([secret, 'x'.repeat(32_768 - at)], [secret]).text).not.toContain('S');
    }
  });
});
