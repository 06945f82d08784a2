import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * A plugin of the `docker` command in place of compose v2, which Debian 12 does not have: it takes exactly the options
 * that v2 has of those we use, refuses everything else as v2 does, and lets v1 do the work.
 */
export function installComposePlugin(dockerConfig: string): { calls(): string[] } {
  const directory = join(dockerConfig, 'cli-plugins');
  const log = join(dockerConfig, 'compose-calls');
  mkdirSync(directory, { recursive: true });
  writeFileSync(log, '');
  const path = join(directory, 'docker-compose');
  writeFileSync(
    path,
    `#!/bin/sh
if [ "$1" = docker-cli-plugin-metadata ]; then
  echo '{"SchemaVersion":"0.1.0","Vendor":"tests","Version":"v2.24.5","ShortDescription":"Docker Compose"}'
  exit 0
fi
[ "$1" = compose ] || exit 16
shift
printf '%s\\n' "$*" >>'${log}'
if [ "$1" = version ]; then echo 'Docker Compose version v2.24.5'; exit 0; fi
unknown() { echo "unknown flag: $1" >&2; exit 16; }
count=$#
while [ $count -gt 0 ]; do
  case $1 in
    -p|--project-name|--project-directory|--env-file|-f|--file|--profile) set -- "$@" "$1" "$2"; shift 2; count=$((count - 2));;
    -*) unknown "$1";;
    *) break;;
  esac
done
[ "$1" = up ] || { echo "unknown docker command: compose $1" >&2; exit 16; }
while [ $count -gt 0 ]; do
  case $1 in up|-d|--detach|--quiet-pull|--no-start) set -- "$@" "$1"; shift; count=$((count - 1));; *) unknown "$1";; esac
done
exec docker-compose "$@"
`,
  );
  chmodSync(path, 0o755);
  return { calls: () => readFileSync(log, 'utf8').trim().split('\n').filter(Boolean) };
}
