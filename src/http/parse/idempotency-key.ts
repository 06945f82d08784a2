import { SandboxerError } from '../../contract/errors/errors.ts';
import type { Exchange } from '../exchange/exchange.ts';

const FORM = /^[\x21-\x7e]{1,255}$/;

export function idempotencyKeyOf(exchange: Exchange): { idempotencyKey?: string } {
  const key = exchange.header('idempotency-key');
  if (key === undefined) return {};
  if (FORM.test(key)) return { idempotencyKey: key };
  throw new SandboxerError('SBX_INVALID_REQUEST', 'An Idempotency-Key has 1–255 visible ASCII characters.', {
    field: 'Idempotency-Key',
  });
}
