/** Result of a copy. */
export interface Transferred {
  readonly files: number;
  readonly path: string;
}
