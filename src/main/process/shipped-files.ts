import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ProfileFolder } from '../../catalogue/profiles/profile-folder.ts';
import { PACKAGE_DIR } from '../../extensions/shared/own-programs.ts';

export function shippedProfiles(): ProfileFolder {
  return { path: join(PACKAGE_DIR, 'profiles'), priority: 0, label: 'profiles' };
}

export function shippedRegistry(): string {
  return join(PACKAGE_DIR, 'registry');
}

export function shippedPrices(): string {
  return join(shippedRegistry(), 'prices');
}

let page: string | undefined;

/** Path of the generated reference of the API. */
export function apiPage(): string {
  page ??= readFileSync(join(PACKAGE_DIR, 'docs', 'reference', 'api.html'), 'utf8');
  return page;
}

export function packageVersion(): string {
  return (JSON.parse(readFileSync(join(PACKAGE_DIR, 'package.json'), 'utf8')) as { version: string }).version;
}
