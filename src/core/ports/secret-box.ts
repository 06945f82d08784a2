/** Seals secrets that must be usable again. `context` names their purpose: under another one a sealed secret does not open. */
export interface SecretBox {
  seal(plain: string, context: string): string;
  /** Throws when it was sealed under another key or context, or changed since. */
  open(sealed: string, context: string): string;
  /** Seals the same secret with the current key; returns `null` when it is sealed with that key already. */
  reseal(sealed: string, context: string): string | null;
}
