/** The data to reach a machine by OpenSSH: the names of files, never their content. */
export interface SshAccess {
  /** A name, an address, or an alias of `configFile`. */
  readonly destination: string;
  /** `null` leaves it to `configFile` or OpenSSH's default. */
  readonly port: number | null;
  readonly user: string | null;
  /**
   * Public keys of the host, each `<type> <base64>`; or `@cert-authority <type> <base64>` for an authority that signs
   * them. No other key is accepted, and without any the host cannot be reached.
   */
  readonly hostKeys: readonly string[];
  /** The file of the private key; `null` leaves it to the ssh agent of the user that runs the server. */
  readonly identityFile: string | null;
  readonly certificateFile: string | null;
  /** Hosts to go through, nearest first. */
  readonly jumps: readonly Omit<SshAccess, 'jumps'>[];
  /** The operator's own OpenSSH configuration; it cannot weaken ours. */
  readonly configFile: string | null;
  /** The tunnel of ops-bridge that `configFile` describes; left out where there is none. */
  readonly tunnel?: string;
}
