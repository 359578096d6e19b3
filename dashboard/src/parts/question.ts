import type { WhatIfQuestion } from '../api/views.ts';

export const KINDS = [
  ['nodes', 'nodes'],
  ['quota', 'a quota'],
  ['job', 'a job'],
] as const;
export type Kind = (typeof KINDS)[number][0];

export interface Draft {
  readonly manifest: string;
  readonly likeNode: string;
  readonly nodes: string;
  readonly project: string;
  readonly quota: string;
}

/** What is asked; null: there is something missing. */
export function questionOf(
  kind: Kind,
  draft: Draft,
  someNode: string,
  someProject: string,
): WhatIfQuestion | null {
  const none: WhatIfQuestion = { manifest: '', likeNode: '', nodes: 0, project: '', quota: null };
  const nodes = Number(draft.nodes);
  const quota = Number(draft.quota);
  switch (kind) {
    case 'job':
      return draft.manifest.trim() ? { ...none, manifest: draft.manifest } : null;
    case 'nodes': {
      const likeNode = draft.likeNode || someNode;
      return likeNode && Number.isInteger(nodes) && nodes > 0 ? { ...none, likeNode, nodes } : null;
    }
    case 'quota': {
      const project = draft.project || someProject;
      return project && draft.quota.trim() && quota >= 0 ? { ...none, project, quota } : null;
    }
  }
}
