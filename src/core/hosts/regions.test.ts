import { describe, expect, it } from 'vitest';
import type { ExtensionHeader } from '../ports/extension.ts';
import type { HostRecord } from './host.ts';
import { regionMisfits, regionOf, regionsOf } from './regions.ts';

const labelled = (id: string, labels: Record<string, string>) => ({ id, spec: { labels } }) as HostRecord;
const hosts = [labelled('local', { region: 'eu' }), labelled('far', { region: 'us' })];

function header(regions: readonly string[], over: Partial<ExtensionHeader> = {}): ExtensionHeader {
  return { id: 'ext.a', capabilities: { regions, hosting: 'self-hosted' }, ...over } as ExtensionHeader;
}

describe('regions of a backend', () => {
  it.each([
    ['a vendor: as it declares', header(['us', 'eu']), ['us', 'eu']],
    ['on the server’s machine: the label of that machine', header([], { endsWithMachine: true }), ['eu']],
    ['on that machine, with regions of its own: those', header(['de'], { endsWithMachine: true }), ['de']],
    ['an engine elsewhere of which nothing is said: none', header([]), []],
    ['on registered hosts: left to placement', header([], { runsOn: 'hosts' }), null],
  ])('%s', (_what, of, regions) => {
    expect(regionsOf(of, hosts)).toEqual(regions);
  });

  it('a machine without a label: in no region', () => {
    expect(regionsOf(header([], { endsWithMachine: true }), [labelled('local', {})])).toEqual([]);
    expect(regionMisfits({ region: 'eu' }, [])).toMatchObject([{ code: 'region' }]);
    expect(regionMisfits({ data_residency: 'eu' }, ['eu-west-1', 'us'])).toMatchObject([
      { code: 'data_residency' },
    ]);
    expect(regionMisfits({ region: 'eu', data_residency: 'eu' }, ['eu'])).toEqual([]);
  });
});

describe('the region of a sandbox', () => {
  const [local, far] = hosts as [HostRecord, HostRecord];
  it.each([
    ['a registered host: its label', header([], { runsOn: 'hosts' }), far, {}, 'us'],
    ['the server’s machine: its label', header([], { endsWithMachine: true }), local, {}, 'eu'],
    ['a vendor of one region: that', header(['de']), null, {}, 'de'],
    ['a vendor of several: the one that was asked for', header(['de', 'us']), null, { region: 'us' }, 'us'],
    ['a vendor of several, none asked for: not known', header(['de', 'us']), null, {}, null],
    ['a host without a label: not known', header([], { runsOn: 'hosts' }), labelled('x', {}), {}, null],
  ])('%s', (_what, of, host, wanted, region) => {
    expect(regionOf(of, host, wanted)).toBe(region);
  });
});
