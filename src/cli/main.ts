#!/usr/bin/env node
import { enableCompileCache } from 'node:module';
import { homedir } from 'node:os';
import { join } from 'node:path';

// In the user's own folder: code from a shared one could be anybody's.
const cache = process.env.XDG_CACHE_HOME || join(homedir(), '.cache');
if (!process.env.NODE_COMPILE_CACHE) enableCompileCache(join(cache, 'sandboxer', 'compile'));

const { runProgram } = await import('./program.ts');
await runProgram(process.argv.slice(2));
