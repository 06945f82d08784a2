/**
 * Returns the values of secrets. A provider never logs, and no error of it holds a value. A key it does not know, or may not
 * read, is `SBX_SECRET_UNRESOLVED`.
 */
export interface SecretProvider {
  resolve(key: string, signal: AbortSignal): Promise<string>;
}
