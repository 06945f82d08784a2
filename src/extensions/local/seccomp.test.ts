import { describe, expect, it } from 'vitest';
import { seccompProfile } from './seccomp.ts';

interface Rule {
  names: string[];
  action: string;
  args?: { index: number; value: number; op: string }[];
}

const profile = seccompProfile('x64') as { defaultAction: string; syscalls: Rule[] };
const allowed = profile.syscalls.filter(({ action }) => action === 'SCMP_ACT_ALLOW');

describe('seccompProfile', () => {
  it('refuses by default, and names no call twice without saying by which argument', () => {
    expect(profile.defaultAction).toBe('SCMP_ACT_ERRNO');
    const plain = profile.syscalls.filter(({ args }) => args === undefined).flatMap(({ names }) => names);
    expect(plain.filter((name, n) => plain.indexOf(name) !== n)).toEqual([]);
  });

  it('never allows what leads out', () => {
    const names = allowed.flatMap((rule) => rule.names);
    const never =
      'mount umount2 pivot_root unshare setns ptrace bpf perf_event_open io_uring_setup keyctl add_key userfaultfd open_by_handle_at init_module kexec_load reboot pidfd_getfd process_vm_readv clone3 open_tree move_mount fsopen io_setup';
    expect(names.filter((name) => never.split(' ').includes(name))).toEqual([]);
    expect(allowed.find(({ names: [name] }) => name === 'clone')?.args).toHaveLength(1);
  });

  it('has none where it does not know the processor', () => {
    expect(seccompProfile('mips')).toBeNull();
  });
});
