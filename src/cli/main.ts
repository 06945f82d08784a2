#!/usr/bin/env -S node --
import { enableCompileCache } from 'node:module';
import { setFlagsFromString } from 'node:v8';
import { compileCacheDir } from './process/compile-cache.ts';

const argv = process.argv.slice(2);
/** Answers that need neither a parser nor a server. */
const instant = argv.length < 2 && [undefined, 'help', '-h', '--help', '-V', '--version'].includes(argv[0]);

// Without `await`: the package holds this as CommonJS, which loads in half the time.
if (instant) {
  void import('./instant-answer.ts').then(({ instantAnswer }) =>
    process.stdout.write(instantAnswer(argv[0])),
  );
} else {
  // A process that ends while V8 compiles beside it can wait for ever (nodejs/node#54918). A server does not end.
  if (argv[0] !== 'serve' && argv[0] !== 'daemon-process')
    setFlagsFromString('--no-concurrent-recompilation');
  enableCompileCache(compileCacheDir(process.env));
  void import('./program.ts').then(({ runProgram }) => runProgram(argv));
}
