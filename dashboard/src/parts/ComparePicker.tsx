import { useState } from 'react';

import { useAnswer } from '../api/useAnswer.ts';
import type { JobsView, WorkRef } from '../api/views.ts';
import { refWord, sameRef } from '../format/job.ts';
import { Link } from '../router/Link.tsx';
import { Card } from './Card.tsx';
import { Search } from './Search.tsx';

/** Finds another job to set beside this one. */
export function ComparePicker({ of }: { of: WorkRef }) {
  const [words, setWords] = useState('');
  const { answer } = useAnswer<JobsView>(
    words ? `/jobs?q=${encodeURIComponent(words)}&limit=10` : '',
  );
  const others = answer?.rows.filter((row) => !sameRef(row.ref, of)) ?? [];
  return (
    <Card title="Beside another" about="two jobs side by side">
      <div className="filters" role="search" aria-label="another job">
        <Search label="name of another job" value={words} onSearch={setWords} />
      </div>
      <ul aria-live="polite">
        {others.map((row) => (
          <li key={refWord(row.ref)}>
            <Link
              className="q"
              to={`/jobs/compare?${new URLSearchParams({ a: refWord(of), b: refWord(row.ref) }).toString()}`}
            >
              {row.ref.name}
            </Link>{' '}
            <small>
              {row.ref.namespace} · {row.phase}
            </small>
          </li>
        ))}
        {answer && others.length === 0 && (
          <li className="sub">No other job is called like that.</li>
        )}
      </ul>
    </Card>
  );
}
