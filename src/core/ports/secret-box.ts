/** Keeps what we must be able to use again. `context` says what it is for: under another one it does not open. */
export interface SecretBox {
  seal(plain: string, context: string): string;
  /** Throws when it was sealed under another key or context, or changed since. */
  open(sealed: string, context: string): string;
  /** The same secret under the key that seals now; `null` when it is under that key already. */
  reseal(sealed: string, context: string): string | null;
}
