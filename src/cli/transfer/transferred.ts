/** What a copy did. */
export interface Transferred {
  readonly files: number;
  readonly path: string;
}
