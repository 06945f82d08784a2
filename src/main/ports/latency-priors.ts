import { latencyPriorOf, loadPriceList } from '../../catalogue/price-list.ts';
import type { HealthBook } from '../../core/health/health-book.ts';
import type { Extension } from '../../core/ports/extension.ts';
import { shippedPrices } from '../process/shipped-files.ts';

/** Sets latencies that others measured of a vendor, until our own exist. Nothing is read without a vendor. */
export async function learnPriors(health: HealthBook, extensions: readonly Extension[]): Promise<void> {
  const vendors = extensions.filter(({ header }) => header.capabilities.hosting === 'saas');
  if (vendors.every(({ header }) => header.capabilities.demo)) return;
  const { entries } = await loadPriceList(shippedPrices());
  for (const { header } of vendors) {
    const entry = entries.find(({ extension }) => extension === header.id.split('#')[0]);
    const prior = entry && latencyPriorOf(entry);
    if (prior) health.setPrior(header.id, prior);
  }
}
