/** How the programs that run as root, or read what strangers wrote, are compiled and linked: read from the files. */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readElf } from '../support/elf.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const FORTIFY = join(ROOT, 'agent', 'fortify.h');
const has = (program: string) => spawnSync('sh', ['-c', `command -v ${program}`]).status === 0;
const reason = has('cc') && has('objdump') ? null : 'there is no C compiler, or no objdump';
const build = mkdtempSync(join(tmpdir(), 'sandboxer-hardened-'));

/** Functions with buffers on their stack, by program. */
const WITH_BUFFERS = {
  'sandboxer-spawner': ['do_unpack', 'do_pack', 'mount_root', 'tell_all', 'unpack_layer', 'janitor_discard'],
  'sandboxer-agent': ['unpack_tree', 'pack_tree', 'tree_job'],
} as const;

/** Writes one byte more than there is room for. Only at run time is the number known. */
const OVERFLOWS: Record<string, string> = {
  memcpy: 'memcpy(room, source, size);',
  memmove: 'memmove(room, source, size);',
  memset: 'memset(room, 1, size);',
  strcpy: 'source[size - 1] = 0; strcpy(room, source);',
  snprintf: 'snprintf(room, size, "x");',
  read: 'if (read(0, room, size) < 0) return 3;',
  recv: 'if (recv(0, room, size, 0) < -1) return 3;',
  readlink: 'if (readlink("/proc/self/exe", room, size) < -1) return 3;',
};
const PROGRAM = (body: string) => `
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
int main(int count, char **words) {
  char room[16], source[64];
  volatile size_t told = (size_t)atoi(words[count - 1]);
  size_t size = told;
  memset(source, 'x', sizeof source);
  ${body}
  return room[0] == 77;
}`;

const flagsOf = (cc: string) =>
  execFileSync('sh', [join(ROOT, 'scripts', 'hardened-flags.sh'), cc], { encoding: 'utf8' })
    .trim()
    .split(' ');

function callers(path: string): Set<string> {
  const found = new Set<string>();
  let here = '';
  const text = execFileSync('objdump', ['-d', '--no-show-raw-insn', path], {
    encoding: 'utf8',
    maxBuffer: 1 << 28,
  });
  for (const line of text.split('\n')) {
    here = /^[0-9a-f]+ <(.+)>:$/.exec(line)?.[1]?.replace(/\.(cold|part|isra|constprop).*$/, '') ?? here;
    if (/\b(call|bl)\b.*__stack_chk_fail/.test(line)) found.add(here);
  }
  return found;
}

afterAll(() => rmSync(build, { recursive: true, force: true }));

describe.skipIf(reason !== null)(`a hardened build${reason === null ? '' : ` (${reason})`}`, () => {
  beforeAll(() => {
    for (const script of ['build-agent.sh', 'build-spawner.sh']) {
      const env = { ...process.env, AGENT_BUILD_DIR: build, AGENT_SYMBOLS: '1' };
      execFileSync('sh', [join(ROOT, 'scripts', script)], { env, stdio: 'inherit' });
    }
  });

  const HARD = { movable: true, relro: true, bindNow: true, textRelocations: false, writableCode: false };
  for (const name of ['sandboxer-agent', 'sandboxer-spawner', 'sandboxer-sudo', 'sandboxer-preload.so']) {
    it(`${name}: loaded anywhere, relocations read-only at once, no writable code, no interpreter`, () => {
      expect(readElf(join(build, name))).toEqual({ ...HARD, interpreter: false });
    });
  }

  for (const [name, functions] of Object.entries(WITH_BUFFERS)) {
    it(`${name}: functions with buffers check their stack before they return`, () => {
      const checked = callers(join(build, name));
      expect(functions.filter((one) => !checked.has(one))).toEqual([]);
    });
  }

  for (const cc of ['musl-gcc', 'cc'].filter(has)) {
    for (const [name, body] of Object.entries(OVERFLOWS)) {
      it(`${cc}: ${name} beyond the object ends the program, up to its end does not`, () => {
        const source = join(build, `${cc}-${name}.c`);
        const program = source.slice(0, -2);
        writeFileSync(source, PROGRAM(body));
        execFileSync(cc, [
          '-O2',
          '-w',
          ...flagsOf(cc),
          '-fno-stack-protector',
          '-include',
          FORTIFY,
          '-o',
          program,
          source,
        ]);
        const run = (size: number) =>
          spawnSync(program, [String(size)], { input: '', env: { LIBC_FATAL_STDERR_: '1' } });
        expect(run(16).signal).toBe(null);
        expect(run(16).status).toBeLessThan(2);
        expect(['SIGILL', 'SIGABRT']).toContain(run(17).signal);
      });
    }
  }
});
