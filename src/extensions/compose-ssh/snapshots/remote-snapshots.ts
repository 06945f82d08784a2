import { createHash } from 'node:crypto';
import { z } from 'zod';
import { SandboxerError } from '../../../contract/errors/errors.ts';
import type { Json } from '../../../contract/values/json.ts';
import type { SnapshotSpec, TakenSnapshot } from '../../../core/ports/extension.ts';
import type { InputTrees } from '../../../core/ports/inputs.ts';
import type { SshHost } from '../../shared/ssh/ssh-host.ts';
import { IMAGE_PREFIX } from '../compose/shapes/image-name.ts';
import { BACKEND, hostFailure, lost } from '../remote/failure.ts';
import type { HostPlace, Uploaded } from '../remote/remote-stacks.ts';
import { stackDirectory, uploadedOf } from '../remote/remote-stacks.ts';
import type { Call } from '../remote/run-script.ts';
import { GONE, runScript } from '../remote/run-script.ts';
import type { StackHandle } from '../remote/stack-handle.ts';
import { parseHandle } from '../remote/stack-handle.ts';
import type { KeptSnapshot } from './snapshot-marker.ts';
import { readKept, snapshotMarker } from './snapshot-marker.ts';
import { CAPTURE, FORGET, KEPT, MARK, PLANT, SEED_TREE } from './snapshot-scripts.ts';

const COPY_MS = 30 * 60_000;
const DAMAGED = 77;

/** Place of a snapshot, or of the state kept for a fork, on its host. */
export interface Seed {
  readonly directory: string;
  /** Service → the image it had, by its digest. */
  readonly images: Readonly<Record<string, string>>;
}

const SnapshotRef = z.object({ directory: z.string(), images: z.record(z.string(), z.string()) });

function keyOf({ owner, snapshotId }: SnapshotSpec): string {
  return createHash('sha256').update(`${owner}\n${snapshotId}`).digest('hex').slice(0, 20);
}

interface ForkTarget {
  readonly project: string;
  readonly marker: string;
  readonly signal: AbortSignal;
}

/** Snapshots of stacks on one host. */
export class RemoteSnapshots {
  readonly #host: SshHost;

  constructor(host: SshHost) {
    this.#host = host;
  }

  async take(
    place: HostPlace,
    stack: StackHandle,
    spec: SnapshotSpec,
    signal: AbortSignal,
  ): Promise<TakenSnapshot> {
    const marker = snapshotMarker(spec, Date.now());
    const target = { ...snapshotPlace(place, spec), marker };
    const { seed, sizeBytes } = await this.#capture(place, stack, target, signal);
    return { ref: seed as unknown as Json, sizeBytes };
  }

