import type { Requirements } from '../../contract/extensions/capability.ts';
import type { Exclusion } from '../../contract/routing/route.ts';
import type { ExtensionHeader } from '../ports/extension.ts';
import type { HostRecord } from './host.ts';
import { LOCAL_HOST } from './host.ts';

/** The label of a host that names its region. */
const REGION_LABEL = 'region';

type Wanted = Pick<Requirements, 'region' | 'data_residency'>;

/** `eu` covers `eu` and `eu-west-1`. */
function staysIn(residency: string, regions: readonly string[]): boolean {
  return regions.length > 0 && regions.every((one) => one === residency || one.startsWith(`${residency}-`));
}

/** Returns the reasons why a backend in these regions does not meet the requirements; a backend that names none meets none. */
export function regionMisfits({ region, data_residency }: Wanted, regions: readonly string[]): Exclusion[] {
  const misfits: Exclusion[] = [];
  if (region !== undefined && !regions.includes(region)) {
    const offers = regions.join(', ') || 'none by name';
    misfits.push({ code: 'region', detail: `needs region ${region}, offers ${offers}` });
  }
  if (data_residency !== undefined && !staysIn(data_residency, regions)) {
    const uses = regions.join(', ') || 'regions it does not name';
    misfits.push({ code: 'data_residency', detail: `must stay in ${data_residency}, may use ${uses}` });
  }
  return misfits;
}

function labelOf(host: HostRecord | undefined): readonly string[] {
  const region = host?.spec.labels[REGION_LABEL];
  return region === undefined ? [] : [region];
}

/**
 * Regions in which a backend may run a sandbox: those that it declares, else the label of the server's machine for a backend
 * that runs there. `null` for a backend on registered hosts, where placement judges each host.
 */
export function regionsOf(header: ExtensionHeader, hosts: readonly HostRecord[]): readonly string[] | null {
  const { regions } = header.capabilities;
  if (header.runsOn === 'hosts') return null;
  if (regions.length > 0 || header.endsWithMachine !== true) return regions;
  return labelOf(hosts.find(({ id }) => id === LOCAL_HOST));
}

/**
 * The region in which a sandbox is: the label of its host, else the one region of its backend, else the one that was asked for
 * and that the backend declares. `null` where none is known.
 */
export function regionOf(header: ExtensionHeader, host: HostRecord | null, wanted: Wanted): string | null {
  const regions = regionsOf(header, host === null ? [] : [host]) ?? labelOf(host ?? undefined);
  const [only, ...others] = regions;
  if (only !== undefined && others.length === 0) return only;
  const { region } = wanted;
  return region !== undefined && regions.includes(region) ? region : null;
}

/** The reason why the label of a host does not meet the requirements, with the label that would; `null` when it does. */
export function hostRegionMisfit(host: HostRecord, wanted: Wanted): string | null {
  const [first] = regionMisfits(wanted, labelOf(host));
  if (first === undefined) return null;
  const [label] = labelOf(host);
  const asked = wanted.region ?? wanted.data_residency;
  const stands = label === undefined ? 'has no label region' : `has the label region=${label}`;
  return `${stands}, ${asked} is needed (sandboxer hosts add --label region=${asked})`;
}
