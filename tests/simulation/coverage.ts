/** Which (state × fault × crash point) were visited: the state of the sandbox concerned, the last fault it met there. */
export class Coverage {
  readonly cells = new Map<string, number>();
  readonly #fault = new Map<string, string>();

  /** A sandbox changed its state: what hit it before belongs to the state before. */
  moved(uid: string): void {
    this.#fault.delete(uid);
  }

  faulted(uid: string | null, fault: string): void {
    if (uid !== null) this.#fault.set(uid, fault);
  }

  faultOf(uid: string): string {
    return this.#fault.get(uid) ?? 'none';
  }

  /** Whether any sandbox has just met it. */
  isAbout(fault: string): boolean {
    for (const met of this.#fault.values()) if (met === fault) return true;
    return false;
  }

  crashed(point: string, sandboxes: Iterable<readonly [uid: string, state: string]>): void {
    let any = false;
    for (const [uid, state] of sandboxes) {
      any = true;
      this.#visit(`${state}|${this.faultOf(uid)}|${point}`);
    }
    if (!any) this.#visit(`-|none|${point}`);
  }

  #visit(cell: string): void {
    this.cells.set(cell, (this.cells.get(cell) ?? 0) + 1);
  }
}
