/** Describes how a container is reached: written to its labels when it is made, and read from them later. */
import type { ChannelKind } from '../containers/container-config.ts';
import { LABEL } from '../containers/labels.ts';
import { lost } from '../engine/engine-error.ts';

export interface Reach {
  readonly channel: ChannelKind;
  readonly door: string;
  readonly keep: boolean;
  readonly secrets: boolean;
  readonly isolation: string;
}

/** Name of a door as `doorOf` makes it: never a path. */
const DOOR = /^[0-9a-f]{16}$/;

export function isDoor(name: string): boolean {
  return DOOR.test(name);
}

export function channelIn(label: string | undefined): ChannelKind {
  return label === 'relay' || label === 'exec' ? label : 'call';
}

export function reachOf(labels: Readonly<Record<string, string>>): Reach {
  const door = labels[LABEL.door] ?? '';
  if (!isDoor(door)) throw lost('The engine says of its container what we have never written.');
  return {
    channel: channelIn(labels[LABEL.channel]),
    door,
    keep: labels[LABEL.keep] === 'yes',
    secrets: labels[LABEL.secrets] === 'yes',
    isolation: labels[LABEL.isolation] ?? 'container',
  };
}
