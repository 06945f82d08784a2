/** Thrown when another worker took over the lease: no outcome of this worker may be written. */
export class LeaseLost extends Error {
  override readonly name = 'LeaseLost';
}

/** The sandbox is ready on another attempt: what this call makes is no longer needed. */
export class Outrun extends Error {
  override readonly name = 'Outrun';
}

/** Thrown when a later request asks for the opposite, such as destroying what is being provisioned. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted';
}
