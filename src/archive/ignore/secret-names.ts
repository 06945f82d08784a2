import { IgnoreRules } from './ignore-rules.ts';

/** Names of files that mostly hold secrets. They are left out unless they are asked for. */
export const SECRET_NAMES = [
  '.env',
  '.env.*',
  '!.env.example',
  '!.env.sample',
  '!.env.template',
  '!.env.dist',
  '.envrc.local',
  '.netrc',
  '_netrc',
  '.npmrc',
  '.pypirc',
  '.git-credentials',
  '.vault-token',
  '.htpasswd',
  '.aws/',
  '.azure/',
  '.gcloud/',
  '.kube/',
  '.ssh/',
  '.gnupg/',
  '.terraform.d/',
  '**/.docker/config.json',
  'id_rsa',
  'id_dsa',
  'id_ecdsa',
  'id_ed25519',
  '*.p12',
  '*.pfx',
  '*.keystore',
  '*.jks',
] as const;

const RULES = IgnoreRules.none.with('', SECRET_NAMES.join('\n'));

/** Matches in any case: some file systems ignore it. */
export function looksSecret(path: string): boolean {
  return RULES.ignores(path.toLowerCase(), true);
}
