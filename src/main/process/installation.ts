import type { Clock } from '../../core/ports/clock.ts';
import type { Identifiers } from '../../core/ports/identifiers.ts';
import type { Store } from '../../core/ports/store/store.ts';

export const DEFAULT_ORG = 'default';
export const DEFAULT_WORKSPACE = 'default';

/** Returns the installation of the database: its own name, which is stamped on backend objects, and a first workspace. */
export async function prepareInstallation(
  store: Store,
  ids: Identifiers,
  clock: Clock,
): Promise<{ owner: string }> {
  return store.transaction('prepare', async (tx) => {
    let owner = await tx.setting('installation_id');
    if (owner === null) {
      owner = ids.next('sbxd');
      await tx.setSetting('installation_id', owner);
    }
    const createdAt = clock.now();
    if (!(await tx.tenancy.org(DEFAULT_ORG)))
      await tx.tenancy.insertOrg({ id: DEFAULT_ORG, name: 'Default', createdAt });
    if (!(await tx.tenancy.workspace(DEFAULT_WORKSPACE))) {
      await tx.tenancy.insertWorkspace({
        id: DEFAULT_WORKSPACE,
        orgId: DEFAULT_ORG,
        name: 'Default',
        createdAt,
      });
    }
    return { owner };
  });
}
