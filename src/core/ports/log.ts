/** A structured log. Fields never hold a secret, an environment or a request body. */
export interface Log {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export const silentLog: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
