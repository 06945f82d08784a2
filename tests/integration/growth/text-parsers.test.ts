/** Text from outside: the work on it grows as it does, whatever it holds. */
import { describe, expect, it } from 'vitest';
import { excesses } from './growth.ts';
import { lineCases, nestedCases, textCases } from './hostile-text.ts';
import { LINE_PARSERS, LINES, stack, TEXT_PARSERS } from './text-parsers.ts';

describe('work grows no faster than a text does', () => {
  it.each(Object.entries(TEXT_PARSERS))('%s', { timeout: 300_000 }, async (_name, [least, read]) => {
    expect(await excesses([...textCases(read), ...nestedCases(read)], { least })).toEqual([]);
  });

  it.each(Object.entries(LINE_PARSERS))(
    '%s: many lines',
    { timeout: 300_000 },
    async (_name, [least, read]) => {
      expect(await excesses(lineCases(read, LINES), { least, memory: 32_768 })).toEqual([]);
    },
  );

  it('compose file: many items of a service, over two files', { timeout: 300_000 }, async () => {
    const items: Record<string, (n: number) => unknown> = {
      ports: (n) => `${1_000 + n}`,
      environment: (n) => `V${n}=$\{A}`,
      labels: (n) => `l${n}=x`,
      volumes: (n) => `v${n}:/m${n}`,
      networks: (n) => `n${n}`,
      tmpfs: (n) => `/t${n}`,
      command: (n) => `${n}`,
      cap_drop: (n) => `C${n}`,
      extra_hosts: (n) => `h${n}:10.0.0.1`,
      depends_on: (n) => `s${n}`,
    };
    const cases = Object.entries(items).map(([field, item]) => ({
      name: field,
      run: (count: number) => {
        const list = Array.from({ length: count }, (_, n) => item(n));
        const declared = (name: string) =>
          field === name ? Object.fromEntries(list.map((one) => [String(one).split(':')[0], {}])) : {};
        const sections = { volumes: declared('volumes'), networks: declared('networks') };
        return stack({
          'compose.yaml': JSON.stringify({
            ...sections,
            include: ['b.yaml'],
            services: { a: { image: 'x', [field]: list } },
          }),
          'b.yaml': JSON.stringify({ ...sections, services: { b: { image: 'x', [field]: list } } }),
        });
      },
    }));
    expect(await excesses(cases, { least: 128, memory: 32_768 })).toEqual([]);
  });

  it('compose file: many files and services, each small', { timeout: 300_000 }, async () => {
    const lines = (count: number, line: (n: number) => string) =>
      Array.from({ length: count }, (_, n) => line(n)).join('\n');
    const names = (count: number) => Array.from({ length: count }, (_, n) => `f${n}`);
    const large = `base: {image: x, environment: {${lines(1_000, (n) => `V${n}: x,`)}}}`;
    const cases = [
      {
        name: 'files of variables of a service',
        run(count: number) {
          const files = names(count).map((name) => [name, lines(2_000, (n) => `${name}_${n}=$\{A}`)]);
          const services = { a: { image: 'x', env_file: names(count) } };
          return stack({ 'compose.yaml': JSON.stringify({ services }), ...Object.fromEntries(files) });
        },
      },
      {
        name: 'included files',
        run(count: number) {
          const files = names(count).map((name) => [
            name,
            `x-a:\n${lines(2_000, (n) => `  k${n}: [a]`)}\nvolumes: {${name}: {}}`,
          ]);
          return stack({
            'compose.yaml': JSON.stringify({ include: names(count), services: { a: { image: 'x' } } }),
            ...Object.fromEntries(files),
          });
        },
      },
      {
        name: 'services that extend a large one',
        run: (count: number) =>
          stack({
            'compose.yaml': `services:\n  ${large}\n${lines(count, (n) => `  s${n}: {extends: base}`)}`,
          }),
      },
      {
        name: 'services that each extend the one before',
        run: (count: number) =>
          stack({
            'compose.yaml': `services:\n  ${large}\n${lines(count, (n) => `  s${n}: {extends: ${n % 7 === 0 ? 'base' : `s${n - 1}`}}`)}`,
          }),
      },
    ];
    expect(await excesses(cases, { least: 4, memory: 1_048_576 })).toEqual([]);
    // Together as large as one file may be: the work of a stack has a bound, whatever it is made of.
    for (const { name, run } of cases.slice(0, 3))
      await expect(Promise.resolve(run(60)), name).rejects.toMatchObject({ code: 'SBX_COMPOSE_INVALID' });
  });
});
