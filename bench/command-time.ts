import { spawn } from 'node:child_process';

/** Runs a program to its end with its output thrown away; anything but success is an error. */
export function runCommand(program: string, args: readonly string[], env: NodeJS.ProcessEnv): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { env, stdio: 'ignore' });
    child.once('error', reject);
    child.once('exit', (code) =>
      code === 0 ? resolve() : reject(new Error(`${program} ${args.join(' ')} ended with ${code}`)),
    );
  });
}
