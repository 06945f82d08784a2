/** Everything that reads text from outside. */
import type { IncomingMessage } from 'node:http';
import { dockerRules } from '../../../src/archive/ignore/docker-ignore.ts';
import { IgnoreRules } from '../../../src/archive/ignore/ignore-rules.ts';
import { checkPriceList } from '../../../src/catalogue/price-list.ts';
import { parseProfileDocument, parseProfileText } from '../../../src/catalogue/profiles/profile-document.ts';
import { readHostFacts } from '../../../src/core/hosts/host-facts.ts';
import { parseGitRef } from '../../../src/core/recipe/git-ref.ts';
import { parseEnvFile } from '../../../src/extensions/compose-ssh/compose/load/env-file.ts';
import { Variables } from '../../../src/extensions/compose-ssh/compose/load/interpolate.ts';
import { loadProject } from '../../../src/extensions/compose-ssh/compose/load/load-project.ts';
import { readStack } from '../../../src/extensions/compose-ssh/compose/model/read-stack.ts';
import { memoryTree } from '../../../src/extensions/compose-ssh/compose/tree/memory-tree.ts';
import { Findings } from '../../../src/extensions/compose-ssh/compose/yaml/finding.ts';
import { EngineError, failed } from '../../../src/extensions/docker/engine/engine-error.ts';
import { parseImageReference } from '../../../src/extensions/docker/images/image-reference.ts';
import { clientAddress, trustedProxies } from '../../../src/http/keys/client-address.ts';
import { parseRange } from '../../../src/http/parse/byte-range.ts';
import { preferredType } from '../../../src/http/parse/media-type.ts';
import { requireClearHead } from '../../../src/http/parse/message-head.ts';
import { parseJson } from '../../../src/http/parse/parse-json.ts';
import { parseQuery } from '../../../src/http/parse/parse-query.ts';
import { invalidRequest } from '../../../src/http/present/problem-of.ts';
import { cookiesOfService, PreviewCookie, withoutOurs } from '../../../src/http/preview/preview-cookie.ts';
import { forwardedHeaders, returnedHeaders } from '../../../src/http/preview/preview-headers.ts';
import { readTarget } from '../../../src/http/preview/preview-target.ts';
import { ROUTE_TABLE } from '../../../src/http/server/route-table.ts';
import { Config } from '../../../src/main/config/config.ts';
import { configProblem } from '../../../src/main/config/config-problem.ts';
import { decodeCursor } from '../../../src/store/page-cursor.ts';
import { isFaulty, readYaml } from '../../../src/yaml/read-yaml.ts';
import { FILE, PAGE } from '../../../src/yaml/yaml-limits.ts';

const request = (headers: Record<string, string>, url = '/') =>
  ({
    headers,
    url,
    socket: { remoteAddress: '127.0.0.1' },
    rawHeaders: Object.entries(headers).flat(),
  }) as unknown as IncomingMessage;

export async function stack(files: Record<string, string>): Promise<unknown> {
  const tree = memoryTree(files);
  const findings = new Findings();
  const env = { A: 'x'.repeat(100) };
  const project = await loadProject(tree, { files: ['compose.yaml'], env, profiles: [] }, findings);
  return readStack({ project, tree, findings, given: new Set() });
}

const value = (text: string) => JSON.stringify(text);
const bodies = ROUTE_TABLE.flatMap(({ body }) => (body?.kind === 'json' ? [body.schema] : []));
const queries = ROUTE_TABLE.flatMap(({ query, params }) => [query, params].flatMap((schema) => schema ?? []));

/** One value in every field of the body of every route. */
function inEveryBody(given: unknown): void {
  for (const schema of bodies) {
    const names = Object.keys((schema as { shape?: object }).shape ?? {});
    const parsed = schema.safeParse(Object.fromEntries(names.map((name) => [name, given])), {
      reportInput: true,
    });
    if (!parsed.success) invalidRequest(parsed.error, 'body');
  }
}

function inEveryQuery(text: string): void {
  const given = parseQuery(`/x?a=${text}`).a ?? '';
  for (const schema of queries) {
    const names = Object.keys((schema as { shape?: object }).shape ?? {});
    const parsed = schema.safeParse(Object.fromEntries(names.map((name) => [name, given])), {
      reportInput: true,
    });
    if (!parsed.success) invalidRequest(parsed.error, 'query');
  }
}

const cookie = new PreviewCookie(false);
const inside = { port: 80, host: 'x.localhost', secure: false };
const deepPath = 'a/'.repeat(500) + 'b'.repeat(300);

