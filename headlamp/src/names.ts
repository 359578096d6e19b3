/** Names of the plugin's routes and of their entries in Headlamp's sidebar. */
export const ROUTES = {
  jobs: 'gpu-jobs',
  job: 'gpu-job',
  projects: 'gpu-projects',
  use: 'gpu-use',
  sweeps: 'gpu-sweeps',
  sweep: 'gpu-sweep',
} as const;

/** The entry of the sidebar that the others are below. */
export const TOP = 'gpu-scheduler';
