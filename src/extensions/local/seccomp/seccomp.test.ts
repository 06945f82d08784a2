import { describe, expect, it } from 'vitest';
import { seccompProfile } from './seccomp.ts';

interface Rule {
  names: string[];
  action: string;
  args?: { index: number; value: number; valueTwo?: number; op: string }[];
}

const BIT_64 = (1n << 64n) - 1n;

/** Compares as libseccomp does: 64 bits, unsigned. */
function matches({ args = [] }: Rule, values: readonly bigint[]): boolean {
  return args.every(({ index, value, valueTwo = 0, op }) => {
    const given = (values[index] ?? 0n) & BIT_64;
    if (op === 'SCMP_CMP_GT') return given > BigInt(value);
    if (op === 'SCMP_CMP_EQ') return given === BigInt(value);
    return (given & BigInt(value)) === BigInt(valueTwo);
  });
}

/** Returns all actions of the rules for this call; none: the default. */
function answersTo(name: string, values: readonly number[] | readonly bigint[]): string[] {
  const rules = profile.syscalls.filter((rule) => rule.names.includes(name));
  const told = rules.filter((rule) => matches(rule, values.map(BigInt)));
  return [...new Set(told.map(({ action }) => action))];
}

/** Returns whether a sandbox may have the socket that the kernel makes of the three arguments. */
function mayHave(family: number, type: number, protocol: number): boolean {
  const plain = type & ~0x8_0800;
  const usual = { 1: [0, 6], 2: family === 2 ? [0, 17, 1] : [0, 17, 58] }[plain] ?? [];
  if (family === 1) return true;
  if (family === 16) return protocol === 0;
  return (family === 2 || family === 10) && usual.includes(protocol);
}

const profile = seccompProfile('x64') as { defaultAction: string; syscalls: Rule[] };
const allowed = profile.syscalls.filter(({ action }) => action === 'SCMP_ACT_ALLOW');

describe('seccompProfile', () => {
  it('seccompProfile refuses by default, and names no call twice without saying by which argument', () => {
    expect(profile.defaultAction).toBe('SCMP_ACT_ERRNO');
    const plain = profile.syscalls.filter(({ args }) => args === undefined).flatMap(({ names }) => names);
    expect(plain.filter((name, n) => plain.indexOf(name) !== n)).toEqual([]);
  });

  it('seccompProfile never allows calls that lead out of the sandbox', () => {
    const names = allowed.flatMap((rule) => rule.names);
    const never =
      'mount umount2 pivot_root unshare setns ptrace bpf perf_event_open io_uring_setup keyctl add_key userfaultfd open_by_handle_at init_module kexec_load reboot pidfd_getfd process_vm_readv clone3 open_tree move_mount fsopen io_setup';
    expect(names.filter((name) => never.split(' ').includes(name))).toEqual([]);
    expect(allowed.find(({ names: [name] }) => name === 'clone')?.args).toHaveLength(1);
  });

  it('ioctl: refuses to type into a terminal, another line discipline and the console, behind any upper bits', () => {
    const refused = [0x5412, 0x541c, 0x5423];
    const usual = [0x5401, 0x5402, 0x5413, 0x5414, 0x541b, 0x5421, 0x5422, 0x5424, 0x802c_542a, 0xffff_ffff];
    const near = refused.flatMap((request) => [request - 1, request + 1, request ^ 0x8000_0000]);
    for (const upper of [0n, 1n << 32n, 0xffff_ffffn << 32n]) {
      for (const request of refused)
        expect(answersTo('ioctl', [3n, upper | BigInt(request), 0n])).toEqual(['SCMP_ACT_ERRNO']);
      for (const request of [0, ...usual, ...near])
        expect(answersTo('ioctl', [3n, upper | BigInt(request >>> 0), 0n])).toEqual(['SCMP_ACT_ALLOW']);
    }
  });

  it('socket: only unix, TCP, UDP, ping and netlink routes are allowed, whatever the type and its flags', () => {
    const allowed = 'SCMP_ACT_ALLOW';
    const types = [...Array.from({ length: 18 }, (_, type) => type), 0x10 | 1];
    const flags = [0, 0x800, 0x8_0000, 0x8_0800];
    const families = [...Array.from({ length: 20 }, (_, family) => family), 29, 38, 40, 43, 47];
    const protocols = [
      ...Array.from({ length: 66 }, (_, protocol) => protocol),
      115,
      132,
      136,
      255,
      256,
      262,
    ];
    const wrong: string[] = [];
    for (const family of families)
      for (const type of types.flatMap((one) => flags.map((flag) => one | flag)))
        for (const protocol of protocols) {
          const answers = answersTo('socket', [family, type, protocol]);
          const right = mayHave(family, type, protocol)
            ? [allowed]
            : answers.filter((one) => one !== allowed);
          if (answers.length > 1 || answers.join() !== right.join())
            wrong.push(`socket(${family}, ${type}, ${protocol}): ${answers}`);
        }
    expect(wrong.slice(0, 10)).toEqual([]);
  });

  it('socket: bits that the kernel does not read open nothing', () => {
    const high = [1n << 32n, 0xffff_ffffn << 32n];
    const refused = [
      [2, 1, 262],
      [2, 2, 136],
      [10, 1, 262],
      [2, 5, 0],
      [2, 6, 0],
      [16, 3, 9],
      [17, 3, 0],
      [40, 1, 0],
    ];
    for (const [family = 0, type = 0, protocol = 0] of refused)
      for (let pick = 0; pick < 8; pick++)
        for (const bits of high) {
          const values = [family, type, protocol].map(
            (value, n) => BigInt(value) | (pick & (1 << n) ? bits : 0n),
          );
          expect(answersTo('socket', values)).not.toContain('SCMP_ACT_ALLOW');
        }
  });

  it('socketpair: only of the family unix, as the kernel makes both sockets of any other before it refuses', () => {
    for (let family = 0; family < 48; family++)
      expect([family, answersTo('socketpair', [family, 1, 0])]).toEqual([
        family,
        [family === 1 ? 'SCMP_ACT_ALLOW' : 'SCMP_ACT_ERRNO'],
      ]);
  });

  it('seccompProfile returns none for an unknown processor', () => {
    expect(seccompProfile('mips')).toBeNull();
  });
});
