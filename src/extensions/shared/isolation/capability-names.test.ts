import { expect, it } from 'vitest';
import { capabilityNames } from './capability-names.ts';

it('capability names give the bits of a mask', () => {
  expect(capabilityNames('0000000000000000')).toEqual([]);
  expect(capabilityNames('00000000a00405fb')).toEqual([
    ...['chown', 'dac_override', 'fowner', 'fsetid', 'kill', 'setgid', 'setuid', 'setpcap'],
    ...['net_bind_service', 'sys_chroot', 'audit_write', 'setfcap'],
  ]);
  expect(capabilityNames('40000000000')).toEqual(['42']);
  expect(capabilityNames('not a mask')).toEqual([]);
});
