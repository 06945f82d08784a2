import { existsSync } from 'node:fs';
import { arch } from 'node:os';
import { dirname, join } from 'node:path';
import type { AgentBinaries } from './ssh/upload-agent.ts';

/** The folder of the package, whether this runs from its sources, as built modules or in a bundle. */
export const PACKAGE_DIR = packageDir();

/** Names of processors: Node's, and those of `uname -m`. */
const MACHINES: Readonly<Record<string, string>> = { x64: 'x86_64', arm64: 'aarch64' };

function packageDir(): string {
  let dir = import.meta.dirname;
  while (!existsSync(join(dir, 'package.json'))) {
    const above = dirname(dir);
    if (above === dir) throw new Error(`No package.json above ${import.meta.dirname}.`);
    dir = above;
  }
  return dir;
}

/**
 * Returns the folder of the agent and the programs beside it, built or not: a checkout builds them for its own machine, a package
 * has them for several.
 */
export function programFolder(processor: string = arch()): string {
  const built = join(PACKAGE_DIR, 'agent', 'build');
  if (processor === arch() && existsSync(join(built, 'sandboxer-agent'))) return built;
  const brought = join(PACKAGE_DIR, 'agent', 'prebuilt', `linux-${processor}`);
  return existsSync(brought) ? brought : built;
}

/** Returns the existing agents, by the machine that they run on. */
export function ownAgents(): AgentBinaries {
  const agents: Record<string, string> = {};
  for (const [processor, machine] of Object.entries(MACHINES)) {
    const folder = programFolder(processor);
    const path = join(folder, 'sandboxer-agent');
    const isItsOwn = processor === arch() || folder.endsWith(`linux-${processor}`);
    if (isItsOwn && existsSync(path)) agents[machine] = path;
  }
  return agents;
}