  /** Lists the snapshots there, of any owner. */
  async list({ root }: HostPlace, signal: AbortSignal): Promise<readonly KeptSnapshot[]> {
    const { code, stdout, stderr } = await runScript(this.#host, KEPT, [root], { signal });
    if (code !== 0) throw hostFailure('The snapshots could not be listed', stderr, 'created');
    return readKept(stdout.toString());
  }

  async forget(place: HostPlace, spec: SnapshotSpec, signal: AbortSignal): Promise<void> {
    const { directory, prefix } = snapshotPlace(place, spec);
    const { code, stderr } = await runScript(this.#host, FORGET, [directory, prefix], { signal });
    if (code !== 0) throw hostFailure('The snapshot could not be removed', stderr, 'created');
  }

  /** Captures a stack into a new one; returns `null` with its handle when that is up already. */
  async fork(
    place: HostPlace,
    source: StackHandle,
    { project, marker, signal }: ForkTarget,
  ): Promise<Seed | StackHandle> {
    const args = [place.root, project, marker, stackDirectory(place, source.project)];
    const { stdout, stderr, code } = await runScript(this.#host, MARK, args, { signal });
    const text = stdout.toString();
    const known = text.startsWith('already\n') ? parseHandle(text.slice('already\n'.length)) : null;
    if (known !== null) return known;
    if (code !== 0) throw hostFailure('The stack could not be begun', stderr, 'maybe_created');
    const target = {
      directory: `${place.root}/stacks/${project}/fork`,
      prefix: `${IMAGE_PREFIX}${project}-`,
      marker,
    };
    return (await this.#capture(place, source, target, signal)).seed;
  }

  /** Puts a snapshot where a new stack will be, instead of an uploaded tree. */
  async plant(
    { root }: HostPlace,
    { project, marker }: { readonly project: string; readonly marker: string },
    { directory, images }: Seed,
    call: Call,
  ): Promise<Uploaded> {
    const args = [root, project, marker, directory, ...Object.entries(images).flat()];
    const { code, stdout, stderr } = await runScript(this.#host, PLANT, args, {
      timeoutMs: COPY_MS,
      ...call,
    });
    if (code === GONE) throw notKept();
    if (code === DAMAGED)
      throw new SandboxerError('SBX_SNAPSHOT_DAMAGED', 'An image of the snapshot is not there any more.', {
        backend: BACKEND,
        creation: 'created',
        remedy: 'It was removed on the host: make the sandbox anew.',
      });
    if (code !== 0) throw hostFailure('The snapshot could not be copied', stderr, 'maybe_created');
    return uploadedOf(stdout.toString());
  }

  /** Returns the tree of a seed as the tree of a request: it is read and judged like any other. */
  trees(seed: Seed): InputTrees {
    const open: InputTrees['open'] = async (_name, options = {}) => {
      const { process, exit } = await this.#host.open(['sh', '-c', SEED_TREE, 'sh', seed.directory], {
        creation: 'not_created',
        timeoutMs: COPY_MS,
        ...(options.signal === undefined ? {} : { signal: options.signal }),
      });
      process.stdin.end();
      return (async function* () {
        yield* process.stdout as AsyncIterable<Uint8Array>;
        const code = await exit;
        if (code === GONE) throw notKept();
        if (code !== 0) throw hostFailure('The snapshot could not be read', process.stderr, 'not_created');
      })();
    };
    return {
      list: [{ name: 'workspace', uploadId: '', digest: '', origin: { kind: 'upload' } }],
      open,
    };
  }

  async #capture(
    { root }: HostPlace,
    { project, secret_variables }: StackHandle,
    { directory, prefix, marker }: ReturnType<typeof snapshotPlace> & { readonly marker: string },
    signal: AbortSignal,
  ): Promise<{ seed: Seed; sizeBytes: number }> {
    const args = [root, project, directory, prefix, marker, ...secret_variables];
    const { code, stdout, stderr } = await runScript(this.#host, CAPTURE, args, {
      signal,
      timeoutMs: COPY_MS,
    });
    if (code === GONE) throw lost('There is no such stack on the host.');
    if (code !== 0) throw hostFailure('The stack could not be kept', stderr, 'created');
    const text = stdout.toString();
    const images = [...text.matchAll(/^image (\S+) (\S+)$/gm)].map(([, service = '', id = '']) => [
      service,
      id,
    ]);
    const kilobytes = Number(/^size (\d+)$/m.exec(text)?.[1] ?? 0);
    return { seed: { directory, images: Object.fromEntries(images) }, sizeBytes: kilobytes * 1024 };
  }
}

export function seedOf(ref: Json): Seed {
  const parsed = SnapshotRef.safeParse(ref);
  if (!parsed.success) throw notKept();
  return parsed.data;
}

function snapshotPlace({ root }: HostPlace, spec: SnapshotSpec) {
  const key = keyOf(spec);
  return { directory: `${root}/snapshots/${key}`, prefix: `${IMAGE_PREFIX}snapshot-${key}-` };
}

function notKept(): SandboxerError {
  return new SandboxerError('SBX_NOT_FOUND', 'The snapshot is not on its host any more.', {
    backend: BACKEND,
    creation: 'not_created',
    remedy: 'Make the sandbox anew.',
  });
}
