import { useEffect, useRef } from 'react';

import { logOut, useMe } from '../api/session.ts';
import { currentToken } from '../api/token.ts';
import { counted } from '../format/number.ts';
import { useAddress } from '../router/address.ts';
import { Link } from '../router/Link.tsx';
import { Live } from './Live.tsx';

const PAGES = [
  ['/', 'Overview'],
  ['/gpus', 'GPUs'],
  ['/queue', 'Queue'],
  ['/jobs', 'Jobs'],
  ['/projects', 'Projects'],
  ['/sweeps', 'Sweeps'],
] as const;

/** The pages, who reads, and whether it is live. */
export function Header() {
  const { path } = useAddress();
  const pages = useRef<HTMLElement>(null);
  // Where it is narrow the pages scroll, and the one that is open is to be seen.
  useEffect(() => {
    const current = pages.current?.querySelector('[aria-current]');
    current?.scrollIntoView({ inline: 'center', block: 'nearest' });
  }, [path]);
  return (
    <header className="bar">
      <b>gpu-scheduler</b>
      <nav aria-label="pages" ref={pages}>
        {PAGES.map(([to, words]) => (
          <Link key={to} to={to} aria-current={isCurrent(path, to) ? 'page' : undefined}>
            {words}
          </Link>
        ))}
      </nav>
      <Who />
      <Live />
    </header>
  );
}

function isCurrent(path: string, to: string): boolean {
  if (to === '/') return path === '/' || path === '/overview';
  return path === to || path.startsWith(`${to}/`);
}

function Who() {
  const me = useMe();
  const sees = me.all ? 'all namespaces' : counted(me.namespaces.length, 'namespace');
  return (
    <details className="who">
      <summary>{sees}</summary>
      <div>
        <span>
          <b>{me.user}</b>
        </span>
        <span className="sub">
          {me.all
            ? 'May see all namespaces.'
            : `May see ${me.namespaces.join(', ') || 'no namespace'}.`}
        </span>
        <span className="sub">gpu-scheduler {me.version}</span>
        {currentToken() && (
          <button type="button" onClick={() => logOut('')}>
            Forget my token
          </button>
        )}
      </div>
    </details>
  );
}
