/** The run of one command of a profile's `setup.run`. */
export interface SetupStep {
  readonly command: string;
  /** The output of the command to both streams, as it came; of much, the end. Secrets that it could see read `[secret]`. */
  readonly output: string;
  readonly truncated: boolean;
  /** `null` when it was ended with the attempt, by a timeout for instance. */
  readonly exitCode: number | null;
  readonly startedAt: number;
  readonly endedAt: number | null;
}

/** The setup of an attempt. The log outlives the attempt, so that a failure can be read afterwards. */
export interface SetupLog {
  readonly attemptId: string;
  readonly sandboxUid: string;
  readonly generation: number;
  readonly n: number;
  readonly extensionId: string;
  readonly steps: readonly SetupStep[];
}
