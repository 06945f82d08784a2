/** Requests that open a byte stream to the stub. */
import { z } from 'zod';
import { StubName } from './protocol.ts';

const at = { name: StubName, owner: z.string().min(1).max(200) };
const Path = z.string().min(1).max(4096);

export const ChannelRequest = z.discriminatedUnion('channel', [
  z.strictObject({
    channel: z.literal('spawn'),
    ...at,
    argv: z.array(z.string()).min(1).max(4096),
    env: z.record(z.string(), z.string()),
    cwd: z.string().nullable(),
    timeout_seconds: z.number().positive().nullable(),
    stdin: z.boolean(),
    background: z.boolean(),
  }),
  z.strictObject({
    channel: z.literal('attach'),
    ...at,
    process_id: z.string(),
    from: z.number().int().min(0),
  }),
  z.strictObject({ channel: z.literal('processes'), ...at }),
  z.strictObject({ channel: z.literal('dial'), ...at, port: z.number().int().min(1).max(65_535) }),
  z.strictObject({ channel: z.literal('stat'), ...at, path: Path }),
  z.strictObject({ channel: z.literal('list'), ...at, path: Path, limit: z.number().int().min(0) }),
  z.strictObject({
    channel: z.literal('read'),
    ...at,
    path: Path,
    offset: z.number().int().min(0),
    length: z.number().int().min(0).nullable(),
  }),
  z.strictObject({
    channel: z.literal('write'),
    ...at,
    path: Path,
    mode: z.number().int().min(0).max(0o7777).nullable(),
    exclusive: z.boolean(),
  }),
  z.strictObject({
    channel: z.literal('mkdir'),
    ...at,
    path: Path,
    parents: z.boolean(),
    mode: z.number().int().min(0).max(0o7777),
  }),
  z.strictObject({ channel: z.literal('move'), ...at, from: Path, to: Path, overwrite: z.boolean() }),
  z.strictObject({ channel: z.literal('remove'), ...at, path: Path, recursive: z.boolean() }),
  z.strictObject({ channel: z.literal('upload'), ...at, path: Path }),
  z.strictObject({ channel: z.literal('download'), ...at, path: Path }),
  z.strictObject({ channel: z.literal('watch'), ...at, path: Path, recursive: z.boolean() }),
]);
export type ChannelRequest = z.infer<typeof ChannelRequest>;
export type ChannelRequestOf<Channel extends ChannelRequest['channel']> = Extract<
  ChannelRequest,
  { channel: Channel }
>;
