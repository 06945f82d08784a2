export interface LocalOptions {
  /** `<state_dir>/local`: everything it keeps lies below it. */
  readonly directory: string;
  /** `crun`, `runc`, or the path of one of them. Default: crun where it is, otherwise runc. */
  readonly runtime?: string;
  /** Folder of the agent and the spawner. Default: `agent/build`. */
  readonly binaries?: string;
  /** `false` leaves the kernel's control groups alone: no limits, and a pause stops what runs. */
  readonly cgroups?: boolean;
  /** Processes that wait to become a sandbox. */
  readonly launchers?: number;
  /** Most sandboxes that are kept running ahead of their claim; 0 turns it off. */
  readonly warm?: number;
  /** Put on a sandbox whose profile names no limit, so that none can take the whole machine. Default: 4096, or a 32nd of the machine's. */
  readonly defaultPids?: number;
  readonly defaultMemoryShare?: number;
  /** Default: half of what is free. */
  readonly defaultDiskMb?: number;
  /** Offers levels whose runtime failed its trial, too. For tests alone. */
  readonly untriedLevels?: boolean;
  /** How long the spawner stays when nothing runs and nobody is connected. */
  readonly lingerMs?: number;
}

export const DEFAULTS = {
  launchers: 8,
  warm: 0,
  defaultPids: 4096,
  defaultMemoryShare: 0.8,
  lingerMs: 60_000,
} as const;
