import { z } from 'zod';
import { CapabilityEntry } from '../../../contract/extensions/capability-entry.ts';
import { CapabilityStatus } from '../../../contract/extensions/federated-capability.ts';
import { boundedList } from '../../../contract/values/bounded.ts';
import { checkRegistry, publishRegistry } from '../../../control/profiles/publish-registry.ts';
import { registryEntry } from '../../../control/profiles/registry-entry.ts';
import { json, jsonBody, route } from '../../route/route.ts';

const RegistryFile = z
  .strictObject({ file: z.string().min(1).max(1_000), text: z.string().max(262_144) })
  .meta({ id: 'RegistryFile' });
const MOST_FILES = 200;
const RegistryFiles = z
  .strictObject({
    files: boundedList(z.array(RegistryFile).min(1).max(MOST_FILES), MOST_FILES)
      .optional()
      .describe('Without it, the registry of this installation is checked.'),
  })
  .meta({ id: 'RegistryFiles' });
const RegistryReport = z
  .strictObject({
    valid: z.boolean(),
    files: z.number().int().describe('How many were checked.'),
    problems: z.array(z.strictObject({ file: z.string(), problem: z.string() })),
  })
  .meta({ id: 'RegistryReport' });
const RegistryPublication = z
  .strictObject({
    capability: z.string(),
    status: CapabilityStatus,
    target: z.string().describe('The hub or the directory.'),
    outcome: z.enum(['registered', 'updated', 'written']),
    files: z.number().int(),
  })
  .meta({ id: 'RegistryPublication' });
const tag = 'extensions';

export const registryRoutes = [
  route({
    method: 'GET',
    url: '/v1/registry',
    operationId: 'exportRegistry',
    summary: 'Capabilities of this installation, in a form that a registry can index.',
    tag,
    scope: 'read',
    responses: { 200: json(CapabilityEntry, 'The entry.') },
    async handler({ services, caller }) {
      return {
        status: 200,
        body: await registryEntry(services.control, caller, { version: services.options.version }),
      };
    },
  }),
  route({
    method: 'POST',
    url: '/v1/registry/validate',
    operationId: 'validateRegistryFile',
    summary:
      'Check files of a registry as a federation would: each by its form, and all of them against each other. Nothing is stored.',
    tag,
    scope: 'read',
    body: jsonBody(RegistryFiles, 'large'),
    responses: { 200: json(RegistryReport, 'What is wrong with them, if anything.') },
    async handler({ services, caller, body }) {
      const report = await checkRegistry(services.control, caller, { files: body.files ?? null });
      const problems = [...report.problems];
      return { status: 200, body: { valid: problems.length === 0, files: report.files, problems } };
    },
  }),
  route({
    method: 'POST',
    url: '/v1/registry/publish',
    operationId: 'publishRegistry',
    summary: 'Publish the capability entry of this installation to reuse-surface, as the configuration says.',
    tag,
    scope: 'server',
    responses: { 200: json(RegistryPublication, 'Where it is now.') },
    async handler({ services, exchange, caller }) {
      return {
        status: 200,
        body: await publishRegistry(services.control, caller, { signal: exchange.signal }),
      };
    },
  }),
];
