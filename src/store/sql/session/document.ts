/** JSON text in a column. The commonest documents are empty ones: reading those costs no parsing. */

export function writeDocument(value: unknown): string {
  return JSON.stringify(value);
}

export function writeDocumentOrNull(value: unknown): string | null {
  return value === null ? null : JSON.stringify(value);
}

export function readDocument<T>(text: string): T {
  if (text === '{}') return {} as T;
  if (text === '[]') return [] as T;
  return JSON.parse(text) as T;
}

export function readDocumentOrNull<T>(text: string | null): T | null {
  return text === null ? null : readDocument(text);
}
