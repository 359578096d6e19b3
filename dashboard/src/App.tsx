import { type ReactNode, useEffect, useRef } from 'react';

import { useSession } from './api/session.ts';
import { Compare } from './pages/Compare.tsx';
import { DevicePage } from './pages/Device.tsx';
import { GpusPage } from './pages/Gpus.tsx';
import { JobPage } from './pages/Job.tsx';
import { JobsPage } from './pages/Jobs.tsx';
import { Login } from './pages/Login.tsx';
import { Nowhere } from './pages/Nowhere.tsx';
import { OverviewPage } from './pages/Overview.tsx';
import { ProjectPage } from './pages/Project.tsx';
import { ProjectsPage } from './pages/Projects.tsx';
import { QueuePage } from './pages/Queue.tsx';
import { SweepPage } from './pages/Sweep.tsx';
import { SweepsPage } from './pages/Sweeps.tsx';
import { Unreachable } from './pages/Unreachable.tsx';
import { Header } from './parts/Header.tsx';
import { LostBanner } from './parts/Live.tsx';
import { Patterns } from './parts/Patterns.tsx';
import { useAddress } from './router/address.ts';
import { route } from './router/routes.ts';

/** The dashboard: a login until it is known who reads, and then the page that the address names. */
export function App() {
  const session = useSession();
  switch (session.kind) {
    case 'asking':
      return null;
    case 'out':
      return <Login words={session.words} />;
    case 'unreachable':
      return <Unreachable refusal={session.refusal} />;
    case 'in':
      return <Pages />;
  }
}

function Pages() {
  const { path } = useAddress();
  const before = useRef(path);
  useEffect(() => {
    if (before.current !== path) document.getElementById('main')?.focus({ preventScroll: true });
    before.current = path;
  }, [path]);
  return (
    <>
      <a className="skip" href="#main" onClick={skip}>
        Skip to what the page says
      </a>
      <Header />
      <LostBanner />
      <Patterns />
      {page(path)}
    </>
  );
}

function skip(event: { preventDefault(): void }): void {
  event.preventDefault(); // what is after the # is a token's place alone
  document.getElementById('main')?.focus();
}

function page(path: string): ReactNode {
  const at = route(path);
  switch (at.page) {
    case 'overview':
      return <OverviewPage />;
    case 'gpus':
      return <GpusPage />;
    case 'device':
      return <DevicePage node={at.node} index={at.index} />;
    case 'queue':
      return <QueuePage />;
    case 'jobs':
      return <JobsPage />;
    case 'compare':
      return <Compare />;
    case 'job':
      return <JobPage key={path} of={at} />;
    case 'projects':
      return <ProjectsPage />;
    case 'project':
      return <ProjectPage key={path} name={at.name} />;
    case 'sweeps':
      return <SweepsPage />;
    case 'sweep':
      return <SweepPage key={path} namespace={at.namespace} name={at.name} />;
    case 'nowhere':
      return <Nowhere />;
  }
}
