#!/usr/bin/env node
import { enableCompileCache } from 'node:module';
import { compileCacheDir } from './compile-cache.ts';

const argv = process.argv.slice(2);
/** What needs neither a parser nor a server. */
const instant = argv.length < 2 && [undefined, 'help', '-h', '--help', '-V', '--version'].includes(argv[0]);

if (instant) {
  const { instantAnswer } = await import('./instant-answer.ts');
  process.stdout.write(instantAnswer(argv[0]));
} else {
  enableCompileCache(compileCacheDir(process.env));
  const { runProgram } = await import('./program.ts');
  await runProgram(argv);
}
