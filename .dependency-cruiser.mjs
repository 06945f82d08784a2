/**
 * The import directions of the source tree, as data. A folder directly under src/ is a room; a room that is not
 * listed here is refused, so that a new one is a decision. Test files beside their source are free to reach anywhere.
 */

/** Nothing that touches the world, tells the time or runs code: those come in through ports. */
const IO_BUILTINS = [
  'child_process',
  'cluster',
  'dgram',
  'dns',
  'fs',
  'http',
  'http2',
  'https',
  'inspector',
  'net',
  'os',
  'perf_hooks',
  'process',
  'readline',
  'repl',
  'sqlite',
  'test',
  'timers',
  'tls',
  'tty',
  'v8',
  'vm',
  'wasi',
  'worker_threads',
];

const ANY = '*';
/** Leaf rooms: every room may import them, and they import nothing. */
const LEAF_ROOMS = ['archive', 'async'];
const ALL_ROOMS = [
  ...LEAF_ROOMS,
  'contract',
  'core',
  'control',
  'workers',
  'extensions',
  'store',
  'catalogue',
  'secrets',
  'egress',
  'sinks',
  'inputs',
  'http',
  'mcp',
  'trees',
  'client',
  'yaml',
  'cli',
  'testing',
  'main',
];

/**
 * rooms: other rooms whose code it may import; typeRooms: rooms of which it may import types only;
 * packages: npm packages (ANY = every dependency of package.json); builtins: ANY, 'no-io' or 'none'.
 */
const ROOMS = {
  archive: { rooms: [], packages: [], builtins: 'no-io' },
  async: { rooms: [], packages: [], builtins: 'none' },
  contract: { rooms: [], packages: ['zod'], builtins: 'none' },
  core: { rooms: ['contract'], packages: ['zod'], builtins: 'no-io' },
  control: { rooms: ['core', 'contract'], packages: [], builtins: 'no-io' },
  workers: { rooms: ['control', 'core', 'contract'], packages: [], builtins: 'no-io' },
  yaml: { rooms: [], packages: ['yaml'], builtins: 'none' },
  extensions: { rooms: ['core', 'contract', 'yaml'], packages: ANY, builtins: ANY },
  store: { rooms: ['core', 'contract'], packages: ['kysely', 'pg'], builtins: ANY },
  catalogue: { rooms: ['core', 'contract', 'yaml'], packages: [], builtins: ANY },
  secrets: { rooms: ['core', 'contract'], packages: ANY, builtins: ANY },
  sinks: { rooms: ['core', 'contract'], packages: [], builtins: ANY },
  inputs: { rooms: ['core', 'contract'], packages: [], builtins: ANY },
  egress: { rooms: ['core', 'contract'], packages: ANY, builtins: ANY },
  http: { rooms: ['control', 'core', 'contract'], packages: ANY, builtins: ANY },
  mcp: { rooms: ['control', 'core', 'contract'], packages: ANY, builtins: ANY },
  trees: { rooms: [], packages: [], builtins: ANY },
  client: { rooms: ['trees'], typeRooms: ['contract'], packages: [], builtins: ANY },
  cli: {
    rooms: ['client', 'trees'],
    typeRooms: ['contract'],
    packages: ['commander', 'picocolors'],
    builtins: ANY,
  },
  testing: { rooms: ['core', 'contract'], packages: [], builtins: ANY },
  main: { rooms: ALL_ROOMS.filter((room) => room !== 'client'), packages: ANY, builtins: ANY },
};

/** The only files of the CLI that may load the server, and only when they are asked to run it. */
const CLI_SERVER_ENTRIES = '^src/cli/commands/server/(serve|daemon-process)\\.ts$';
const TEST_FILE = '\\.test\\.ts$';

const oneOf = (names) => `(${names.join('|')})`;
const insideRoom = (room) => ({ path: `^src/${room}/`, pathNot: TEST_FILE });

