import type { z } from 'zod';
import { SandboxerError } from '../../contract/errors/errors.ts';
import type { PortAccess, PortRequest } from '../../contract/sandboxes/port.ts';
import type { ControlPorts } from '../../control/ports/control-ports.ts';
import type { SandboxRecord } from '../../core/lifecycle/sandbox.ts';
import { isoTime } from '../../core/ports/clock.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import type { PreviewAccess } from './preview-access.ts';

/** The origin at which previews are served. */
export interface PreviewOrigin {
  readonly access: PreviewAccess;
  /** The address of a host label, such as `http://<label>.localhost:8401`. It may start the server. */
  addressOf(label: string): Promise<string>;
}

const DEFAULT_SECONDS = 3600;

/** The life of a preview is never longer than that of the sandbox itself, nor of the key it is made with. */
function expiryOf(deps: ControlPorts, caller: Caller, sandbox: SandboxRecord, seconds: number): number {
  const keyEndsAt = caller.keyEndsAt ?? Number.POSITIVE_INFINITY;
  return Math.floor(Math.min(deps.clock.now() + seconds * 1000, sandbox.maxDeadlineAt, keyEndsAt) / 1000);
}

export async function previewAccess(
  deps: ControlPorts,
  origin: PreviewOrigin | undefined,
  { caller, sandbox }: { readonly caller: Caller; readonly sandbox: SandboxRecord },
  request: z.output<typeof PortRequest>,
): Promise<z.output<typeof PortAccess>> {
  if (!origin) {
    throw new SandboxerError('SBX_UNSUPPORTED', 'This server shows no previews.', {
      remedy: 'Set preview.listen and preview.domain in the configuration.',
    });
  }
  const { port } = request;
  const grant = {
    sandbox: sandbox.uid.replace(/^sbx_/, ''),
    port,
    expiresAt: expiryOf(deps, caller, sandbox, request.expires_in ?? DEFAULT_SECONDS),
    keyNumber: caller.keyNumber ?? 0,
  };
  const expires_at = isoTime(grant.expiresAt * 1000);
  if (request.public) {
    const url = `${await origin.addressOf(origin.access.publicLabel(grant))}/`;
    return { port, url, token: null, public: true, expires_at };
  }
  const token = origin.access.token(grant);
  const url = `${await origin.addressOf(origin.access.privateLabel(grant))}/?sandboxer_token=${token}`;
  return { port, url, token, public: false, expires_at };
}
