import { KeyScope } from '../contract/tenancy.ts';
import type { Caller } from '../core/caller.ts';
import { DEFAULT_ORG, DEFAULT_WORKSPACE } from './installation.ts';

/** Whoever may open the unix socket owns the server's files already: the file mode is the authentication. */
export const LOCAL_CALLER: Caller = {
  actor: 'adm',
  workspaceId: DEFAULT_WORKSPACE,
  orgId: DEFAULT_ORG,
  keyId: null,
  scopes: new Set(KeyScope.options),
  local: true,
};
