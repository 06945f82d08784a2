import { z } from 'zod';
import { ProfileEntry, ProfileIssue, ProfileVerdict } from '../../../contract/profiles/profile.ts';
import { ProfileRef } from '../../../contract/values/ids.ts';
import { getProfile, listProfiles } from '../../../control/profiles/list-profiles.ts';
import { pushProfile } from '../../../control/profiles/push-profile.ts';
import { validateProfile } from '../../../control/profiles/validate-profile.ts';
import { flag } from '../../parse/query-schemas.ts';
import { presentVerdict } from '../../present/presenter.ts';
import { json, route } from '../../route/route.ts';

const ProfileList = z
  .strictObject({ items: z.array(ProfileEntry), issues: z.array(ProfileIssue) })
  .meta({ id: 'ProfileList' });
const tag = 'profiles';

export const profileRoutes = [
  route({
    method: 'GET',
    url: '/v1/profiles',
    operationId: 'listProfiles',
    summary: 'List every version of every profile, and what is wrong with those that cannot be had.',
    tag,
    scope: 'read',
    responses: { 200: json(ProfileList, 'The catalogue.') },
    async handler({ services, caller }) {
      const { profiles, issues } = await listProfiles(services.control, caller);
      const items = profiles.map((view) => services.present.profile(view));
      const body = { items, issues: [...issues] };
      return { status: 200, body };
    },
  }),
  route({
    method: 'GET',
    url: '/v1/profiles/{profile}',
    operationId: 'getProfile',
    summary: 'Show a profile: its latest version, or the one named as `profile.name@1.0.0`.',
    tag,
    scope: 'read',
    params: z.strictObject({ profile: ProfileRef }),
    responses: { 200: json(ProfileEntry, 'The profile.') },
    async handler({ services, caller, params }) {
      return {
        status: 200,
        body: services.present.profile(await getProfile(services.control, caller, { ref: params.profile })),
      };
    },
  }),
  route({
    method: 'POST',
    url: '/v1/profiles',
    operationId: 'pushProfile',
    summary:
      'Publish a version of a profile, as JSON or YAML, or only check it. A published version never changes.',
    tag,
    scope: 'profiles',
    query: z.strictObject({
      validate: flag().default(false).describe('Check it as a push would, and store nothing.'),
    }),
    body: { kind: 'document', limit: 'jsonBytes', values: 'jsonValues' } as const,
    responses: {
      200: json(
        z.union([ProfileEntry, ProfileVerdict]),
        'The very same profile was published before; or it is valid, when only that was asked.',
      ),
      201: json(ProfileEntry, 'It is published.'),
    },
    async handler({ services, caller, query, body }) {
      const { control, options, present } = services;
      const { profile, source } = options.parseProfile(body);
      if (query.validate) {
        const verdict = await validateProfile(control, caller, { profile, source });
        return { status: 200, body: presentVerdict(verdict) };
      }
      const { created } = await pushProfile(control, caller, { profile, source });
      const view = await getProfile(control, caller, { ref: `${profile.id}@${profile.version}` });
      return { status: created ? 201 : 200, body: present.profile(view) };
    },
  }),
];
