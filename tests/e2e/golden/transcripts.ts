/** The commands whose output is kept, in the order in which they run. Each finds what those before it left. */
export interface Transcript {
  readonly name: string;
  /** Lines for a shell, as a user types them. */
  readonly commands: readonly string[];
  /** Made ready without being shown. */
  readonly before?: readonly string[];
}

export const TRANSCRIPTS: readonly Transcript[] = [
  { name: 'help', commands: ['sandboxer --help'] },
  { name: 'list-empty', commands: ['sandboxer list'] },
  { name: 'credits-empty', commands: ['sandboxer credits', 'sandboxer credits history'] },
  {
    name: 'create-error',
    commands: ['sandboxer create --profile stub-basic', 'sandboxer create --profile stub-basik'],
  },
  { name: 'credits', before: ['sandboxer credits grant 5'], commands: ['sandboxer credits balance'] },
  { name: 'credits-error', commands: ['sandboxer credits grant lots', 'sandboxer credit'] },
  { name: 'create', commands: ['sandboxer create --profile stub-basic --id box --label team=docs'] },
  {
    name: 'create-refused',
    commands: [
      'sandboxer create',
      'sandboxer create --profile stub-basic --isolation microvm --egress example.org',
    ],
  },
  { name: 'list', before: ['sandboxer create -p stub-metered --id second'], commands: ['sandboxer list'] },
  { name: 'list-error', commands: ['sandboxer list --state redy', 'sandboxer lst'] },
  { name: 'get', commands: ['sandboxer get box'] },
  { name: 'get-error', commands: ['sandboxer get nowhere', 'sandboxer get'] },
  { name: 'exec', commands: ["sandboxer exec box -- sh -c 'echo out; echo err >&2'"] },
  { name: 'exec-empty', commands: ['sandboxer exec box -- true'] },
  {
    name: 'exec-error',
    commands: [
      'sandboxer exec box -- no-such-program',
      'sandboxer exec box',
      'sandboxer exec nowhere -- true',
      'sandboxer exec --timeout 1s box -- sleep 30',
    ],
  },
  { name: 'run', commands: ['sandboxer run --profile stub-basic -- echo hello'] },
  { name: 'run-empty', commands: ['sandboxer run --profile stub-basic --keep --id kept -- true'] },
  {
    name: 'run-error',
    commands: [
      'sandboxer run --profile nothing -- true',
      'sandboxer run',
      "sandboxer run -p stub-basic -- sh -c 'exit 3'",
    ],
  },
  {
    name: 'cp',
    before: ['mkdir -p folder && echo one > folder/one.txt && echo two > folder/two.txt'],
    commands: [
      'sandboxer cp folder box:folder',
      'sandboxer cp box:folder/one.txt copy.txt',
      'sandboxer cp box:folder/two.txt -',
    ],
  },
  { name: 'cp-empty', before: ['mkdir -p nothing'], commands: ['sandboxer cp nothing box:nothing'] },
  {
    name: 'cp-error',
    commands: [
      'sandboxer cp missing.txt box:there',
      'sandboxer cp box:missing.txt .',
      'sandboxer cp one two',
    ],
  },
  { name: 'profiles', commands: ['sandboxer profiles'] },
  { name: 'profiles-error', commands: ['sandboxer profiles show agent-devv', 'sandboxer profiles shwo'] },
  { name: 'route-explain', commands: ['sandboxer route explain box'] },
  { name: 'route-resolve', commands: ['sandboxer route resolve --profile agent-dev'] },
  { name: 'route-error', commands: ['sandboxer route explain nowhere', 'sandboxer route'] },
  { name: 'events', commands: ['sandboxer events box --last 3'] },
  { name: 'events-empty', commands: ['sandboxer events box --type sandbox.failed'] },
  { name: 'events-error', commands: ['sandboxer events --order sideways', 'sandboxer events --last many'] },
  {
    name: 'logs',
    before: ["sandboxer exec --detach box -- sh -c 'echo begun; echo done'"],
    commands: ['sandboxer logs box --follow'],
  },
  { name: 'logs-empty', commands: ['sandboxer logs second'] },
  { name: 'logs-error', commands: ['sandboxer logs nowhere', 'sandboxer logs box nothing'] },
  { name: 'snapshots-empty', commands: ['sandboxer snapshots'] },
  {
    name: 'snapshots',
    before: ['sandboxer snapshot box --name first'],
    commands: ['sandboxer snapshots'],
  },
  { name: 'snapshots-error', commands: ['sandboxer snapshots show nothing', 'sandboxer snapshot nowhere'] },
  { name: 'doctor', commands: ['sandboxer doctor'] },
  { name: 'doctor-error', commands: ['sandboxer --url http://127.0.0.1:1 doctor'] },
  { name: 'destroy', commands: ['sandboxer destroy second kept'] },
  { name: 'destroy-empty', commands: ['sandboxer destroy second'] },
  { name: 'get-empty', commands: ['sandboxer get second'] },
  { name: 'destroy-error', commands: ['sandboxer destroy nowhere box', 'sandboxer destroy'] },
  { name: 'list-all', commands: ['sandboxer list --all --label team=docs'] },
  {
    name: 'import-legacy',
    before: ['echo "[]" > empty.json'],
    commands: ['sandboxer import legacy empty.json', 'sandboxer import legacy missing.json'],
  },
];
