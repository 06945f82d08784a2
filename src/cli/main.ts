#!/usr/bin/env node
import { enableCompileCache } from 'node:module';
import { compileCacheDir } from './compile-cache.ts';

const argv = process.argv.slice(2);
/** What needs neither a parser nor a server. */
const instant = argv.length < 2 && [undefined, 'help', '-h', '--help', '-V', '--version'].includes(argv[0]);

// Without `await`: the package holds this as CommonJS, which loads in half the time.
if (instant) {
  void import('./instant-answer.ts').then(({ instantAnswer }) =>
    process.stdout.write(instantAnswer(argv[0])),
  );
} else {
  enableCompileCache(compileCacheDir(process.env));
  void import('./program.ts').then(({ runProgram }) => runProgram(argv));
}
