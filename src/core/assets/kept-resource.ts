/** The fields of an asset that a workspace keeps by name: an image or a volume. */
export interface KeptResource {
  readonly id: string;
  readonly workspaceId: string;
  /** For compare-and-set; counts up with every change. */
  readonly version: number;
  readonly name: string;
  /** Every workspace may see and use it. */
  readonly shared: boolean;
  readonly state: 'making' | 'available' | 'deleting';
  readonly createdAt: number;
  /** When we delete it; for one that is being made, when its making is given up. */
  readonly expiresAt: number | null;
}
