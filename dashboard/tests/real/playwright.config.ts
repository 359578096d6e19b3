import { defineConfig } from '@playwright/test';

import { common } from '../common.ts';
import { stand } from './stand.ts';

// On a real operator, which `python -m tests.dashboard` has started; see tests/dashboard there.
export default defineConfig({
  ...common(stand.base),
  testDir: '.',
  workers: 2,
  timeout: 120_000,
  expect: { timeout: 30_000 }, // the machine is busy with a cluster of its own
  reporter: 'list',
  projects: [
    { name: 'pages', testIgnore: ['restart.spec.ts', 'cost.spec.ts'] },
    // It takes the operator away from under all the others.
    {
      name: 'restart',
      testMatch: 'restart.spec.ts',
      dependencies: ['pages'],
      fullyParallel: false,
    },
    // On a stand of its own: see tests/dashboard/cost.py.
    { name: 'cost', testMatch: 'cost.spec.ts', workers: 1 },
  ],
});
