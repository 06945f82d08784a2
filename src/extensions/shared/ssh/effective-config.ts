import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { sshEnvironment } from './ssh-process.ts';

const run = promisify(execFile);

/** Returns the options that OpenSSH would use for this destination (`ssh -G`): lower-case names, last value each. */
export async function effectiveConfig(
  destination: string,
  configFile: string | null,
): Promise<ReadonlyMap<string, string>> {
  const config = configFile === null ? [] : ['-F', configFile];
  const { stdout } = await run('ssh', ['-G', ...config, '--', destination], { env: sshEnvironment() });
  return new Map(
    stdout.split('\n').map((line) => {
      const at = line.indexOf(' ');
      return [line.slice(0, at), line.slice(at + 1)] as const;
    }),
  );
}
