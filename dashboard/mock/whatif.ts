import type { WhatIfQuestion, WhatIfAnswer } from '../src/api/views.ts';
import { lead } from './build.ts';
import type { World } from './world.ts';

/** An answer of the shape that the planner gives; a manifest that is none is refused. */
export function whatIf(world: World, asked: WhatIfQuestion): WhatIfAnswer | string {
  if (asked.manifest && !/kind:/.test(asked.manifest))
    return 'manifest: line 1: this is no object of Kubernetes';
  const waits = world.queue.filter((row) => row.reason !== 'WaitingForQuota').slice(0, 4);
  const what = asked.manifest
    ? 'It would start at once'
    : asked.nodes
      ? `With ${asked.nodes} more like ${asked.likeNode}, ${waits.length} of ${world.queue.length} would start at once`
      : `With a quota of ${asked.quota ?? 0}, ${waits.length} of ${world.queue.length} would start at once`;
  return {
    lead: lead(
      `${what}.`,
      'The others would go on waiting for quota of [vision](/projects/vision).',
    ),
    rows: [
      ...waits.map((row) => ({
        name: row.ref.name,
        result: row.mends ? row.reason : 'starts now',
        message: row.mends ? row.message : '',
        pods: row.pods,
      })),
      {
        name: 'vit-large',
        result: 'WaitingForQuota',
        message: 'vision uses all of its limit 18',
        pods: 1,
      },
    ],
    omitted: 6,
  };
}
