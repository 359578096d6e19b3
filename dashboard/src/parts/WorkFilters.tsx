import type { ReactNode } from 'react';

import type { Patch } from '../router/query.ts';
import { Search } from './Search.tsx';
import { Select } from './Select.tsx';

interface Props {
  query: URLSearchParams;
  set: (patch: Patch) => void;
  projects: readonly string[];
  children: ReactNode;
}

/** What every list of work is filtered by, and beside it what this one is. */
export function WorkFilters({ query, set, projects, children }: Props) {
  return (
    <div className="filters" role="search">
      <Search label="name or namespace" value={query.get('q') ?? ''} onSearch={(q) => set({ q })} />
      <Select
        label="project"
        all="all projects"
        value={query.get('project') ?? ''}
        choices={projects}
        onChoose={(project) => set({ project })}
      />
      {children}
    </div>
  );
}
