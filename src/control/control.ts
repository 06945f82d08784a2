import type { Sessions } from './backends/sessions.ts';
import type { Activity } from './lifecycle/activity.ts';
import type { Driver } from './lifecycle/driver.ts';
import type { ControlPorts } from './ports/control-ports.ts';

/** The parameter of every verb: the ports, the driver of the lifecycle, and what is open and in use. */
export interface Control extends ControlPorts {
  readonly driver: Driver;
  readonly sessions: Sessions;
  readonly activity: Activity;
}
