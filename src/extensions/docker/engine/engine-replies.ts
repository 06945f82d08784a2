/** Schemas of the engine's answers; unused fields are dropped. */
import { z } from 'zod';

const Text = z.string().max(4096);
const Labels = z
  .record(z.string().max(1024), z.string().max(65_536))
  .nullish()
  .transform((labels) => labels ?? {});
const Flag = z
  .boolean()
  .nullish()
  .transform((flag) => flag ?? false);

export const Version = z.object({
  Version: Text,
  ApiVersion: Text,
  Os: Text,
  Arch: Text,
  Components: z
    .array(z.object({ Name: Text.default('') }))
    .max(64)
    .nullish(),
});

export const Info = z.object({
  ID: Text.nullish(),
  OSType: Text.default('linux'),
  Architecture: Text.default(''),
  Driver: Text.default(''),
  DriverStatus: z.array(z.array(Text).max(8)).max(256).nullish(),
  MemTotal: z.number().nonnegative().default(0),
  KernelVersion: Text.default(''),
  NCPU: z.number().nonnegative().default(0),
  MemoryLimit: Flag,
  SwapLimit: Flag,
  PidsLimit: Flag,
  CpuCfsQuota: Flag,
  CgroupVersion: Text.default('1'),
  SecurityOptions: z.array(Text).max(64).nullish(),
  Runtimes: z.record(z.string().max(256), z.unknown()).nullish(),
  LiveRestoreEnabled: Flag,
  ServerVersion: Text.default(''),
});

export const Created = z.object({ Id: z.string().min(12).max(128) });

export const Container = z.object({
  Id: Text,
  Name: z.string().max(1024),
  Created: Text,
  Image: Text,
  State: z.object({
    Status: Text,
    Running: Flag,
    Paused: Flag,
    OOMKilled: Flag,
    ExitCode: z.number().default(0),
    Error: z
      .string()
      .nullish()
      .transform((text) => (text ?? '').slice(0, 500)),
  }),
  Config: z.object({ Labels, User: Text.default(''), Image: Text.default('') }),
  HostConfig: z.object({ ReadonlyRootfs: Flag, Runtime: Text.nullish() }).nullish(),
});
export type Container = z.infer<typeof Container>;

export const ContainerList = z
  .array(
    z.object({
      Id: Text,
      Names: z.array(z.string().max(1024)).max(64),
      Created: z.number(),
      State: Text.default(''),
      Labels,
    }),
  )
  .max(100_000);

export const Image = z.object({
  Id: Text,
  RepoDigests: z.array(Text).max(1024).nullish(),
  Os: Text.default('linux'),
  Architecture: Text.default(''),
  Size: z.number().nonnegative().default(0),
  Config: z
    .object({ User: Text.default(''), Labels, Volumes: z.record(z.string(), z.unknown()).nullish() })
    .nullish(),
});
export type Image = z.infer<typeof Image>;

export const ImageList = z
  .array(z.object({ Id: Text, Labels, RepoTags: z.array(Text).nullish(), Created: z.number().default(0) }))
  .max(100_000);
export const History = z.array(z.object({ Size: z.number().default(0) })).max(1_000);
export const ExecCreated = z.object({ Id: z.string().min(8).max(128) });
export const ExecState = z.object({
  Running: Flag,
  ExitCode: z
    .number()
    .nullish()
    .transform((code) => code ?? null),
});
/** One line of a pull: progress, or the failure. */
export const PullLine = z.object({
  status: z.string().max(1024).optional(),
  id: z.string().max(256).optional(),
  progressDetail: z.object({ current: z.number().optional(), total: z.number().optional() }).nullish(),
  error: z.string().max(4096).optional(),
});
export type PullStep = z.infer<typeof PullLine>;
