import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { checkRegistryFiles } from '../../catalogue/registry-check.ts';
import type {
  PublishedRegistry,
  RegistryFile,
  RegistryPublisher,
} from '../../core/ports/published-registry.ts';
import { ReuseSurfaceFolder, ReuseSurfaceHub } from '../../sinks/reuse-surface.ts';
import type { Config } from '../config/config.ts';
import { shippedRegistry } from '../process/shipped-files.ts';
import { userAgent } from './webhooks.ts';

/** Returns every file of a registry folder, in the order of their names. */
export async function registryFiles(folder: string): Promise<RegistryFile[]> {
  const names = await readdir(folder, { recursive: true });
  const files = names.filter((name) => /\.(?:md|yaml)$/.test(name) && path.basename(name) !== 'README.md');
  return Promise.all(
    files.sort().map(async (file) => ({ file, text: await readFile(path.join(folder, file), 'utf8') })),
  );
}

function publisherOf(config: Config['reuse_surface']): RegistryPublisher | null {
  if (config === null) return null;
  const { url, index_url, directory } = config;
  if (directory !== undefined) return new ReuseSurfaceFolder(directory);
  if (url === undefined || index_url === undefined) return null;
  return new ReuseSurfaceHub({
    url,
    indexUrl: index_url,
    tokenFile: config.token_file,
    userAgent: userAgent(),
    timeoutMs: config.timeout,
  });
}

/** Returns the registry that comes with this installation, as the configuration has it published. */
export function publishedRegistry(config: Config['reuse_surface']): PublishedRegistry {
  return {
    files: () => registryFiles(shippedRegistry()),
    check: checkRegistryFiles,
    publisher: publisherOf(config),
  };
}
