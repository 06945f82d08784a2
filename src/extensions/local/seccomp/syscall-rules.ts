/** Rules of an OCI seccomp profile: which values of a system call's arguments are allowed, or refused with which error. */

export const EPERM = 1;
/** Mask of the 32 bits that the kernel reads of most arguments. */
export const ALL_BITS = 0xffff_ffff;

export interface Argument {
  readonly index: number;
  readonly value: number;
  readonly valueTwo?: number;
  readonly op: 'SCMP_CMP_EQ' | 'SCMP_CMP_GT' | 'SCMP_CMP_MASKED_EQ';
}

export interface SyscallRule {
  readonly names: readonly string[];
  readonly action: 'SCMP_ACT_ALLOW' | 'SCMP_ACT_ERRNO';
  readonly errnoRet?: number;
  readonly args?: readonly Argument[];
}

/** Compares all 64 bits: a value with bits above the 32 that the kernel reads matches no `is`. */
export const is = (index: number, value: number): Argument => ({ index, value, op: 'SCMP_CMP_EQ' });
export const above = (index: number, value: number): Argument => ({ index, value, op: 'SCMP_CMP_GT' });
/** Compares only the bits of the mask. */
export const masked = (index: number, mask: number, value: number): Argument => ({
  index,
  value: mask,
  valueTwo: value,
  op: 'SCMP_CMP_MASKED_EQ',
});

/**
 * Returns comparisons for all numbers from `first` to `last`, as few masks: each block begins at a multiple of its own length.
 */
export function between(index: number, bits: number, first: number, last: number): Argument[] {
  const blocks: Argument[] = [];
  for (let at = first; at <= last; ) {
    let length = 1;
    while (at % (length * 2) === 0 && at + length * 2 - 1 <= last) length *= 2;
    blocks.push(masked(index, (bits & ~(length - 1)) >>> 0, at));
    at += length;
  }
  return blocks;
}

export const allow = (names: readonly string[], args?: readonly Argument[]): SyscallRule => ({
  names,
  action: 'SCMP_ACT_ALLOW',
  ...(args && { args }),
});

export const refuse = (
  names: readonly string[],
  errnoRet: number,
  args?: readonly Argument[],
): SyscallRule => ({ names, action: 'SCMP_ACT_ERRNO', errnoRet, ...(args && { args }) });
