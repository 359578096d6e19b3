import { type ReactNode, useEffect } from 'react';

import { useMe } from '../api/session.ts';
import type { Refusal } from '../api/client.ts';
import type { Lead as Words, Me } from '../api/views.ts';
import { counted } from '../format/number.ts';
import { Link } from '../router/Link.tsx';
import { Lead } from './Lead.tsx';
import { State } from './State.tsx';

interface Props {
  title: string;
  crumb?: ReactNode;
  lead: Words | null;
  refusal: Refusal | null;
  /** Whether its parts name whose they are, so that a reader who may not see all is told so. */
  names?: boolean;
  children: ReactNode;
}

/** What all pages have: a heading, the sentence, and a word where there is nothing to show. */
export function Page({ title, crumb, lead, refusal, names = true, children }: Props) {
  const me = useMe();

  useEffect(() => {
    document.title = `${title} · gpu-scheduler`;
  }, [title]);
  return (
    <main id="main" tabIndex={-1}>
      {crumb !== undefined && <p className="crumb">{crumb}</p>}
      <h1 className="vh">{title}</h1>
      {refusal && <Refused refusal={refusal} />}
      {!refusal && !lead && <p className="lead dim">…</p>}
      {!refusal && lead && (
        <>
          <Lead lead={lead} />
          {names && !me.all && <p className="note">{hidden(me)}</p>}
          {children}
        </>
      )}
    </main>
  );
}

/** What a reader who may see some namespaces is not shown. */
export function hidden(me: Me): string {
  if (me.namespaces.length === 0) {
    return 'You may see no namespace: what runs is counted in the sums here, without names.';
  }
  const which =
    me.namespaces.length <= 3
      ? `the work in ${me.namespaces.join(', ')}`
      : `the work in ${counted(me.namespaces.length, 'namespace')}`;
  return `You see ${which}; what runs elsewhere is counted in the sums here, without names.`;
}

function Refused({ refusal }: { refusal: Refusal }) {
  const help =
    refusal.status === 403
      ? 'Ask an administrator for the right to list gpujobs there.'
      : 'It may have been deleted, or it is in a namespace that you may not see.';
  return (
    <State
      words={<span className="answer">{refusal.message}</span>}
      help={
        <>
          {refusal.status === 403 || refusal.status === 404 ? `${help} ` : ''}
          <Link to="/" className="q">
            To the overview
          </Link>
        </>
      }
    />
  );
}