/** Each with the least of four sizes; the largest is about what is let in, or what takes a while. */
export const TEXT_PARSERS: Record<string, readonly [number, (text: string) => unknown]> = {
  'YAML of a request': [2_048, (text) => readYaml(text, { limits: PAGE })],
  'YAML of a file, with merge keys': [2_048, (text) => readYaml(text, { limits: FILE, merge: true })],
  profile: [2_048, parseProfileText],
  'price list': [2_048, (text) => checkPriceList('x.yaml', text)],
  configuration: [1_024, (text) => {
    const read = readYaml(text, { limits: FILE });
    if (isFaulty(read)) return;
    const parsed = Config.safeParse(read.value);
    if (!parsed.success) configProblem(Config, parsed.error.issues, 'x');
  }],
  'compose file': [1_024, (text) => stack({ 'compose.yaml': text })],
  'text in a compose file': [1_024, (text) => stack({ 'compose.yaml': `services: {a: {image: x, command: ${value(text)}}}` })],
  'texts of a service': [256, (text) => {
    const fields = ['image', 'user', 'working_dir', 'hostname', 'shm_size', 'network_mode', 'pid', 'restart', 'env_file', 'extends', 'mem_limit'];
    const lists = ['ports', 'volumes', 'environment', 'labels', 'devices', 'tmpfs', 'secrets', 'configs', 'depends_on', 'extra_hosts', 'dns'];
    const service = Object.fromEntries([...fields.map((name) => [name, text]), ...lists.map((name) => [name, [text]])]);
    return Promise.allSettled(Object.entries(service).map(([name, given]) => stack({ 'compose.yaml': JSON.stringify({ services: { a: { image: 'x', [name]: given } } }) })));
  }],
  'include and extends': [1_024, (text) => stack({ 'compose.yaml': JSON.stringify({ include: [text], services: { a: { extends: { file: text, service: text } } } }) })],
  '.env': [2_048, (text) => parseEnvFile(text, new Variables(new Map([['A', 'x']])), '.env')],
  '.dockerignore': [2_048, (text) => IgnoreRules.none.with('', dockerRules(text)).ignores('a/b', false)],
  '.gitignore with a deep path': [256, (text) => IgnoreRules.none.with('', text).ignores(deepPath, false)],
  'path against ignore rules': [1_024, (text) => IgnoreRules.none.with('', '*a*a*a*a*a*b\n**/a/**/a/**/b\n[a-z]*?*?*').ignores(text, false)],
  'git ref': [2_048, (text) => [parseGitRefs(text)]],
  'image reference': [2_048, (text) => parseImageReference(text)],
  'facts of a host': [2_048, readHostFacts],
  "an engine's error": [2_048, (text) => failed(new EngineError('x' as never, text as never))],
  JSON: [4_096, (text) => parseJson(Buffer.from(text), false)],
  'JSON as a profile': [2_048, (text) => parseProfileDocument({ id: text, description: text, [text]: text, image: [text] })],
  'a text in every JSON body': [1_024, inEveryBody],
  'a list in every JSON body': [1_024, (text) => inEveryBody([text])],
  'a map in every JSON body': [1_024, (text) => inEveryBody({ [text]: text, kind: text })],
  'query string': [2_048, inEveryQuery],
  'cursor of a page': [2_048, decodeCursor],
  'Accept, Range': [2_048, (text) => [preferredType(text as never, ['application/json'] as never), parseRange(text)]],
  'X-Forwarded-For': [2_048, (text) => clientAddress(request({ 'x-forwarded-for': text }), trustedProxies(['0.0.0.0/0', '::/0']))],
  'names of headers': [2_048, (text) => requireClearHead(request({ [text]: 'x', Host: text }))],
  'cookies of a visitor': [2_048, (text) => [cookie.tokens(text), withoutOurs(text), cookiesOfService([text])]],
  'target of a visitor': [2_048, (text) => [readTarget(request({ host: text }, `/?${text}`)), readTarget(request({}, `http://${text}`))]],
  'headers of a visitor and of a service': [2_048, (text) => {
    const headers = { connection: text, cookie: text, referer: text, origin: text, location: text };
    return [forwardedHeaders(request(headers), inside), returnedHeaders(request(headers), 80)];
  }],
}; // biome-ignore format: a table

function parseGitRefs(text: string): unknown[] {
  return ['', 'https://x/', 'git@x:', 'https://x/y#'].map((begin) => {
    try {
      return parseGitRef(`${begin}${text}`, null, 'x');
    } catch (error) {
      return error;
    }
  });
}

/** Lines that differ from each other. */
export const LINES: Record<string, (n: number) => string> = {
  'keys that differ': (n) => `k${n}: v${n}`,
  'lists of one': (n) => `k${n}: [a${n}]`,
  'anchors and aliases': (n) => `k${n}: &a${n} ${n === 0 ? 'x' : `[*a${n - 1}]`}`,
  'merge keys': (n) => (n === 0 ? 'k0: &a0 {x: 1}' : `k${n}: &a${n} {<<: *a${n - 1}, y${n}: 1}`),
  comments: (n) => `# ${n}`,
  variables: (n) => `A${n}=$A${Math.max(0, n - 1)}`,
  'quoted values': (n) => `A${n}="${n}\nx"`,
  rules: (n) => `${n % 2 === 0 ? '!' : ''}**/a${n}*/`,
  'members of JSON': (n) => `${n === 0 ? '{' : ','}"k${n}":{"a":[]}`,
};
/** What reads many lines; the least number of them. */
export const LINE_PARSERS: Record<string, readonly [number, (text: string) => unknown]> = {
  'YAML of a request': [256, (text) => readYaml(text, { limits: PAGE })],
  'YAML of a file, with merge keys': [256, (text) => readYaml(text, { limits: FILE, merge: true })],
  profile: [256, parseProfileText],
  'compose file': [128, (text) => stack({ 'compose.yaml': text })],
  '.env': [4_096, (text) => parseEnvFile(text, new Variables(new Map([['B', 'x']])), '.env')],
  'ignore rules': [1_024, (text) => IgnoreRules.none.with('', text).ignores('a/b/c', true)],
  JSON: [2_048, (text) => parseJson(Buffer.from(`${text}}`), false)],
}; // biome-ignore format: a table
