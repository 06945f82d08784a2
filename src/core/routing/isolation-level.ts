import type { CapabilityVector } from '../../contract/extensions/capability.ts';
import { IsolationLevel } from '../../contract/extensions/capability.ts';

const ORDER = IsolationLevel.options;

/** The weakest of those offered that is as strong as was asked for; `null` when none is. */
export function levelServed(
  asked: IsolationLevel,
  offered: readonly IsolationLevel[],
): IsolationLevel | null {
  return ORDER.slice(ORDER.indexOf(asked)).find((level) => offered.includes(level)) ?? null;
}

/** Returns the capabilities of a sandbox that was asked for at this level. */
export function capabilitiesAt(vector: CapabilityVector, asked: IsolationLevel): CapabilityVector {
  const level = levelServed(asked, vector.isolation);
  const { resources, memory_overrun } = (level !== null && vector.levels?.[level]) || {};
  return {
    ...vector,
    ...(resources === undefined ? {} : { resources }),
    ...(memory_overrun === undefined ? {} : { memory_overrun }),
  };
}
