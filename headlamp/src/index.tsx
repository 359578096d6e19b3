import { registerRoute, registerSidebarEntry } from '@kinvolk/headlamp-plugin/lib';
import { ROUTES, TOP } from './names.ts';
import { JobRoute } from './routes/JobRoute.tsx';
import { JobsRoute } from './routes/JobsRoute.tsx';
import { ProjectsRoute } from './routes/ProjectsRoute.tsx';
import { SweepRoute } from './routes/SweepRoute.tsx';
import { SweepsRoute } from './routes/SweepsRoute.tsx';
import { UseRoute } from './routes/UseRoute.tsx';

const PATH = '/gpu-scheduler';

const PAGES = [
  { name: ROUTES.jobs, label: 'Jobs', path: 'jobs', component: JobsRoute },
  { name: ROUTES.projects, label: 'Projects', path: 'projects', component: ProjectsRoute },
  { name: ROUTES.use, label: 'Use', path: 'use', component: UseRoute },
  { name: ROUTES.sweeps, label: 'Sweeps', path: 'sweeps', component: SweepsRoute },
] as const;

const DETAILS = [
  { name: ROUTES.job, below: ROUTES.jobs, path: 'jobs', component: JobRoute },
  { name: ROUTES.sweep, below: ROUTES.sweeps, path: 'sweeps', component: SweepRoute },
] as const;

registerSidebarEntry({
  parent: null,
  name: TOP,
  label: 'GPUs',
  url: `${PATH}/jobs`,
  icon: 'mdi:expansion-card',
});

for (const { name, label, path, component: Page } of PAGES) {
  const url = `${PATH}/${path}`;
  registerSidebarEntry({ parent: TOP, name, label, url });
  registerRoute({ path: url, sidebar: name, name, exact: true, component: () => <Page /> });
}

for (const { name, below, path, component: Page } of DETAILS) {
  registerRoute({
    path: `${PATH}/${path}/:namespace/:name`,
    sidebar: below,
    name,
    exact: true,
    component: () => <Page />,
  });
}
