#!/usr/bin/env node
import { enableCompileCache } from 'node:module';
import { compileCacheDir } from './compile-cache.ts';
import { instantAnswer } from './instant-answer.ts';

const argv = process.argv.slice(2);
const answer = instantAnswer(argv);
if (answer !== null) process.stdout.write(answer);
else {
  enableCompileCache(compileCacheDir(process.env));
  const { runProgram } = await import('./program.ts');
  await runProgram(argv);
}
