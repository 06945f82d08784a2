import { z } from 'zod';
import { CapabilityEntry } from '../../contract/capability-entry.ts';
import { registryEntry } from '../../control/profiles/registry-entry.ts';
import { json, jsonBody, route } from '../route.ts';

const RegistryFile = z
  .strictObject({ file: z.string().min(1).max(200), text: z.string().max(262_144) })
  .meta({ id: 'RegistryFile' });
const RegistryReport = z
  .strictObject({
    valid: z.boolean(),
    problems: z.array(z.strictObject({ file: z.string(), problem: z.string() })),
  })
  .meta({ id: 'RegistryReport' });
const tag = 'extensions';

export const registryRoutes = [
  route({
    method: 'GET',
    url: '/v1/registry',
    operationId: 'exportRegistry',
    summary: 'What this installation offers, in a form that a registry can index.',
    tag,
    scope: 'read',
    responses: { 200: json(CapabilityEntry, 'The entry.') },
    async handler({ services, caller }) {
      return { status: 200, body: await registryEntry(services.deps, caller, services.options.version) };
    },
  }),
  route({
    method: 'POST',
    url: '/v1/registry/validate',
    operationId: 'validateRegistryFile',
    summary: 'Check a price list before it is published. Nothing is stored.',
    tag,
    scope: 'read',
    body: jsonBody(RegistryFile, 'large'),
    responses: { 200: json(RegistryReport, 'What is wrong with it, if anything.') },
    async handler({ services, body }) {
      const problems = [...services.options.checkPriceList(body.file, body.text)];
      return { status: 200, body: { valid: problems.length === 0, problems } };
    },
  }),
];
