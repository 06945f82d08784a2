import { z } from 'zod';
import { formatDuration } from '../../src/contract/values/duration.ts';
import type { ControlSettings } from '../../src/control/ports/settings.ts';
import { DEFAULT_SETTINGS } from '../../src/control/ports/settings.ts';
import { Config } from '../../src/main/config/config.ts';
import type { Generator } from './generator.ts';
import { page, table } from './generator.ts';
import type { Field, Schema } from './schema-text.ts';
import { defaultText, fieldsOf, isDuration, kindOf } from './schema-text.ts';

/** Settings whose defaults are the control plane's own; see `settingsFrom` in src/main/wire.ts. */
const FROM_SETTINGS: Readonly<Record<string, keyof ControlSettings>> = {
  'timing.lease': 'leaseMs',
  'timing.wait': 'waitMs',
  'timing.first_retry': 'retryFirstMs',
  'timing.longest_retry': 'retryMostMs',
  'timing.reconcile': 'reconcileMs',
  'timing.meter_tick': 'meterTickMs',
  'timing.dead_man_grace': 'deadManGraceMs',
  'retention.sandboxes': 'keepDestroyedMs',
  'retention.events': 'keepEventsMs',
  'retention.idempotency_keys': 'keepIdempotencyMs',
};

/** Descriptions of fields whose schema has none. */
const MEANINGS: Readonly<Record<string, string>> = {
  'log.level': 'Of the server’s own log, on stderr.',
  'timing.first_retry': 'The pause before a failed step is tried again; it doubles from try to try.',
  'timing.longest_retry': 'The longest pause between two tries of a step.',
  'timing.meter_tick': 'How often running sandboxes are charged and their holds renewed.',
  'timing.dead_man_grace': 'How far a backend’s own timeout lies behind the deadline, where it has one.',
  'retention.events': 'The event log.',
  'retention.idempotency_keys': 'How long a repeated request is recognised.',
  'webhooks.per_workspace': 'How many webhooks a workspace may have.',
  'webhooks.disable_after': 'So many dead events in a row turn a webhook off.',
  state_hub: 'Where lifecycle events are reported; `null` reports nowhere.',
  'state_hub.timeout': 'For an answer of the hub.',
  'limits.living_sandboxes': 'How many sandboxes a workspace may have at once.',
};

/** Variables of the server and of the command, with their meaning. */
const VARIABLES: readonly (readonly [name: string, who: string, meaning: string])[] = [
  ['SANDBOXER_CONFIG', 'server', 'The configuration file. Without it every default holds.'],
  [
    'SANDBOXER_STATE_DIR',
    'server, command, client',
    '`state_dir`. The command and the client look for the socket in it.',
  ],
  ['SANDBOXER_SOCKET', 'server, command, client', '`listen.socket`.'],
  ['SANDBOXER_LISTEN', 'server', '`listen.tcp`.'],
  ['SANDBOXER_LOG_LEVEL', 'server', '`log.level`.'],
  ['SANDBOXER_MASTER_KEY', 'server', 'The master key itself; comes before `master_key`.'],
  [
    'SANDBOXER_MASTER_KEY_PREVIOUS',
    'server',
    'The master key before it; comes before `master_key.previous_file`.',
  ],
  [
    'SANDBOXER_SECRET_<NAME>',
    'server',
    'A secret of the `env` provider. `SANDBOXER_SECRET_<WORKSPACE>__<NAME>` is one of another workspace than `default`.',
  ],
  ['SANDBOXER_LOCAL', 'server', '`0` turns `ext.local` off.'],
  ['SANDBOXER_DOCKER', 'server', '`0` turns `ext.docker` off.'],
  ['DOCKER_HOST', 'server', '`extensions.docker.url`, where that is not set.'],
  ['SANDBOXER_STUB_URL', 'server', '`extensions.saas_stub.default.url`.'],
  ['SANDBOXER_URL', 'command, client', 'The server to talk to; `--url` comes before it.'],
  ['SANDBOXER_KEY', 'command, client', 'The API key; `--key` comes before it.'],
  ['SANDBOXER_WORKSPACE', 'command', 'Another workspace than the key’s own; `--workspace` comes before it.'],
  [
    'SANDBOXER_HOST',
    'command',
    'The one host that a new sandbox may be placed on; `--host` comes before it.',
  ],
  ['NO_COLOR', 'command', 'No colours, when it is set.'],
  ['XDG_DATA_HOME', 'server, command, client', 'Where the state directory is by default.'],
  ['XDG_CACHE_HOME', 'command', 'Where compiled code is kept.'],
];

const defaults: unknown = Config.parse({});

function valueAt(path: string): unknown {
  return path
    .split('.')
    .reduce<unknown>((at, step) => (at as Record<string, unknown> | undefined | null)?.[step], defaults);
}

function defaultOf({ path, schema, required }: Field): string {
  if (required) return '*required*';
  const setting = FROM_SETTINGS[path];
  const value = setting === undefined ? valueAt(path) : DEFAULT_SETTINGS[setting];
  // Durations are kept in milliseconds.
  if (isDuration(schema) && typeof value === 'number') return `\`${formatDuration(value / 1000)}\``;
  return defaultText(value ?? schema.default ?? value);
}

/** Shows a map of instances with a name to fill in. */
function allFields(schema: Schema): Field[] {
  return fieldsOf(schema).flatMap((field) => {
    const { additionalProperties: each } = field.schema;
    if (typeof each !== 'object' || !each.properties) return [field];
    return [field, ...fieldsOf(each, `${field.path}.<name>`)];
  });
}

function fields(): string {
  const schema = z.toJSONSchema(Config, { io: 'input' }) as Schema;
  const rows = allFields(schema)
    .filter(
      ({ schema: field, path }) => !(field.properties && !field.description && path.split('.').length === 1),
    )
    .map((field) => [
      `\`${field.path}\``,
      kindOf(field.schema, (name) => name),
      defaultOf(field),
      (MEANINGS[field.path] ?? field.schema.description ?? '').replaceAll('<', '&lt;'),
    ]);
  return table(['Field', 'Value', 'Default', 'Meaning'], rows);
}

export const configPage: Generator = {
  file: 'docs/reference/config.md',
  render: () =>
    page(
      'src/main/config/config.ts',
      '# Configuration',
      'The server reads one YAML file, named by `SANDBOXER_CONFIG` or by `sandboxer serve --config`. Everything has a default: an empty file, or none, is a working server. A field that does not exist is refused. The environment comes before the file. A *duration* is text such as `"90s"`, `"2h"` or `"1h30m"`, or a number of seconds.',
      '```yaml\nlisten:\n  tcp: 127.0.0.1:8400\nprofiles:\n  folders: [/etc/sandboxer/profiles]\nrate_limit: { per_second: 50, burst: 100 }\nretention: { events: 90d }\n```',
      '## Fields',
      fields(),
      '## Environment',
      table(
        ['Variable', 'Read by', 'Meaning'],
        VARIABLES.map(([name, who, meaning]) => [`\`${name}\``, who, meaning]),
      ),
      'The daemon that the command starts by itself gets the environment of the command that started it, without `SANDBOXER_URL` and `SANDBOXER_KEY`. After a change of the environment or the file: `sandboxer daemon restart`.',
    ),
};
