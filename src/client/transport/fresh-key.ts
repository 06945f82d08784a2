/** Returns an Idempotency-Key for one request. The module is loaded when it is needed: most commands never do. */
export function freshKey(): string {
  return process.getBuiltinModule('node:crypto').randomUUID();
}
