import { pino } from 'pino';
import type { Log } from '../../core/ports/log.ts';

/** Structured log, on stderr. Paths that could hold a secret are redacted even if they are logged by mistake. */
export function createLog(level: string): Log {
  return pino(
    {
      level,
      base: null,
      redact: {
        paths: ['*.authorization', '*.secret', '*.env', '*.value', 'headers', 'body'],
        censor: '[redacted]',
      },
    },
    pino.destination({ fd: 2, sync: true }),
  );
}
