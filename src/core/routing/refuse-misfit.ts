import { SandboxerError } from '../../contract/errors/errors.ts';
import { regionMisfits } from '../hosts/regions.ts';
import type { ExtensionHeader, ProvisionSpec } from '../ports/extension.ts';
import { headerMisfits } from './header-misfits.ts';
import { requireUsableInputs } from './usable-inputs.ts';

/**
 * Refuses what the header does not declare, before anything is made, also for a call that bypasses routing. The first line of
 * every `provision`.
 */
export function refuseMisfit(header: ExtensionHeader, spec: ProvisionSpec): void {
  const extras = { creation: 'not_created', backend: header.id } as const;
  const { capabilities } = header;
  const undeliverable = spec.secrets.filter(({ delivery }) => !capabilities.credentials.includes(delivery));
  if (undeliverable.length > 0) {
    const list = undeliverable.map(({ name, delivery }) => `${name} by ${delivery}`).join(', ');
    throw new SandboxerError('SBX_SECRET_DELIVERY', `${header.id} cannot deliver ${list}.`, extras);
  }
  requireUsableInputs([header], { ...spec.recipe, pinnedExtension: null });
  // Where hosts declare regions by their labels, placement has judged them.
  const declares = capabilities.hosting === 'saas' || capabilities.regions.length > 0;
  const [first] = [
    ...headerMisfits(header, spec.recipe),
    ...(declares ? regionMisfits(spec.recipe.requires, capabilities.regions) : []),
  ];
  if (first === undefined) return;
  const code = first.code === 'credentials' ? 'SBX_SECRET_DELIVERY' : 'SBX_UNSUPPORTED';
  throw new SandboxerError(code, `${header.id} ${first.detail}.`, extras);
}