function roomRules([room, { rooms, typeRooms = [], packages, builtins }]) {
  const exempt = room === 'cli' ? [TEST_FILE, CLI_SERVER_ENTRIES] : [TEST_FILE];
  const rules = [
    {
      name: `${room}-imports-rooms`,
      comment: `${room}/ may import ${[...rooms, ...typeRooms].join(', ') || 'no other room'}`,
      from: { path: `^src/${room}/`, pathNot: exempt },
      to: { path: '^src/', pathNot: `^src/${oneOf([room, ...LEAF_ROOMS, ...rooms, ...typeRooms])}/` },
    },
  ];
  if (typeRooms.length > 0) {
    rules.push({
      name: `${room}-imports-types-only`,
      comment: `${room}/ may import only types from ${typeRooms.join(', ')}: use "import type"`,
      from: insideRoom(room),
      to: { path: `^src/${oneOf(typeRooms)}/`, dependencyTypesNot: ['type-only'] },
    });
  }
  if (packages !== ANY) {
    rules.push({
      name: `${room}-imports-packages`,
      comment: `${room}/ may import ${packages.join(', ') || 'no npm package'}`,
      from: insideRoom(room),
      to: {
        path: 'node_modules/',
        pathNot: [...packages.map((name) => `node_modules/${name}/`), 'node_modules/@types/node/'],
      },
    });
  }
  if (builtins !== ANY) {
    rules.push({
      name: `${room}-imports-builtins`,
      comment: `${room}/ may import ${builtins === 'none' ? 'no Node builtin' : 'no Node builtin that does IO'}`,
      from: insideRoom(room),
      to: {
        dependencyTypes: ['core'],
        ...(builtins === 'no-io' && { path: `^(node:)?${oneOf(IO_BUILTINS)}(/|$)` }),
      },
    });
  }
  return rules;
}

/** @type {import('dependency-cruiser').IConfiguration} */
export default {
  forbidden: [
    ...Object.entries(ROOMS).flatMap(roomRules),
    {
      name: 'unknown-room',
      comment: 'every source file lives in a room listed in .dependency-cruiser.mjs',
      from: { path: '^src/', pathNot: `^src/${oneOf(ALL_ROOMS)}/` },
      to: {},
    },
    {
      name: 'extension-imports-extension',
      comment: 'an extension may import extensions/shared/ and its own folder, never another extension',
      from: { path: '^src/extensions/([^/]+)/', pathNot: TEST_FILE },
      to: { path: '^src/extensions/', pathNot: '^src/extensions/($1|shared)/' },
    },
    {
      name: 'cli-loads-server-lazily',
      comment:
        'serve and the daemon entry load main/ by import() alone, so that no other command pays for it',
      from: { path: CLI_SERVER_ENTRIES },
      to: { path: '^src/main/', dynamic: false },
    },
    {
      name: 'cli-server-entry-imports-rooms',
      comment: 'serve and the daemon entry may import what the CLI may, and main/',
      from: { path: CLI_SERVER_ENTRIES },
      to: { path: '^src/', pathNot: '^src/(cli|client|contract|main)/' },
    },
    {
      name: 'yaml-room-alone',
      comment: 'YAML from outside is read by yaml/, which bounds the work; nothing else loads the parser',
      from: { path: '^src/', pathNot: ['^src/yaml/', TEST_FILE] },
      to: { path: 'node_modules/yaml/' },
    },
    {
      name: 'test-imported',
      comment: 'nothing imports a test file',
      from: {},
      to: { path: TEST_FILE },
    },
    {
      name: 'source-imports-outside',
      comment: 'src/ does not import tests/, bench/ or scripts/; its tests may use tests/support/',
      from: { path: '^src/', pathNot: TEST_FILE },
      to: { path: '^(tests|bench|scripts)/' },
    },
    {
      name: 'source-imports-dev-dependency',
      comment: 'what src/ imports is a dependency of package.json',
      from: { path: '^src/', pathNot: TEST_FILE },
      to: {
        dependencyTypes: ['npm-dev', 'npm-no-pkg', 'npm-unknown'],
        pathNot: 'node_modules/@types/',
      },
    },
    { name: 'unresolvable', comment: 'every import resolves', from: {}, to: { couldNotResolve: true } },
    {
      name: 'circular',
      comment: 'no circular imports; types and what is loaded on demand make no cycle at load time',
      from: {},
      to: { circular: true, viaOnly: { dependencyTypesNot: ['type-only', 'dynamic-import'] } },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsConfig: { fileName: 'tsconfig.json' },
    tsPreCompilationDeps: true,
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'node', 'default', 'types'],
    },
  },
};
