import { z } from 'zod';
import { AuditEntry } from '../../../contract/tenancy/audit.ts';
import { listAudit } from '../../../control/requests/audit.ts';
import { text, wholeNumber } from '../../parse/query-schemas.ts';
import { presentAudit } from '../../present/webhooks.ts';
import { json, route } from '../../route/route.ts';

const AuditPage = z
  .strictObject({ items: z.array(AuditEntry), next_cursor: z.string().nullable() })
  .meta({ id: 'AuditPage' });

export const auditRoutes = [
  route({
    method: 'GET',
    url: '/v1/audit',
    operationId: 'listAudit',
    summary: 'Changes and their callers, newest first. For administrators.',
    tag: 'audit',
    scope: 'read',
    query: z.strictObject({
      key_id: text(64).optional(),
      action: text(64).optional().describe('An operationId.'),
      target: text(512).optional(),
      cursor: wholeNumber(1, Number.MAX_SAFE_INTEGER)
        .optional()
        .describe('`next_cursor` of the page before.'),
      limit: wholeNumber(1, 1000).default(100),
    }),
    responses: { 200: json(AuditPage, 'Records of the audit log.') },
    async handler({ services, caller, query }) {
      // Records of this very server that are still in memory are written first.
      await services.audit.flush();
      const records = await listAudit(services.control, caller, {
        ...(query.key_id !== undefined && { keyId: query.key_id }),
        ...(query.action !== undefined && { action: query.action }),
        ...(query.target !== undefined && { target: query.target }),
        ...(query.cursor !== undefined && { before: query.cursor }),
        limit: query.limit,
      });
      const last = records.length === query.limit ? records.at(-1) : undefined;
      return {
        status: 200,
        body: { items: records.map(presentAudit), next_cursor: last ? String(last.seq) : null },
      };
    },
  }),
];
