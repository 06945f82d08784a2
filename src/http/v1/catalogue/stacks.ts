import { CreateSandboxRequest } from '../../../contract/sandboxes/sandbox.ts';
import { StackPlan } from '../../../contract/sandboxes/stack-plan.ts';
import { planStack } from '../../../control/sandboxes/plan-stack.ts';
import { json, jsonBody, route } from '../../route/route.ts';

export const stackRoutes = [
  route({
    method: 'POST',
    url: '/v1/stacks/plan',
    operationId: 'planStack',
    summary: 'Plan of a compose stack, without creating it: the file for the engine, findings and notes.',
    tag: 'routes',
    scope: 'sandboxes',
    body: jsonBody(CreateSandboxRequest),
    responses: { 200: json(StackPlan, 'The plan. A stack that would be refused is one, too.') },
    async handler({ services, caller, body, exchange }) {
      return {
        status: 200,
        body: await planStack(services.control, caller, { request: body, signal: exchange.signal }),
      };
    },
  }),
];
