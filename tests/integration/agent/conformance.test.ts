import { afterAll, beforeAll, describe, it } from 'vitest';
import { describeConformance } from '../../../src/testing/conformance.ts';
import { AgentExtension } from './agent-extension.ts';
import { canUnshare, startInit } from './running-agent.ts';

const runner = { describe: canUnshare() ? describe : describe.skip, it, beforeAll, afterAll };

describeConformance(runner as never, 'an agent as PID 1', {
  create: async () => ({ extension: new AgentExtension(() => startInit()), cleanup: async () => {} }),
});
