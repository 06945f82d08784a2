/** A program: the conformance suite on ext.local as whoever runs it, told for people. Slow machines have time to connect. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { formatReport, isConforming } from '../../src/testing/conformance-report.ts';

const directory = join(mkdtempSync(join(tmpdir(), 'sbx-vm-')), 'local');
const suite = join(import.meta.dirname, '..', 'conformance', 'local-suite.ts');
const options = JSON.stringify({ directory, lingerMs: 4_000 });
const told = execFileSync(process.execPath, [suite, options], {
  encoding: 'utf8',
  maxBuffer: 1 << 26,
  stdio: ['ignore', 'pipe', 'inherit'],
});
const report = JSON.parse(told) as Parameters<typeof formatReport>[0];
const { pause, resources } = report.capabilities;
process.stdout.write(`${formatReport(report)}\npause: ${pause}; limits: ${resources.join(' ')}\n`);
process.exitCode = isConforming(report) ? 0 : 1;
