import { z } from 'zod';
import { SandboxerError } from '../../../contract/errors/errors.ts';
import { ExtensionEntry } from '../../../contract/extensions/extension.ts';
import { ExtensionId } from '../../../contract/values/ids.ts';
import { json, route } from '../../route/route.ts';

const ExtensionList = z.strictObject({ items: z.array(ExtensionEntry) }).meta({ id: 'ExtensionList' });
const tag = 'extensions';

export const extensionRoutes = [
  route({
    method: 'GET',
    url: '/v1/extensions',
    operationId: 'listExtensions',
    summary: 'List the backends with their capabilities, prices and health.',
    tag,
    scope: 'read',
    responses: { 200: json(ExtensionList, 'The backends.') },
    async handler({ services }) {
      const items = services.control.extensions
        .all()
        .map((extension) => services.present.extension(extension, services.control));
      return { status: 200, body: { items } };
    },
  }),
  route({
    method: 'GET',
    url: '/v1/extensions/{extension}',
    operationId: 'getExtension',
    summary: 'Show one backend.',
    tag,
    scope: 'read',
    params: z.strictObject({ extension: ExtensionId }),
    responses: { 200: json(ExtensionEntry, 'The backend.') },
    async handler({ services, params }) {
      const extension = services.control.extensions.get(params.extension);
      if (extension) return { status: 200, body: services.present.extension(extension, services.control) };
      throw new SandboxerError('SBX_NOT_FOUND', `There is no extension "${params.extension}".`, {
        remedy: 'List the extensions to see which exist.',
      });
    },
  }),
];
