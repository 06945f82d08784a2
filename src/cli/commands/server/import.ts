import { open } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import type { Command } from 'commander';
import { CommandFailure } from '../../failures/command-failure.ts';
import { EXIT } from '../../failures/exit-code.ts';
import { UsageError } from '../../failures/usage-error.ts';
import { addNotes } from '../../help/command-notes.ts';
import type { Invocation } from '../../invocation/invocation.ts';
import { relativeTime } from '../../output/relative-time.ts';
import type { Column } from '../../output/table.ts';

const LARGEST_BYTES = 16 * 1_048_576;
const MOST_RECORDS = 10_000;
const LONGEST_TEXT = 200;
const ENDED = new Set(['destroyed', 'deleted', 'gone', 'removed']);

type JsonObject = Readonly<Record<string, unknown>>;

/** Fields of an old record; `null` where it has none. */
interface LegacyRecord {
  readonly id: string | null;
  readonly profile: string | null;
  readonly extension: string | null;
  readonly host: string | null;
  readonly state: string | null;
  readonly created_at: string | null;
  readonly expires_at: string | null;
}

interface LegacyVerdict extends LegacyRecord {
  /** `ended`: nothing to do. `living`: something may still run. `unreadable`: the record says too little. */
  readonly verdict: 'ended' | 'living' | 'unreadable';
  readonly adoptable: false;
  readonly reason: string;
  readonly remedy: string | null;
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function shortText(value: unknown): string | null {
  if (typeof value === 'number') return String(value);
  return typeof value === 'string' && value !== '' ? value.slice(0, LONGEST_TEXT) : null;
}

/** Returns the first of these fields that holds text; `a.b` looks into a map. */
function textAt(record: JsonObject, ...paths: readonly string[]): string | null {
  for (const path of paths) {
    const value = path
      .split('.')
      .reduce<unknown>((at, step) => (isObject(at) ? at[step] : undefined), record);
    const text = shortText(value);
    if (text !== null) return text;
  }
  return null;
}

/** Returns ISO 8601 in UTC, from text or seconds since 1970. */
function timeAt(record: JsonObject, ...paths: readonly string[]): string | null {
  const text = textAt(record, ...paths);
  if (text === null) return null;
  const at = /^\d+(?:\.\d+)?$/.test(text) ? Number(text) * 1000 : Date.parse(text);
  return Number.isNaN(at) || Math.abs(at) > 8.64e15 ? null : new Date(at).toISOString();
}

function legacyRecord(record: JsonObject, key: string | null): LegacyRecord {
  return {
    id: textAt(record, 'sandbox_id', 'id') ?? key,
    profile: textAt(record, 'profile.id', 'profile', 'profile_id'),
    extension: textAt(record, 'extension', 'extension_id', 'handle.extension'),
    host: textAt(record, 'host', 'placement.host', 'placement', 'handle.host', 'reachability.host'),
    state: textAt(record, 'state', 'status')?.toLowerCase() ?? null,
    created_at: timeAt(record, 'created_at', 'created'),
    expires_at: timeAt(record, 'expires_at', 'expires', 'deadline'),
  };
}

/** Reads a list, a map from id to record, or either of them below `sandboxes`. */
function recordsIn(document: unknown): LegacyRecord[] | null {
  const held = isObject(document) && 'sandboxes' in document ? document.sandboxes : document;
  if (Array.isArray(held)) return held.map((item) => legacyRecord(isObject(item) ? item : {}, null));
  if (!isObject(held)) return null;
  const entries = Object.entries(held);
  if (!entries.every(([, value]) => isObject(value))) return null;
  return entries.map(([key, value]) => legacyRecord(value as JsonObject, key));
}

function verdictOf(record: LegacyRecord): LegacyVerdict {
  const { id, state, host, profile, extension } = record;
  if (id === null || state === null) {
    const missing = [id === null ? 'id' : null, state === null ? 'state' : null]
      .filter(Boolean)
      .join(' and ');
    return {
      ...record,
      verdict: 'unreadable',
      adoptable: false,
      reason: `The record has no ${missing}.`,
      remedy: 'Look at the host itself: the record does not say.',
    };
  }
  if (ENDED.has(state)) {
    return { ...record, verdict: 'ended', adoptable: false, reason: 'It was destroyed.', remedy: null };
  }
  const backend = extension ?? 'its backend';
  const again = profile === null ? '' : `, then create it anew: sandboxer create --profile ${profile}`;
  return {
    ...record,
    verdict: 'living',
    adoptable: false,
    reason: `It was ${state} and may still run. No backend here can adopt what ${backend} made.`,
    remedy: `Destroy it with the version that made it${host === null ? '' : `, on ${host}`}${again}`,
  };
}

function defaultStore(): string {
  return join(homedir(), '.local', 'share', 'sandboxer', 'sandboxes.json');
}

/** Reads a store, up to a limit of its size. */
async function readStore(path: string): Promise<string> {
  const file = await open(path, 'r').catch((cause: NodeJS.ErrnoException) => {
    const missing = cause.code === 'ENOENT';
    throw new CommandFailure(
      missing ? `There is no file ${path}.` : `The file ${path} cannot be read: ${cause.message}`,
      {
        code: missing ? 'SBX_CLI_NO_FILE' : 'SBX_CLI_FAILED',
        remedy: 'Give the path of the old sandboxes.json.',
        exitCode: missing ? EXIT.notFound : EXIT.failed,
        cause,
      },
    );
  });
  try {
    const stats = await file.stat();
    if (!stats.isFile())
      throw new UsageError(`${path} is not a file.`, 'Give the path of the old sandboxes.json.');
    if (stats.size > LARGEST_BYTES) {
      throw new UsageError(
        `${path} is larger than ${LARGEST_BYTES / 1_048_576} MiB.`,
        'The file is not a sandboxes.json.',
      );
    }
    return await file.readFile('utf8');
  } finally {
    await file.close();
  }
}

function parseStore(path: string, text: string): LegacyRecord[] {
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch {
    throw new UsageError(`${path} is not JSON.`, 'Give the path of the old sandboxes.json.');
  }
  const records = recordsIn(document);
  if (records === null) {
    throw new UsageError(
      `${path} holds no sandboxes.`,
      'Expected: a list or a map of records, or one below "sandboxes".',
    );
  }
  if (records.length > MOST_RECORDS) {
    throw new UsageError(
      `${path} holds more than ${MOST_RECORDS} records.`,
      'Split it, or remove what has ended.',
    );
  }
  return records;
}

function columns(now: number): Column<LegacyVerdict>[] {
  return [
    { title: 'ID', value: (row) => row.id ?? '-' },
    { title: 'STATE', value: (row) => row.state ?? '-' },
    { title: 'PROFILE', cuttable: true, value: (row) => row.profile ?? '-' },
    { title: 'HOST', value: (row) => row.host ?? '-' },
    { title: 'CREATED', value: (row) => relativeTime(row.created_at, now) },
    { title: 'VERDICT', value: (row) => row.verdict },
  ];
}

async function reportLegacy(invocation: Invocation, path: string): Promise<void> {
  const { printer } = invocation;
  const records = parseStore(path, await readStore(path)).map(verdictOf);
  const count = (verdict: LegacyVerdict['verdict']) =>
    records.filter((row) => row.verdict === verdict).length;
  const summary = {
    total: records.length,
    ended: count('ended'),
    living: count('living'),
    unreadable: count('unreadable'),
    adoptable: 0,
  };
  printer.result({ file: path, summary, records }, () => {
    if (records.length === 0) return printer.note('The store is empty.');
    printer.table(columns(Date.now()), records);
    for (const { id, remedy, reason } of records) {
      if (remedy !== null) printer.warn(`${id ?? 'a record'}: ${reason} ${remedy}`);
    }
    const { ended, living, unreadable } = summary;
    printer.note(
      `${ended} ended, ${living} living, ${unreadable} unreadable; none can be adopted. Nothing was changed.`,
    );
  });
  if (summary.living + summary.unreadable > 0) invocation.exitCode = EXIT.refused;
}

export function define(command: Command, invocation: Invocation): void {
  const legacy = command.command('legacy');
  addNotes(
    legacy,
    'Reads the file and nothing else: nothing is imported, changed or asked of a server.',
    'Ends with 0 when nothing is left to do, and with 4 when records need attention.',
  );
  legacy
    .description('Report on an old sandboxes.json: ended sandboxes, possibly running ones, and next steps')
    .argument('[file]', 'the old store; ~/.local/share/sandboxer/sandboxes.json when left out')
    .action((path?: string) => reportLegacy(invocation, path ?? defaultStore()));
}
