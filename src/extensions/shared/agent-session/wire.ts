/** Constants of the wire protocol in `agent/README.md`. */

export const MAGIC = 'SBXAGENT';
export const PROTOCOL_VERSION = 1;
export const HEADER_BYTES = 10;
export const MAX_PAYLOAD = 262_144;
/** Control frames are small: a larger one is a violation. */
export const MAX_CONTROL = 65_536;
/** A flow-controlled frame costs at least this much credit, so that tiny ones cannot pile up. */
const MIN_COST = 256;
export const MAX_WINDOW = 67_108_864;
export const MAX_REQUEST = 4_194_304;
/** Bit of channels that the agent opens. */
export const AGENT_CHANNEL = 0x8000_0000;

export const T = {
  hello: 0x01,
  ping: 0x02,
  part: 0x03,
  spawn: 0x10,
  attach: 0x11,
  processes: 0x12,
  stat: 0x20,
  list: 0x21,
  read: 0x22,
  write: 0x23,
  mkdir: 0x24,
  move: 0x25,
  remove: 0x26,
  watch: 0x27,
  unpack: 0x28,
  pack: 0x29,
  dial: 0x30,
  listen: 0x31,
  data: 0x40,
  eof: 0x41,
  window: 0x42,
  signal: 0x43,
  resize: 0x44,
  close: 0x45,
  welcome: 0x81,
  pong: 0x82,
  started: 0xa0,
  stdout: 0xa1,
  stderr: 0xa2,
  terminal: 0xa3,
  gap: 0xa4,
  exit: 0xa5,
  result: 0xb0,
  error: 0xb1,
  opened: 0xb2,
  entries: 0xb3,
  changes: 0xb4,
  accepted: 0xb5,
  closed: 0xc0,
} as const;

/** Returns whether a frame has raw bytes, which are passed on piece by piece as they arrive. */
export function isStream(type: number): boolean {
  return type === T.stdout || type === T.data || type === T.stderr || type === T.terminal;
}

/** Returns whether a frame costs credit. */
export function isCharged(type: number): boolean {
  return isStream(type) || type === T.entries || type === T.changes;
}

/** Returns whether a frame is the last of its channel. */
export function isLast(type: number): boolean {
  return type === T.result || type === T.error || type === T.exit || type === T.closed;
}

const FROM_AGENT: ReadonlySet<number> = new Set([
  T.data,
  T.eof,
  T.window,
  ...Object.values(T).filter((type) => type >= T.welcome),
]);

export function comesFromAgent(type: number): boolean {
  return FROM_AGENT.has(type);
}

export function costOf(length: number): number {
  return length < MIN_COST ? MIN_COST : length;
}
