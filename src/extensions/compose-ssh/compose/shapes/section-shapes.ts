/** Shapes of networks and volumes: the emitted fields, and the fields that would reach beyond the stack. */
import { isTree } from '../yaml/compose-yaml.ts';
import { isTruthy } from '../yaml/scalars.ts';
import type { Reading } from './reading.ts';
import type { ReadBy, Shape } from './shape.ts';
import { boundary, flag, ignored, list, map, record, text } from './shape.ts';
import { readTmpfsOptions } from './tmpfs-options.ts';
import * as words from './words.ts';

const OURS_TO_CHOOSE = 'How a network is made is ours to choose, so that many stacks fit on one host.';

const external: Shape<boolean> = {
  read(value, at) {
    if (!isTruthy(value)) return false;
    at.boundary('It is shared with what is not of the stack.', 'Remove "external".');
    return true;
  },
  examples: [true],
};

const subnet = text({
  what: 'a range of addresses',
  pattern: /^[0-9a-fA-F.:]{2,45}(?:\/\d{1,3})?$/,
  examples: ['10.9.0.0/24'],
});
const driverName = { what: 'a name', pattern: /^[\w.-]{1,128}$/, examples: ['parent'] };

const addressing = boundary(
  record({
    driver: words.name,
    config: list(record({ subnet, ip_range: subnet, gateway: subnet })),
    options: map(driverName, words.line),
  }),
  OURS_TO_CHOOSE,
  {
    harmless: ({ driver = 'default', config = [], options = {} }) =>
      driver === 'default' && config.length === 0 && Object.keys(options).length === 0,
  },
);

const some = (value: object) => Object.keys(value).length > 0;

export const NETWORK = {
  attachable: boundary(flag, OURS_TO_CHOOSE, { harmless: (on) => !on }),
  driver: boundary(words.name, 'Only bridges stay within the host.', {
    harmless: (driver) => driver === 'bridge' || driver === 'default',
  }),
  driver_opts: boundary(map(driverName, words.line), OURS_TO_CHOOSE, {
    harmless: (options) => !some(options),
  }),
  enable_ipv4: ignored(true),
  enable_ipv6: boundary(flag, OURS_TO_CHOOSE, { harmless: (on) => !on }),
  external,
  internal: flag,
  ipam: addressing,
  labels: ignored({ tier: 'front' }),
  name: words.name,
} satisfies { readonly [field: string]: Shape<unknown> };

/** Options of the engine’s own driver that make a tmpfs, written anew; others are refused. */
const driverOptions: Shape<{ [name: string]: string }> = {
  read(value, at) {
    const all = map(driverName, words.line).read(value, at) ?? {};
    if (!some(all)) return undefined;
    const { type, device, o = '', ...rest } = all;
    if (type !== 'tmpfs' || device !== 'tmpfs' || some(rest)) {
      at.boundary(
        'It mounts something of the host or of the network.',
        'Write "type: tmpfs" and "device: tmpfs", or remove it and use a bind of a path of the repository.',
      );
      return all;
    }
    const options = readTmpfsOptions(o, at, 'boundary');
    return { type, device, ...(options === undefined ? { o } : options === '' ? {} : { o: options }) };
  },
  examples: [{ type: 'tmpfs', device: 'tmpfs', o: 'size=64m,mode=1777' }],
};

export const VOLUME = {
  driver: boundary(words.name, 'Only local volumes stay within the host.', {
    harmless: (driver) => driver === 'local' || driver === 'default',
  }),
  driver_opts: driverOptions,
  external,
  labels: ignored({ keep: 'yes' }),
  name: words.name,
} satisfies { readonly [field: string]: Shape<unknown> };

const network = record(NETWORK);
const volume = record(VOLUME);
export type NetworkModel = ReadBy<typeof network>;
export type VolumeModel = ReadBy<typeof volume>;

/** Returns each entry of a section by its name, read. */
function section<T>(raw: unknown, shape: Shape<T>, at: Reading): Map<string, T> {
  const read = new Map<string, T>();
  for (const [name, value] of Object.entries(isTree(raw) ? raw : {})) {
    if (name.startsWith('x-')) continue;
    const below = at.below(name);
    if (!words.SECTION_NAME.test(name) || words.RESERVED_NAME.test(name)) {
      below.invalid(
        `${JSON.stringify(name.slice(0, 80))} cannot be its name.`,
        'Use letters, digits, ".", "_" and "-".',
      );
      continue;
    }
    const model = shape.read(isTree(value) ? value : {}, below);
    if (model !== undefined) read.set(name, model);
  }
  return read;
}

export const readNetworks = (raw: unknown, at: Reading) => section(raw, network, at);
export const readVolumes = (raw: unknown, at: Reading) => section(raw, volume, at);

const CHOSEN_BY_US = 'Addresses are ours to choose, so that many stacks fit on one host.';
const byName = { remedy: 'Remove it: services reach each other by name.' };

/** Options of a service's connection to a network. */
export const attachment = record({
  aliases: list(words.hostName),
  driver_opts: boundary(map(driverName, words.line), CHOSEN_BY_US, byName),
  gw_priority: boundary(words.integer(-1_000_000, 1_000_000, 1), CHOSEN_BY_US, byName),
  interface_name: boundary(words.name, CHOSEN_BY_US, byName),
  ipv4_address: boundary(words.address, CHOSEN_BY_US, byName),
  ipv6_address: boundary(words.address, CHOSEN_BY_US, byName),
  link_local_ips: boundary(list(words.address), CHOSEN_BY_US, byName),
  mac_address: boundary(words.macAddress, CHOSEN_BY_US, byName),
  priority: words.integer(0, 1_000_000, 100),
});
export type Attachment = ReadBy<typeof attachment>;
