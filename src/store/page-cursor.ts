import { SandboxerError } from '../contract/errors/errors.ts';

/** The position where a page ended. Rows are ordered newest first by (createdAt, key): inserts never move rows behind it. */
export interface PageCursor {
  readonly createdAt: number;
  readonly key: string;
}

const FORM = /^(-?\d{1,16})~(.+)$/s;

export function encodeCursor(cursor: PageCursor): string {
  return Buffer.from(`${cursor.createdAt}~${cursor.key}`).toString('base64url');
}

export function decodeCursor(text: string | null | undefined): PageCursor | null {
  if (text === null || text === undefined) return null;
  const match = FORM.exec(Buffer.from(text, 'base64url').toString());
  if (!match) {
    throw new SandboxerError('SBX_INVALID_REQUEST', 'The cursor is not one that this server gave out.', {
      field: 'cursor',
    });
  }
  return { createdAt: Number(match[1]), key: match[2] as string };
}
