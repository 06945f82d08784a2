import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { KeptChannels } from '../../shared/channel/kept-channels.ts';
import type { Engine } from '../engine/engine.ts';
import { failed } from '../engine/failure.ts';
import type { Fields } from '../engine/spawner-client.ts';
import { SpawnerError } from '../engine/spawner-client.ts';
import type { Sandboxes } from '../sandboxes/sandboxes.ts';
import { UseGate } from '../session/use-gate.ts';
import type { Layers } from '../state/layers.ts';
import type { Layout } from '../state/layout.ts';
import type { SandboxRecord } from '../state/record.ts';
import type { RootFs } from '../state/root-fs.ts';
import { rootFsFields, rootFsOf } from '../state/root-fs.ts';

/** A longer chain would make every look-up in it slow: it is flattened into one layer. */
const MOST_LAYERS = 20;
/** Longest time that an unused source waits for the start of a sandbox made from its capture. */
const PATIENCE_MS = 100;
/** Time after that start: its record and its event are written before another job uses the disk. */
const GRACE_MS = 12;

export interface Captured {
  readonly rootFs: RootFs;
  /** Bytes of the capture; `null` where they were not counted. */
  readonly sizeBytes: number | null;
}

interface CaptureParts {
  readonly layout: Layout;
  readonly engine: Engine;
  readonly layers: Layers;
  readonly sandboxes: Sandboxes;
  readonly channels: KeptChannels;
}

/** Makes layers of the files that sandboxes have written, for snapshots and forks. */
export class Captures {
  readonly #parts: CaptureParts;
  readonly #gates = new Map<string, UseGate>();

  constructor(parts: CaptureParts) {
    this.#parts = parts;
  }

  /** Returns the gate that every use of a sandbox passes: it is shut while its agent is ended and started again. */
  gateOf(attemptId: string): UseGate {
    const known = this.#gates.get(attemptId);
    if (known !== undefined) return known;
    const gate = new UseGate();
    this.#gates.set(attemptId, gate);
    return gate;
  }

  forget(attemptId: string): void {
    this.#gates.delete(attemptId);
  }

  /**
   * Captures the files written so far as a layer on top of those the sandbox was made from; `lasting`: flushed to the disk.
   * Resolves as soon as the layer exists: the source may still be starting again, and its next use waits for that. The restart
   * waits for `before`, if that does not take long.
   */
  async capture(
    attemptId: string,
    { lasting, before }: { lasting: boolean; before?: Promise<void> },
  ): Promise<Captured> {
    const { sandboxes, layers, engine } = this.#parts;
    const { promise, resolve, reject } = Promise.withResolvers<Captured>();
    const made: string[] = [];
    const whole = sandboxes.inTurn(attemptId, async () => {
      const record = await this.#whole(attemptId);
      const reopen = await this.#shutOut(record);
      try {
        const place = layers.next();
        made.push(place);
        const {
          how,
          bytes,
          layer = place,
        } = await this.#taken(record, { to: dirname(place), seal: reopen === null ? 0 : 1 });
        const grown = { ...rootFsOf(record), layers: [layer, ...record.layers] };
        // The layer now has the only copy of its files: the record comes before any step that can fail.
        if (how === 'sealed') await sandboxes.records.update({ ...record, ...grown, sealed: true });
        const rootFs = await this.#shortened(grown, made);
        const above = { ...record, ...rootFs, sealed: true };
        if (how === 'sealed' && rootFs !== grown) await sandboxes.records.update(above);
        const again = how === 'sealed' ? this.#startAgain(above, before) : Promise.resolve();
        again.catch(() => {});
        if (lasting) await engine.flushed();
        made.length = 0;
        resolve({ rootFs, sizeBytes: bytes === undefined ? null : Number(bytes) });
        await again;
      } finally {
        reopen?.();
      }
    });
    whole.catch((error: unknown) => {
      for (const layer of made) layers.settled(layer);
      reject(failed(error));
    });
    return await promise;
  }

  /** Without an answer its agent may have been ended: the next use starts it again. */
  async #taken(record: SandboxRecord, fields: { to: string; seal: 0 | 1 }): Promise<Fields> {
    const { engine, layout, sandboxes } = this.#parts;
    try {
      return await engine.call('capture', { id: layout.name(record.attemptId), ...fields });
    } catch (error) {
      const refused = error instanceof SpawnerError && error.code !== 'seal';
      const now = refused || fields.seal === 0 ? null : sandboxes.records.reread(record.attemptId);
      if (now !== null) await sandboxes.records.update({ ...now, sealed: true });
      throw failed(error);
    }
  }

  /** Waits for a capture under way; starts a sandbox again whose capture was cut off after its disk became a layer. */
  async finish(attemptId: string): Promise<void> {
    await this.#parts.sandboxes.inTurn(attemptId, () => this.#whole(attemptId));
  }

  async #whole(attemptId: string): Promise<SandboxRecord> {
    const { sandboxes } = this.#parts;
    const record = await sandboxes.ready(attemptId);
    if (!record.sealed) return record;
    // The spawner may have noted since which layer its disk became.
    await sandboxes.startAgain(sandboxes.records.reread(attemptId) ?? record);
    return await sandboxes.ready(attemptId);
  }

  async #startAgain(record: SandboxRecord, before?: Promise<void>): Promise<void> {
    if (before !== undefined) {
      await Promise.race([before, sleep(PATIENCE_MS, undefined, { ref: false })]);
      await sleep(GRACE_MS, undefined, { ref: false });
    }
    await this.#parts.sandboxes.startAgain(record);
  }

  /**
   * Blocks uses while its agent may be ended and started again. Returns `null` when that would be noticed: a call is under way,
   * the output of an ended program is still kept for a later reader, or secrets are in its memory.
   */
  async #shutOut(record: SandboxRecord): Promise<(() => void) | null> {
    const { channels, sandboxes } = this.#parts;
    if (record.secretFiles) return null;
    const { state, frozen } = await this.#call('status', record.attemptId);
    const reopen = state === 'live' && frozen !== '1' ? this.gateOf(record.attemptId).shut() : null;
    if (reopen === null) return null;
    try {
      const { session } = (await channels.takeSoon(record.attemptId)) ?? (await sandboxes.channel(record));
      const known = await session.processes?.().finally(() => session.close());
      if (known?.length === 0) return reopen;
    } catch {
      // The agent does not answer: the disk is copied as it is.
    }
    reopen();
    return null;
  }

  async #shortened(rootFs: RootFs, made: string[]): Promise<RootFs> {
    const { layers, engine } = this.#parts;
    if (rootFs.layers.length <= MOST_LAYERS) return rootFs;
    const to = layers.next();
    made.push(to);
    await engine.call('flatten', { ...rootFsFields(rootFs), to }).catch((error: unknown) => {
      throw failed(error);
    });
    layers.settled(rootFs.layers[0] ?? '');
    return { ...rootFs, layers: [to] };
  }

  async #call(verb: string, attemptId: string, fields: Record<string, string | number> = {}) {
    const { engine, layout } = this.#parts;
    return await engine.call(verb, { id: layout.name(attemptId), ...fields }).catch((error: unknown) => {
      throw failed(error);
    });
  }
}
