/**
 * Every room of the tree and its folders. The folders of a room stand in import order: a folder may import those before
 * it, and none after it. `.` is the room's own directory. `check-folders.ts` checks it; `docs/architecture.md` shows it.
 */

export interface Folder {
  /** The path below the room; `.` for the room itself. */
  readonly place: string;
  /** The content of the folder, in one sentence. */
  readonly holds: string;
}

export interface Room {
  readonly holds: string;
  readonly folders: readonly Folder[];
}

function room(holds: string, folders: Readonly<Record<string, string>> = { '.': holds }): Room {
  return { holds, folders: Object.entries(folders).map(([place, what]) => ({ place, holds: what })) };
}

/** Parts of every extension: the files of its own directory. */
const EXTENSION_ROOT = 'The extension itself, its configuration and its handle.';

export const ROOMS: Readonly<Record<string, Room>> = {
  'src/archive': room(
    'Archives from outside: names, links, the tar codec, ignore rules. Every room may import it.',
    {
      '.': 'Rules for the names, links and paths of an archive from outside.',
      tar: 'The tar codec: the header reader, the stream reader, the writer, pax records.',
      ignore: 'Ignore rules: globs, `.gitignore`, `.dockerignore`, names of likely secrets.',
    },
  ),
  'src/async': room('Mutex, KeyedMutex, Semaphore, abort and timeout. Every room may import it.'),
  'src/contract': room(
    'Public nouns: zod schemas of requests, answers, profiles and events; the error catalogue.',
    {
      values: 'Small values with bounds: ids, sizes, durations, states, JSON, the API version.',
      errors: 'The error catalogue and `SandboxerError`, the one class of error.',
      money: 'Amounts, accounts, holds, meters, budgets and price lists.',
      extensions: 'Capability vectors, hosts, isolation reports and the standing of a backend.',
      assets: 'Images, volumes, snapshots and uploads.',
      routing: 'Route plans with their candidates, and quotes.',
      profiles: 'Profiles, their inputs and their secret references.',
      sandboxes: 'Sandboxes and what runs in them: exec, files, ports, setup logs, stack plans, leftovers.',
      events: 'Event types and webhooks.',
      tenancy: 'Organisations, workspaces, keys, provider keys and the audit log.',
      '.': 'The published entry `sand-boxer/contract`.',
    },
  ),
  'src/core': room('Pure rules, and the ports to the world: no IO, no clock, no randomness.', {
    tenancy: 'Callers and their scopes, workspaces, provider keys, audit records.',
    recipe: 'Merge of profile and request into a recipe, its bounds by policy, its fingerprint.',
    assets: 'Records of images, volumes, snapshots and uploads.',
    ports: 'Interfaces to the world: extension, session, clock, catalogue, secrets, inputs, log.',
    credits: 'Money rules: prices, holds, meters, grants, budgets, transfers.',
    events: 'Events as they are stored, and their receivers.',
    hosts: 'Hosts with capacity and telemetry, canaries, regions, hysteresis of a verdict.',
    lifecycle: 'Sandbox and attempt records, the state table, and the next steps of a sandbox.',
    health: 'Health of a backend as attempts show it: breakers, latencies, hedge budget.',
    routing: 'Choice of a backend: exclusion, price, score, placement, explanation.',
    'ports/store': 'The port to the database: one interface for each kind of row, beside one `Tx`.',
    'credits/ledger': 'Money rules that read and write rows: holds, charges, budgets, purses.',
    '.': 'The published entry `sand-boxer/extension`.',
  }),
  'src/control': room('Use-cases: one file for each verb, and the lifecycle engine.', {
    ports: 'What every use-case reaches the world through, and the settings of the control plane.',
    backends:
      'Calls to backends: lookup, context with host and key, open sessions, time limits, calls to all of them.',
    requests: 'What every request needs: audit record, idempotency key, lookup of a sandbox.',
    assets: 'Verbs of images, volumes and uploads; trees staged for a sandbox.',
    money: 'Verbs of credits, budgets and purses; the money of one sandbox; reconciliation.',
    snapshots: 'Verbs of snapshots: export, import, measure, sweep.',
    'lifecycle/edit': 'Changes to one sandbox in one transaction: row, attempts, money and events.',
    'lifecycle/steps': 'Calls to a backend, one file for each kind, with the write of their outcome.',
    lifecycle: 'The engine: driver, lanes, activity, the steps that are database work alone, waits.',
    '.': '`Control`, the context of every verb: ports, driver, sessions, activity.',
    events: 'Delivery of events to webhooks and sinks, and verbs of webhooks.',
    tenancy: 'Verbs of workspaces, keys and provider keys; authentication of a key.',
    use: 'Use of a ready sandbox: exec, processes, files, ports.',
    sandboxes: 'Verbs of a sandbox: create, destroy, extend, pause, fork, recreate, snapshot.',
    hosts: 'Verbs of hosts; canaries, leftovers and reconciliation with a backend.',
    profiles: 'Verbs of profiles and of the published registry.',
  }),
  'src/workers': room('Loops of the server: each calls one use-case again and again.'),
  'src/yaml': room('The one reader of YAML from outside, bounded in time and memory.'),
  'src/extensions': room('One folder for each backend, `shared/`, and `builtins.ts`, the one list of them.', {
    '.': 'The list of all backends.',
  }),
  'src/extensions/shared': room('Parts that several extensions use.', {
    'agent-session': 'The host side of the agent: its protocol and the session over it.',
    channel: 'Channels into a sandbox: reuse, judgement of failures, secrets, files over one.',
    isolation: 'Names of capabilities and the isolation levels that a trial proved.',
    ssh: 'OpenSSH to a host: configuration, lanes, failures, upload of the agent.',
    '.': 'Programs that come with the package, the pool of warm sandboxes, unpacking of archives, calls cut short.',
  }),
  'src/extensions/local': room('`ext.local`: this machine, by an OCI runtime.', {
    seccomp: 'Filters of system calls.',
    state: 'Rows and layout of the state directory.',
    host: 'What the machine can do: levels, control groups, limits.',
    mounts: 'Host directories that a sandbox may be given, and how they are mounted.',
    engine: 'The client of the spawner, and the disk work beside it.',
    assets: 'Images and volumes.',
    bundle: 'The OCI bundle of a sandbox.',
    inspect: 'Health, isolation and use, read from the kernel.',
    session: 'Channel and session of a sandbox.',
    warm: 'Sandboxes started ahead.',
    sandboxes: 'Creation and end of a sandbox.',
    snapshots: 'Snapshots: capture, pack, unpack.',
    '.': EXTENSION_ROOT,
  }),
  'src/extensions/docker': room('`ext.docker`: a Docker or Podman engine.', {
    engine: 'The HTTP client of the engine, by socket, TLS or ssh.',
    containers: 'Containers: their configuration, labels and states.',
    'exec-api': 'The session by the exec API of the engine, where the agent cannot run.',
    channel: 'The agent inside a container, and the choice of a channel.',
    images: 'Images: pull, prepare, snapshot.',
    inspect: 'Health, isolation and levels of the engine.',
    sandboxes: 'Creation and end of a sandbox; warm containers.',
    '.': EXTENSION_ROOT,
  }),
  'src/extensions/ssh': room('`ext.ssh`: a directory and a user of a registered host.'),
  'src/extensions/compose-ssh': room(
    '`ext.compose-ssh`: the compose stack of a repository on a registered host.',
    {
      'compose/yaml': 'Scalars, mappings and findings of a compose file.',
      remote: 'Commands on the host: engine, scripts, stacks with their labels, subnets.',
      'compose/tree': 'Files of the repository, as the compose file sees them.',
      session: 'Sessions of the stack and of each service.',
      'compose/shapes': 'Shapes of the sections of a compose file.',
      'compose/load': 'Compose files read, merged and interpolated, with a budget.',
      snapshots: 'Snapshots of a stack.',
      'compose/model': 'Services and stack as one model.',
      'compose/plan': 'The closed compose file that a host is given.',
      stack: 'Creation, state and report of a stack.',
      '.': EXTENSION_ROOT,
    },
  ),
  'src/extensions/saas-stub': room('`ext.saas-stub`: a process that plays a metered vendor.', {
    wire: 'The protocol of the vendor and its transports.',
    session: 'Sessions over the vendor’s channel.',
    world: 'The vendor in memory: deterministic machines and faults.',
    '.': EXTENSION_ROOT,
    server: 'The vendor as a process, with machines that run commands.',
  }),
  'src/store': room('The databases behind the store port.', {
    '.': 'What every store shares: migrations, commit listeners, cursors.',
    memory: 'The store in memory.',
    'sql/session': 'The SQL session: schema, statements, documents, sequences.',
    'sql/sandboxes': 'Sandbox rows: their index, pages and statements.',
    'sql/tables': 'The other tables, one file each.',
    sql: 'The transaction over all tables.',
    sqlite: 'SQLite: connection, migration, group commit, write-ahead log.',
    suite: 'The tests that every store passes.',
  }),
  'src/catalogue': room('Profiles from YAML folders and from the API; the registry files.', {
    profiles: 'Profile documents: folder, schema, version, contradictions.',
    '.': 'The catalogue of a server, price lists, and the check of registry files.',
  }),
  'src/secrets': room('Providers of secret values, the master key and the box that seals with it.'),
  'src/sinks': room('Receivers of events: webhooks, State Hub, fin-hub, reuse-surface.'),
  'src/inputs': room('Staged archives and repositories: the file trees that requests bring.', {
    git: 'Repositories: a bounded fetch by git.',
    '.': 'The store of uploaded archives, and the check of each.',
  }),
  'src/http': room('The HTTP API.', {
    bounds: 'Limits: rates, memory, JSON size, streams.',
    present: 'The one mapper from rows to the wire.',
    exchange: 'One request and its answer: bodies, abort, end.',
    keys: 'The caller of a request, by key or by unix socket.',
    parse: 'Queries, headers, JSON and media types.',
    preview: 'Preview addresses: the gate and the relay to a port inside.',
    services: 'What every route is given, the event feed, the batch of audit records.',
    metrics: 'Figures in the format of Prometheus.',
    route: 'The definition of a route, and the OpenAPI document of all.',
    streams: 'Answers that go on: exec output, events, ports, files.',
    'v1/account': 'Routes of keys, workspaces, credits, webhooks, sinks and the audit log.',
    'v1/catalogue': 'Routes of profiles, extensions, hosts, quotes, the registry and leftovers.',
    v1: 'Routes of sandboxes, exec, files, processes, ports, snapshots, assets and events.',
    server: 'The server: from the request line to the answer.',
  }),
  'src/trees': room('Directories of this machine: packed by ignore rules, unpacked, made for one owner.'),
  'src/client': room('The TypeScript client, without an npm dependency.', {
    transport: 'Requests over a unix socket or TCP: retry, pages, WebSockets.',
    mirror: 'A directory kept in step with one inside a sandbox.',
    streams: 'Streams: exec output, events, ports.',
    resources: 'Methods of the API, one file for each resource.',
    '.': 'The published entry `sand-boxer/client`.',
  }),
  'src/cli': room('The command `sandboxer`.', {
    failures: 'Errors of use, and exit codes.',
    process: 'The process of the command: version, interrupts, compile cache.',
    args: 'Parsers of options.',
    daemon: 'The local server: start, stop, identity.',
    output: 'Tables, progress, errors and views.',
    invocation: 'One call of a command: its client, its options, its output.',
    'commands/account': 'Commands of credits, budgets, keys, workspaces, webhooks and the audit log.',
    'commands/images-and-volumes': 'Commands of images and volumes.',
    establish: 'Creation of a sandbox with progress on the terminal.',
    help: 'Help texts and examples.',
    terminal: 'Programs with a terminal: input, size, signals.',
    transfer: 'Files to and from a sandbox.',
    'commands/catalogue': 'Commands of profiles, extensions, hosts, routing and leftovers.',
    'commands/inside': 'Commands inside a sandbox: exec, files, processes, ports.',
    'commands/sandboxes': 'Commands of sandboxes.',
    'commands/snapshots': 'Commands of snapshots.',
    completion: 'Completion of a command line.',
    'commands/server': 'Commands of the server: serve, daemon, doctor, import, completion.',
    '.': 'The program: its entry, the table of commands, the help.',
  }),
  'src/testing': room('Published as `sand-boxer/testing`: what a third party tests an extension with.', {
    conformance: 'Parts of the conformance suite: subject, options, programs.',
    'conformance/tests': 'The tests of the suite, one file for each promise.',
    memory: 'A backend in memory.',
    '.': 'The published entry, the suite and its report.',
  }),
  'src/main': room('The composition root: configuration, wiring, start of a server.', {
    config: 'The configuration: schema, file, environment.',
    hosts: 'Hosts by configuration and by neighbouring projects.',
    process: 'The process of the server: state directory, socket, idleness.',
    ports: 'Ports that the server fills itself: clock, ids, log, secret box, registry.',
    '.': 'The wiring, and the entries of server and daemon.',
  }),
  agent: room('The program inside a sandbox, in C.', {
    wire: 'The protocol: frames, connections, the event loop.',
    '.': 'The entry, PID 1, and the header of all parts.',
    process: 'Processes: start, terminal, output, end.',
    files: 'Files: read, write, watch, paths that stay beneath a directory.',
    trees: 'Directory trees: pack, unpack, move, remove.',
    ports: 'Ports: dial, listen, forward, relay.',
    rights: 'Users, capabilities and confinement.',
  }),
  'agent/spawner': room('The program that starts the OCI runtime for `ext.local`, in C.', {
    '.': 'The entry, the control socket, the header of all parts; `sudo.c`, a program of its own.',
    groups: 'Control groups: one slot for each sandbox.',
    rights: 'Capabilities, confinement of workers, life without root.',
    sandbox: 'One sandbox: start, verbs, watch, end.',
    disks: 'Disks and volumes, and what is written to them.',
    launch: 'Launcher, mounter and runtime of a sandbox.',
    mounts: 'Layers, id maps, host directories and mount targets.',
    trees: 'Directory trees: walk, copy, pack, unpack, in workers.',
    zygote: 'The zygote: a loaded runtime that starts launchers in their slot.',
    'zygote/preload': 'The library that makes a zygote of the runtime.',
  }),
};

/** Files above the limit because they are one catalogue or one schema. */
export const LONG_FILES: readonly string[] = [
  'src/contract/errors/errors.ts',
  'src/store/sql/session/schema.ts',
];

/** Includes in C that go against the order: one header serves all parts, and includes one of them. Nothing joins the list. */
export const INCLUDES_AGAINST_ORDER: readonly string[] = [
  'agent/wire/caller.c → agent/agent.h',
  'agent/wire/conn.c → agent/agent.h',
  'agent/wire/request.c → agent/agent.h',
  'agent/spawner/main.c → agent/spawner/rights/confine.h',
  'agent/spawner/spawner.h → agent/spawner/zygote/birth.h',
];
