import { describe, expect, it } from 'vitest';
import { SandboxerError } from '../../contract/errors/errors.ts';
import type { ProfileIssue } from '../../contract/profiles/profile.ts';
import { parseProfileDocument, parseProfileText } from './profile-document.ts';

function issuesOf(act: () => unknown): ProfileIssue[] {
  try {
    act();
  } catch (error) {
    if (!(error instanceof SandboxerError)) throw error;
    expect(error.code).toBe('SBX_PROFILE_INVALID');
    expect(error.extras.remedy).toBeTruthy();
    return error.extras.issues as ProfileIssue[];
  }
  throw new Error('it was accepted');
}

const head = 'id: profile.x\nversion: "1.0.0"\n';
const inText = (rest: string) => issuesOf(() => parseProfileText(head + rest));

describe('a document', () => {
  it('a profile document becomes a profile with its defaults', () => {
    const { profile, document } = parseProfileText(`${head}ttl: { default: 1h, max: 2h }`);
    expect(profile).toMatchObject({ ttl: { default: 3600, max: 7200, idle_reap: null }, image: 'host' });
    expect(document).toEqual({ id: 'profile.x', version: '1.0.0', ttl: { default: '1h', max: '2h' } });
    expect(parseProfileDocument(document)).toEqual(profile);
  });

  it('a profile document may be JSON', () => {
    expect(parseProfileText('{"id":"profile.x","version":"1.0.0"}').profile.id).toBe('profile.x');
  });

  it('a document that is no map is refused', () => {
    for (const document of [null, 'x', [], 7])
      expect(issuesOf(() => parseProfileDocument(document))).toHaveLength(1);
  });
});

describe('an issue', () => {
  it.each([
    ['netwrok: {}', 3, 1, 'netwrok', 'Did you mean "network"?'],
    ['frobnicate: 1', 3, 1, 'frobnicate', 'The fields here are id, version,'],
    ['setup: { varables: {} }', 3, 10, 'setup.varables', 'Did you mean "variables"?'],
    [
      'network:\n  egress:\n    - host: a.example\n      method: [GET]',
      6,
      7,
      'network.egress[0].method',
      '"methods"?',
    ],
    [
      'scope_default: sesion',
      3,
      1,
      'scope_default',
      'Did you mean "session"? Use one of session, agent, shared.',
    ],
    ['ttl: { default: 4 hours, max: 8h }', 3, 8, 'ttl.default', 'Write a duration such as "30s"'],
    ['ttl: { default: yes, max: 8h }', 3, 8, 'ttl.default', 'Write a duration such as "30s"'],
    ['ttl: { default: 4h }', 3, 1, 'ttl.max', 'Add it. Write a duration such as "30s"'],
    ['resources: { memory_mb: lots }', 3, 14, 'resources.memory_mb', 'Write a size such as "512MB"'],
    ['resources: { cpu: -1 }', 3, 14, 'resources.cpu', 'within the limit'],
    ['network:', 3, 1, 'network', 'Write a map, or remove the field'],
    ['labels: { a: 3 }', 3, 11, 'labels.a', 'Put the value in quotes: "3".'],
    ['setup: { variables: { a-b: c } }', 3, 23, 'setup.variables.a-b', 'A variable name has'],
    ['setup:\n  run:\n    - true', 5, 7, 'setup.run[0]', 'Put the value in quotes: "true".'],
    ['extension: local', 3, 1, 'extension', 'An extension id looks like "ext.local".'],
  ])(
    'an issue of a document of %j has a place, a field and a remedy',
    (text, line, column, field, remedy) => {
      const issues = inText(text);
      expect(issues).toHaveLength(1);
      expect(issues[0]).toMatchObject({ file: 'api', line, column, field });
      expect(issues[0]?.remedy).toContain(remedy);
    },
  );

  it('an issue of a document is given for each field at once', () => {
    expect(inText('netwrok: {}\nscope_default: x\nttl: 4h').map(({ field }) => field)).toEqual([
      'scope_default',
      'ttl',
      'netwrok',
    ]);
  });

  it('an issue of a document asks for an unquoted version to be quoted', () => {
    const [issue] = issuesOf(() => parseProfileText('id: profile.x\nversion: 1.0'));
    expect(issue?.remedy).toBe('Put the value in quotes: "1". A version looks like "1.0.0".');
  });

  it('an issue of a document of a contradiction names the field that should give way', () => {
    const fields = (rest: string) => inText(rest).map(({ field }) => field);
    expect(fields('requires: { region: eu }\nroute: { constraints: { region: us } }')).toEqual([
      'route.constraints.region',
    ]);
    expect(fields('route: { strategy: explicit }')).toEqual(['route.strategy']);
    expect(fields('network: { egress: [{ host: a.example, credential: TOKEN }] }')).toEqual([
      'network.egress[0].credential',
    ]);
    expect(fields('setup: { secret_refs: [{ name: A }, { name: A }] }')).toEqual([
      'setup.secret_refs[1].name',
    ]);
    expect(fields('ttl: { default: 2h, max: 1h }')).toEqual(['ttl.default']);
  });

  it('an issue of a document of a pushed document has no place', () => {
    const [issue] = issuesOf(() => parseProfileDocument({ id: 'profile.x', version: '1.0.0', netwrok: {} }));
    expect(issue).toMatchObject({ file: 'api', line: null, column: null, field: 'netwrok' });
  });
});

describe('YAML', () => {
  const bomb = ['a: &a [x, x, x, x, x, x, x, x]']
    .concat([...'bcdefgh'].map((name, index) => `${name}: &${name} [${`*${'abcdefgh'[index]}, `.repeat(8)}]`))
    .join('\n');

  it.each([
    ['duplicate keys', `${head}image: a\nimage: b`, 4],
    ['a custom tag', `${head}image: !env HOME`, 3],
    ['a binary tag', `${head}image: !!binary aGk=`, 3],
    ['several documents', `${head}---\n${head}`, 3],
    ['broken syntax', `${head}image: [`, 3],
    ['tabs for indentation', `${head}ttl:\n\tmax: 1h`, 4],
    ['YAML 1.1', `%YAML 1.1\n---\n${head}`, 1],
    ['an unknown alias', `${head}image: *nope`, 3],
  ])('YAML with %s is refused at its line', (_name, text, line) => {
    const [issue] = issuesOf(() => parseProfileText(text));
    expect(issue?.line).toBe(line);
    expect(issue?.remedy).toBeTruthy();
  });

  it('YAML that would unfold without end is refused', () => {
    expect(issuesOf(() => parseProfileText(bomb))[0]?.problem).toContain('alias');
    expect(issuesOf(() => parseProfileText('['.repeat(200_000)))).not.toHaveLength(0);
    expect(issuesOf(() => parseProfileText('x'.repeat(256 * 1024 + 1)))).toHaveLength(1);
  });

  it('YAML with very many keys is refused within its time limit', () => {
    const keys = Array.from({ length: 25_000 }, (_, index) => `k${index}: 1`).join('\n');
    expect(issuesOf(() => parseProfileText(keys))).not.toHaveLength(0);
  }, 3000);

  it('YAML knows no merge keys and no 1.1 booleans', () => {
    expect(inText('<<: { image: debian }').map(({ field }) => field)).toEqual(['<<']);
    expect(parseProfileText(`${head}labels: { a: no, b: on }`).profile.labels).toEqual({ a: 'no', b: 'on' });
  });

  it('YAML cannot reach a prototype', () => {
    expect(inText('__proto__: { polluted: 1 }').map(({ field }) => field)).toEqual(['__proto__']);
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  });
});
