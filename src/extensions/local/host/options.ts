export interface LocalOptions {
  /** `<state_dir>/local`: all files of the extension lie below it. */
  readonly directory: string;
  /** `crun`, `runc`, or the path of one of them. Default: crun where it exists, otherwise runc. */
  readonly runtime?: string;
  /** Folder of the agent and the spawner. Default: `agent/build`. */
  readonly binaries?: string;
  /** `false` leaves the kernel's control groups alone: no limits, and a pause stops the programs. */
  readonly cgroups?: boolean;
  /** Number of processes that wait to become a sandbox. */
  readonly launchers?: number;
  /** Most sandboxes started ahead of their claim; 0 turns it off. */
  readonly warm?: number;
  /**
   * Limit of a sandbox whose profile names none, so that no sandbox can take the whole machine. Default: 4096, or a 32nd of the
   * machine's.
   */
  readonly defaultPids?: number;
  readonly defaultMemoryShare?: number;
  /** Default: half of the free space. */
  readonly defaultDiskMb?: number;
  /** Also offers levels whose runtime failed its trial. For tests only. */
  readonly untriedLevels?: boolean;
  /** How long the spawner stays without a sandbox and without a client. */
  readonly lingerMs?: number;
}

export const DEFAULTS = {
  launchers: 8,
  warm: 0,
  defaultPids: 4096,
  defaultMemoryShare: 0.8,
  lingerMs: 60_000,
} as const;
