import { buildCatalogue, readProfileFolders } from '../../catalogue/load-catalogue.ts';
import type { ProfileFiles, ProfileFolder } from '../../catalogue/profiles/profile-folder.ts';
import type { ProfileCatalogue } from '../../core/ports/catalogue.ts';
import type { PushedProfile } from '../../core/ports/store/profile-store.ts';
import type { Store } from '../../core/ports/store/store.ts';

/** Catalogue of each workspace: the folders common to all, and the profiles that the workspace itself pushed. */
export class WorkspaceCatalogues {
  readonly #store: Store;
  readonly #files: ProfileFiles;
  #pushed: readonly PushedProfile[] = [];
  readonly #built = new Map<string, ProfileCatalogue>();

  private constructor(store: Store, files: ProfileFiles) {
    this.#store = store;
    this.#files = files;
  }

  static async open(store: Store, folders: readonly ProfileFolder[]): Promise<WorkspaceCatalogues> {
    const catalogues = new WorkspaceCatalogues(store, await readProfileFolders(folders));
    await catalogues.refresh();
    return catalogues;
  }

  of(workspaceId: string): ProfileCatalogue {
    const built = this.#built.get(workspaceId);
    if (built) return built;
    const own = this.#pushed.filter((pushed) => pushed.workspaceId === workspaceId);
    const catalogue = buildCatalogue(this.#files, own);
    this.#built.set(workspaceId, catalogue);
    return catalogue;
  }

  async refresh(): Promise<void> {
    this.#pushed = await this.#store.read('profiles', (tx) => tx.profiles.list(null));
    this.#built.clear();
  }
}
